"""Files that a script creates before a kustomization is built: they are missing in the repository on purpose."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator

from jobgen.model.finding import Finding, Severity, quoted_values
from jobgen.recognize.tree import FileTree, list_folders
from jobgen.repo.exclude import is_excluded, parse_patterns

MISSING = "kustomization-file-missing"


def settle_generated(findings: Iterable[Finding], tree: FileTree) -> Iterator[Finding]:
    """Yield the findings; a file that something else creates is a warning, because the build needs it first."""
    for finding in findings:
        creator = _find_creator(finding, tree) if finding.rule == MISSING else ""
        if creator:
            name = quoted_values(finding.message)[0]
            message = f"`{name}` does not exist here; the build fails until it is created, as `{creator}` says"
            yield finding._replace(severity=Severity.WARNING, message=message)
        else:
            yield finding


def _find_creator(finding: Finding, tree: FileTree) -> str:
    """Return the script, page or .gitignore that says that a missing file is created; empty without one."""
    folder = posixpath.dirname(finding.location.file)
    path = posixpath.normpath(posixpath.join(folder, quoted_values(finding.message)[0]))
    name = posixpath.basename(path)
    if "." in name:
        return tree.find_mention(finding.location.file, name.encode("utf-8", "surrogateescape")) or _find_ignoring(
            path, tree
        )
    missing = _find_missing_folder(path, tree)
    return tree.find_script(finding.location.file, missing.encode("utf-8", "surrogateescape")) or _find_ignoring(
        path, tree
    )


def _find_missing_folder(path: str, tree: FileTree) -> str:
    """Return the name of the first folder of a path that does not exist."""
    names = path.split("/")
    return next((names[index] for index in range(len(names)) if not tree.exists("/".join(names[: index + 1]))), "/")


def _find_ignoring(path: str, tree: FileTree) -> str:
    """Return the .gitignore that a missing file matches; empty without one."""
    for folder in list_folders(path):
        file = posixpath.join(folder, ".gitignore")
        lines = tree.read(file).content.decode("utf-8", "replace").split("\n") if tree.exists(file) else ()
        patterns = parse_patterns(line.strip() for line in lines if line.strip() and line[0] not in "#!")
        if is_excluded(posixpath.relpath(path, folder or "."), patterns):
            return file
    return ""
