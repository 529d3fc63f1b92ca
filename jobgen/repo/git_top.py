"""Find the top of the Git repository that a folder is in, without Git.

Git refuses a repository that belongs to another user, as in the containers of CI, and a report must not depend on that.
"""

from __future__ import annotations

from pathlib import Path

from jobgen.engine.inputs import exists_itself


def find_path_from_top(folder: Path) -> str:
    """The path of a folder from the top of its Git repository; empty at the top, and outside of one."""
    resolved = folder.resolve()
    for parent in (resolved, *resolved.parents):
        # A folder, or a file in a work tree and in a submodule.
        if exists_itself(str(parent / ".git")):
            path = resolved.relative_to(parent).as_posix()
            return "" if path == "." else path
    return ""
