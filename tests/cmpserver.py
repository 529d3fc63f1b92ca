"""A stand-in for argocd-cmp-server: it unpacks a repository and runs the plugin as the real one does.

A new folder for each call, files 0644 and folders 0755, the Application's path as working folder, ARGOCD_* variables
and parameters as JSON, a process group of its own that gets SIGTERM when time is up, and SIGKILL five seconds later.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jobgenprocess import name_program

ABSENT = object()
"""An Application without a plugin section: the variable is not set at all."""


class Answer(NamedTuple):
    """The output of the plugin."""

    code: int
    out: str
    err: str


class Server:
    """The sidecar: a work folder, and the plugin's command."""

    def __init__(self, work: Path, **environ: str) -> None:
        self.work = work / "_cmp_server"
        self.work.mkdir(parents=True)
        self.environ = environ

    def unpack(self, repository: Path, *, common_root: str = "") -> Path:
        """The files of a repository, or of a folder in it, as they come out of the tar stream."""
        target = self.work / str(uuid.uuid4())
        shutil.copytree(repository / common_root, target, symlinks=True)
        for path in (target, *target.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() else 0o644)
        return target

    def variables(self, path: str, parameters: object, extra: Mapping[str, str]) -> dict[str, str]:
        """The environment of the plugin."""
        given = {} if parameters is ABSENT else {"ARGOCD_APP_PARAMETERS": json.dumps(parameters)}
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.work.parent),
            "PYTHONPATH": os.environ.get("PYTHONPATH", str(Path(__file__).parent.parent)),
            "ARGOCD_APP_NAME": "jobs",
            "ARGOCD_APP_NAMESPACE": "ml",
            "ARGOCD_APP_PROJECT_NAME": "default",
            "ARGOCD_APP_REVISION": "a" * 40,
            "ARGOCD_APP_SOURCE_PATH": path,
            "ARGOCD_APP_SOURCE_REPO_URL": "https://git.example.com/jobs.git",
            "ARGOCD_APP_SOURCE_TARGET_REVISION": "main",
            "KUBE_VERSION": "1.36",
            "KUBE_API_VERSIONS": "",
            **self.environ,
            **given,
            **extra,
        }

    def start(
        self,
        repository: Path,
        path: str = ".",
        parameters: object = None,
        *,
        command: Sequence[str] = ("generate",),
        common_root: str = "",
        program: Sequence[str] = (sys.executable, "-m", "jobgen"),
        **extra: str,
    ) -> subprocess.Popen[str]:
        """The plugin at work."""
        top = self.unpack(repository, common_root=common_root)
        inside = os.path.relpath(path, common_root) if common_root else path
        return subprocess.Popen(
            [*program, "cmp", *command],
            cwd=top / inside,
            env=self.variables(path, parameters, extra),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def call(self, repository: Path, path: str = ".", parameters: object = None, **more: Any) -> Answer:
        """Run the plugin with a timeout."""
        if "timeout" not in more:  # then signals are not passed on
            more.setdefault("program", name_program())
        timeout = more.pop("timeout", 300.0)
        with self.start(repository, path, parameters, **more) as run:
            try:
                out, err = run.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                os.killpg(run.pid, signal.SIGTERM)
                try:
                    out, err = run.communicate(timeout=120)
                except subprocess.TimeoutExpired:
                    os.killpg(run.pid, signal.SIGKILL)
                    out, err = run.communicate()
        return Answer(run.returncode, out, err)
