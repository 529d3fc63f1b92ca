"""Files of kustomizations, kubectl as their reference, and a program that plays kubectl and records its calls."""

import shutil
import subprocess
import sys
from pathlib import Path

from jobgen.yamlio.read import read

_BESIDE = Path(sys.executable).parent / "kubectl"
KUBECTL = str(_BESIDE) if _BESIDE.exists() else shutil.which("kubectl")
STAND_IN = Path(__file__).parent / "standin/kustomize"
PLUGIN = """\
transformers:
- |-
  apiVersion: builtin
  kind: AnnotationsTransformer
  metadata: {name: unchanged}
"""
"""A field of a kustomization that only kustomize can build, and that changes nothing."""


def write_files(folder, files):
    """Write files by their paths."""
    for path, text in files.items():
        full = folder / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(text if isinstance(text, bytes) else text.encode())


def run_kubectl(folder):
    """The objects that kubectl builds; None if it fails."""
    done = subprocess.run([KUBECTL, "kustomize", str(folder)], capture_output=True, check=False)
    return None if done.returncode else [each.data for each in read(done.stdout, "kubectl").documents]


def install_stand_ins(folder, *names, built=""):
    """Write programs that record their calls and print the same objects; return the folder, for PATH."""
    write_files(folder, {"built.yaml": built})
    for name in names:
        shutil.copy(STAND_IN, folder / name)
    return folder


def read_calls(folder):
    """The calls of stand-ins, each with its arguments."""
    calls = folder / "calls"
    return calls.read_text().splitlines() if calls.exists() else []
