"""A scratch repository under the real Git, with jobgen and pre-commit on its path and no settings of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from command import run_jobgen_text
from jobgenprocess import install_jobgen


class Repository:
    """A folder under Git."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home = folder, home
        install_jobgen(home / "bin")
        binaries = f"{home / 'bin'}{os.pathsep}{Path(sys.executable).parent}"
        quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        people = {f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PRE_COMMIT"))}
        quiet |= {"GIT_TEMPLATE_DIR": os.environ["GIT_TEMPLATE_DIR"], "PRE_COMMIT_HOME": str(home)}
        self.environ = {**kept, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}", **quiet, **people}
        self.run("git", "init", "--quiet", "--initial-branch=main")

    def use_installed_jobgen(self) -> None:
        """Let `jobgen` be the installed program, which starts Python, rather than one that asks a server."""
        (self.home / "bin/jobgen").unlink()

    def run(self, *words: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def jobgen(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run jobgen in this process."""
        return run_jobgen_text(self.folder, *words, env=self.environ)

    def commit(self, *words: str) -> subprocess.CompletedProcess[str]:
        self.run("git", "add", "--all")
        return self.run("git", "commit", "--quiet", "-m", "change", *words)
