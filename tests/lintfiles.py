"""Write files and lint them: what tests of messages share, and the jobs that they change."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

from findings import without_infos
from linting import lint_paths

from jobgen.api.lint import LintRequest, lint_request
from jobgen.reports.formats import FORMATS

TODAY = "2025-01-31"
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.4.2
  command: [torchrun, train.py]
  resources: {cpu: 8, memory: 64Gi, gpu: 8}
  shm: 8Gi
  roles:
    master: {}
    worker: {replicas: 3}
"""
NODES = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: llama, namespace: ml}
spec:
  framework: pytorch
  platform: trainer
  image: registry.example.com/llama:3.0.0
  command: [torchrun, train.py]
  resources: {cpu: 16, memory: 128Gi, gpu: 8}
  roles:
    node: {replicas: 2}
"""
PYTORCH = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: bert, namespace: ml}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
          containers:
            - name: pytorch
              image: registry.example.com/bert:1.4.2
"""


def lint_files(folder: Path, files: dict[str, str]) -> list[dict[str, Any]]:
    """Write files of a repository and return the findings of a lint, as JSON has them, without infos."""
    return without_infos(lint_with_infos(folder, {"jobgen.yaml": "", **files}))


def lint_with_infos(folder: Path, files: dict[str, str]) -> list[dict[str, Any]]:
    """Write files and return the findings of a lint, as JSON has them."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    done = lint_paths(folder, (), (), format_="json", today=TODAY)
    return list(json.loads(done.out)["findings"])


def lint_in_formats(folder: Path) -> dict[str, str]:
    """Return what a lint prints in each format. The checks are the same for all of them, and run twice."""
    result = lint_request(LintRequest(folder))
    printed = {name: FORMATS.render(name, result.to_report(name)) for name in FORMATS.names()}
    done = lint_paths(folder, (), (), format_="text")
    return {**printed, "text": done.out + done.err}


def overlay(spec: str, name: str = "prod") -> dict[str, str]:
    """An overlay with these fields, in flow style."""
    text = f"apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    return {f"overlays/{name}/overlay.yaml": text}
