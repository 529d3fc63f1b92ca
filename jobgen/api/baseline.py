"""`jobgen lint --baseline`: write a baseline file, or remove the findings that it lists."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from jobgen.api.errors import OperationError, UsageError
from jobgen.api.lint_files import REPOSITORY_FOLDERS, LintRequest, LintRun
from jobgen.model.finding import Finding
from jobgen.model.rule_names import canonical_rule_name
from jobgen.repo.atomic import links_outside, replace_file, sync_folders
from jobgen.repo.files import read_path
from jobgen.repo.root import find_root
from jobgen.reports import Suppressed, baseline


def write_baseline(
    path: Path, findings: Iterable[Finding], root: Path, paths: Sequence[str] = (), *, fsync: bool = True
) -> None:
    """Write all findings of a lint, of some paths below the root or of everything, to a baseline.

    Raises:
        OperationError: The file cannot be written.

    """
    _write(path, str(path), baseline.to_text(findings, paths), root, fsync=fsync)


def relative_paths(request: LintRequest, root: Path) -> tuple[str, ...]:
    """Return the paths of a lint, from the root; none if they include the root itself."""
    base = os.path.realpath(root)
    found = {
        Path(os.path.relpath(os.path.realpath(request.directory / path), base)).as_posix() for path in request.paths
    }
    return () if "." in found else tuple(sorted(found))


def apply_baseline(
    request: LintRequest, file: str, linted: LintRun, *, prune: bool, all_findings: bool = True
) -> tuple[list[Finding], list[Suppressed], int]:
    """Return the findings that a baseline does not list, those that it lists, and how many entries were removed.

    Entries that no finding matches are findings too, if everything that they could apply to was checked; with `prune`,
    they are removed from the file instead. Without `all_findings`, the lint has only some of its findings.

    Raises:
        UsageError: The file is not a baseline, or cannot be read.
        OperationError: The file cannot be written.

    """
    text = _read(request.directory / file, file, linted.root)
    try:
        new, old, left = baseline.split(linted.findings, baseline.parse(text))
    except baseline.BaselineError as error:
        raise UsageError(f"`{file}`: {error}") from error
    covered = all_findings and request.stdin is None and _covers(request, linted.root, baseline.parse_paths(text))
    stale = Counter(
        {
            key: count
            for key, count in left.items()
            if covered and linted.coverage.includes(key.file, canonical_rule_name(key.rule), key.object)
        }
    )
    pruned = len(stale) if prune else 0
    if pruned:
        _write(request.directory / file, file, baseline.remove_stale(text, stale), linted.root)
    else:
        new += [*baseline.find_stale(stale, text, file), *baseline.find_old_version(text, file)]
    return new, [Suppressed(finding, "the baseline lists it", "baseline") for finding in old], pruned


def _covers(request: LintRequest, root: Path, written: Sequence[str]) -> bool:
    """Return True if a lint includes the files of the lint that wrote the baseline."""
    paths = relative_paths(request, root)
    if not paths and find_root(root) is not None:
        # The rest of a jobs repository is linted only if it is named.
        return all(path.split("/")[0] in REPOSITORY_FOLDERS for path in written)
    if not paths or not written:
        return not paths
    return all(any(f"{path}/".startswith(f"{named}/") for named in paths) for path in written)


def _read(path: Path, name: str, root: Path) -> str:
    if not os.path.lexists(path):
        raise UsageError(
            f"there is no baseline `{name}`; write it with `jobgen lint --write-baseline --baseline {name}`"
        )
    found = read_path(path, name, root)
    if found.finding:
        raise UsageError(f"`{name}`: {found.finding.message}")
    try:
        return found.content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"`{name}` is not UTF-8") from error


def _write(path: Path, name: str, text: str, root: Path, *, fsync: bool = True) -> None:
    if links_outside(path, root):
        raise UsageError(f"`{name}` leads out of the repository through a symbolic link; choose another file")
    try:
        folder = replace_file(path, text.encode(), root, fsync=fsync)
    except OSError as error:
        raise OperationError(f"`{name}` cannot be written: {error.strerror}") from error
    if fsync:
        sync_folders([folder])
