"""Build dist/jobgen.pyz from a wheel: one file for CI without pip, for the Python and the system that build it.

    python tools/build_pyz.py dist/jobgen-0.3.0-py3-none-any.whl

Written by hand: shiv and pex record the folder of the wheel, so that the same commit does not give the same bytes.
Packages have the versions of tools/pyz/constraints.txt.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

SOURCE = Path(__file__).parent / "pyz"
UNUSED = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
"""Files in which pip records how it installed a package, with paths of this machine."""
EPOCH = 1_577_836_800
"""The time of files if `SOURCE_DATE_EPOCH` is not set: that of wheels by default, 2020-01-01."""


def install(wheel: Path, folder: Path) -> None:
    """Install a wheel and what it needs into a folder."""
    options = ["--quiet", "--disable-pip-version-check", "--no-compile", "--only-binary", ":all:"]
    constraints = ["--constraint", str(SOURCE / "constraints.txt"), "--target", str(folder)]
    command = [sys.executable, "-m", "pip", "install", *options, *constraints, str(wheel)]
    subprocess.run(command, check=True)  # noqa: S603 - the wheel was just built here


def list_files(folder: Path) -> dict[str, bytes]:
    """Return the files of all packages by their names in the archive, without scripts and notes of pip."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        f"site-packages/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in files
        if path.relative_to(folder).parts[0] != "bin"
        and not (path.parent.suffix == ".dist-info" and path.name in UNUSED)
    }


def write_archive(path: Path, files: dict[str, bytes]) -> None:
    """Write an executable zip archive whose bytes depend on the files alone."""
    moment = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", EPOCH)), EPOCH))[:6]
    with path.open("wb") as stream:
        stream.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, content in sorted(files.items()):
                entry = zipfile.ZipInfo(name, moment)
                entry.external_attr = 0o644 << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, content)
    path.chmod(0o755)


def main() -> None:
    """Build the file beside the wheel."""
    wheel = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as home:
        install(wheel, Path(home))
        files = list_files(Path(home))
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    start = (SOURCE / "__main__.py").read_text("utf-8").replace("@DIGEST@", digest.hexdigest()[:20])
    start = start.replace("@BUILT_FOR@", f"{sys.implementation.cache_tag} on {sys.platform}")
    write_archive(wheel.parent / "jobgen.pyz", {**files, "__main__.py": start.encode()})


if __name__ == "__main__":
    main()
