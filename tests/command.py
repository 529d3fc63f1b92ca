"""The real `jobgen` command, run in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def jobgen(cwd: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command without the variables of the surrounding environment that could change its output."""
    environment = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "HOME")}
    return subprocess.run(
        [sys.executable, "-m", "jobgen", *arguments],
        cwd=cwd,
        env={**environment, **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
