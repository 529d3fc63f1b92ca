"""Whether the files that `jobgen init --gitops` wrote still name the environments of the repository."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from jobgen.cli.doctor import NOTE, PROBLEM, Check
from jobgen.model.lazy_re import lazy_pattern
from jobgen.render.config import ProjectConfig
from jobgen.repo.files import MANIFEST_SUFFIXES, read_file
from jobgen.repo.lock import TREE
from jobgen.repo.walk import walk_files

_FOLDER = "gitops"
_MAX_FILES = 50
_PATH = lazy_pattern(rf"""(?m)^[^#\n]*?\bpath: *["']?(?:\./)?{TREE}/([\w.-]+)""")


def check_gitops(root: Path, project: ProjectConfig) -> Iterator[Check]:
    """Compare the paths in gitops/ with the environments; nothing if no file there has a path of the rendered tree."""
    for entry in islice(walk_files(root, _FOLDER, MANIFEST_SUFFIXES), _MAX_FILES):
        named = dict.fromkeys(_PATH.findall(read_file(entry).content.decode("utf-8", "replace")))
        if named:
            yield _compare(entry.path, list(named), project)


def _compare(path: str, named: list[str], project: ProjectConfig) -> Check:
    unknown = [name for name in named if name not in project.overlays]
    missing = [name for name in project.environments() if name and name not in named]
    facts = {"file": path, "applied": named, "unknown": unknown, "missing": missing}
    command = f"jobgen gitops {'flux' if 'flux' in path else 'argocd'} > {shlex.quote(path)}"
    if unknown:
        found = f"{path} applies {', '.join(unknown)}, which is no environment"
        return Check("gitops", found, PROBLEM, command, facts)
    if missing:
        return Check("gitops", f"{path} does not apply {', '.join(missing)}", NOTE, command, facts)
    return Check("gitops", f"{path} applies {', '.join(named)}", facts=facts)
