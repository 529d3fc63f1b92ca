"""Record the examples of this version and what it renders in tests/releases/<version>/.

python tools/record_release.py
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from jobgen import __version__

ROOT = Path(__file__).parent.parent
RELEASES = ROOT / "tests/releases"


def main() -> None:
    """Copy the examples and render them."""
    folder = RELEASES / __version__
    if folder.exists():
        raise SystemExit(f"`{folder.relative_to(ROOT)}` exists; what a release has rendered does not change")
    for name in ("jobs", "overlays"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "jobgen.yaml", folder)
    subprocess.run([sys.executable, "-m", "jobgen", "render", "-o", "rendered"], cwd=folder, check=True)
    # A lock has digests of the shipped kinds, which later versions extend.
    for path in folder.rglob("jobgen.lock.json"):
        path.unlink()


if __name__ == "__main__":
    main()
