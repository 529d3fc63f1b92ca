"""Other programs that jobgen starts: never a file of the repository that it reads, which a change could replace."""

from __future__ import annotations

import os
import sys

from jobgen.engine.inputs import find_top


def is_inside(path: str, home: str) -> bool:
    """Return True if a program is a file of a repository, which a change of it can replace.

    One that is installed beside jobgen is not: who can change that can change jobgen.
    """
    real = os.path.realpath(path)
    own = os.path.realpath(sys.prefix) + os.sep
    # All programs are below the root of the file system, which is no repository.
    is_below = home not in ("", os.sep) and real.startswith(os.path.join(home, ""))
    return is_below and not real.startswith(own)


def find_outside(name: str, folder: str, path: str) -> str:
    """Return a program on a PATH that is no file of the repository around a folder; empty if there is none."""
    # Imported late: most commands start no program.
    from shutil import which

    top = find_top(folder)
    for each in filter(os.path.isabs, path.split(os.pathsep)):
        found = which(name, path=each)
        if found is not None and os.path.isabs(found) and not is_inside(found, top):
            return found
    return ""


def find_here(name: str) -> str:
    """Return a program on PATH that is no file of the repository around the current folder; empty without one."""
    return find_outside(name, os.getcwd(), os.environ.get("PATH", os.defpath))
