"""Run jobgen from jobgen.pyz: unpack it to the cache once, because Python cannot load compiled modules from a zip."""

import os
import shutil
import stat
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import NoReturn

DIGEST = "@DIGEST@"
BUILT_FOR = "@BUILT_FOR@"
PACKAGES = "site-packages/"
REPOSITORY_MARKS = (".git", ".hg", "jobgen.yaml")
INTERNAL_ERROR = 4
"""The exit code of jobgen if nothing was checked; 1 would mean that there are findings."""


def fail(message: str) -> NoReturn:
    """End with an error."""
    sys.stderr.write(f"jobgen: {message}\n")
    sys.exit(INTERNAL_ERROR)


def find_cache() -> Path:
    """Return the folder of jobgen's cache, or one beside other temporary files if that is inside a repository.

    Whoever writes to a repository must not decide what runs.
    """
    named = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    home = os.path.expanduser("~")
    if named and os.path.isabs(named):
        cache = Path(named) / "jobgen"
    elif os.path.isabs(home):
        cache = Path(home) / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "jobgen"
    else:
        # A user of a container may have no home folder.
        cache = None
    if cache and not is_inside_repository(cache):
        return cache
    user = os.getuid() if hasattr(os, "getuid") else "user"
    cache = Path(tempfile.gettempdir()) / f"jobgen-{user}"
    if is_inside_repository(cache):
        fail(f"{cache} is inside a repository; set XDG_CACHE_HOME to a folder that is not")
    return cache


def is_inside_repository(folder: Path) -> bool:
    """Whether a folder, which may not exist yet, is inside a repository."""
    around = Path(os.path.realpath(folder)).parents
    return any(os.path.lexists(parent / mark) for parent in around for mark in REPOSITORY_MARKS)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack all packages beside the folder, then rename: another process sees all of it or nothing."""
    folder.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.parent.mkdir(mode=0o700, exist_ok=True)
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
    status = folder.lstat()
    is_private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o022
    if hasattr(os, "getuid") and not (status.st_uid == os.getuid() and is_private):
        fail(f"other users can write to {folder}; delete it, or set XDG_CACHE_HOME to a folder of your own")


def main() -> None:
    """Check the version of Python, unpack, and run."""
    running = f"{sys.implementation.cache_tag} on {sys.platform}"
    if running != BUILT_FOR:
        fail(f"this file was built for {BUILT_FOR}, not for {running}; take the file for it, or use pip")
    folder = find_cache() / "pyz" / DIGEST
    try:
        if not folder.is_dir():
            unpack(Path(sys.argv[0]).resolve(), folder)
    except OSError as error:
        fail(f"{folder} cannot be written ({error}); set XDG_CACHE_HOME to a folder that can")
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        fail(f"{sys.argv[0]} is damaged ({error}); download it again")
    for each in (folder.parent.parent, folder.parent, folder):
        require_own(each)
    sys.path[0] = str(folder)
    try:
        from jobgen.cli.main import main as run
    except ImportError as error:
        fail(f"{folder} is not complete ({error}); delete it, and it is unpacked again")
    run()


main()
