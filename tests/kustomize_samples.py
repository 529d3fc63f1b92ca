"""Files of kustomizations, and kubectl as their reference."""

import shutil
import subprocess
import sys
from pathlib import Path

from jobgen.yamlio.read import read

_BESIDE = Path(sys.executable).parent / "kubectl"
KUBECTL = str(_BESIDE) if _BESIDE.exists() else shutil.which("kubectl")


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
