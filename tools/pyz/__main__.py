"""Run jobgen from jobgen.pyz: unpack it to the cache once, because Python cannot load compiled modules from a zip."""

import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

DIGEST = "@DIGEST@"
BUILT_FOR = "@BUILT_FOR@"
PACKAGES = "site-packages/"


def find_cache() -> Path:
    """Return the folder of jobgen's cache."""
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"])
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"])
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")


def unpack(archive: Path, folder: Path) -> None:
    """Unpack all packages beside the folder, then rename: another process sees all of it or nothing."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unpacked = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(unpacked, [name for name in opened.namelist() if name.startswith(PACKAGES)])
        (unpacked / PACKAGES).chmod(0o700)
        try:
            (unpacked / PACKAGES).rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster
                raise
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)


def require_own(folder: Path) -> None:
    """End if somebody else could have written what is about to run."""
    status = folder.stat()
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        sys.exit(f"jobgen: other users can write to {folder}; delete it, or set XDG_CACHE_HOME to a folder of your own")


def main() -> None:
    """Check the version of Python, unpack, and run."""
    running = f"{sys.implementation.cache_tag} on {sys.platform}"
    if running != BUILT_FOR:
        sys.exit(f"jobgen: this file was built for {BUILT_FOR}, not for {running}; take the file for it, or use pip")
    folder = find_cache() / "jobgen" / "pyz" / DIGEST
    try:
        if not folder.is_dir():
            unpack(Path(sys.argv[0]).resolve(), folder)
    except OSError as error:
        sys.exit(f"jobgen: {folder} cannot be written ({error}); set XDG_CACHE_HOME to a folder that can")
    require_own(folder.parent)
    require_own(folder)
    sys.path[0] = str(folder)
    from jobgen.cli.main import main as run

    run()


main()
