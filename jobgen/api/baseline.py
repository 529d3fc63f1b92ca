"""`jobgen lint --baseline`: write a baseline file, or remove the findings that it lists."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from jobgen.api.errors import OperationError, UsageError
from jobgen.api.lint_files import REPOSITORY_FOLDERS, Lint, LintRequest
from jobgen.model.builtin_rules import canonical_rule_name
from jobgen.model.finding import Finding, FindingIdentity
from jobgen.pipeline.finish import Finishing
from jobgen.repo.atomic import advise, links_outside, replace_file, sync_folders
from jobgen.repo.commit import read_committed
from jobgen.repo.files import read_file, read_path
from jobgen.repo.root import find_root
from jobgen.reports import baseline


def write_baseline(
    path: Path, findings: Iterable[Finding], root: Path, paths: Sequence[str] = (), *, fsync: bool = True
) -> None:
    """Write all findings of a lint, of some paths below the root or of everything, or raise an OperationError."""
    _write(path, str(path), baseline.to_text(findings, paths), root, fsync=fsync)


def relative_paths(request: LintRequest, root: Path) -> tuple[str, ...]:
    """Return the paths of a lint, from the root; none if they include the root itself."""
    base = os.path.realpath(root)
    found = {
        Path(os.path.relpath(os.path.realpath(request.directory / path), base)).as_posix() for path in request.paths
    }
    return () if "." in found else tuple(sorted(found))


def apply_baseline(
    request: LintRequest, file: str, linted: Lint, context: Finishing, *, prune: bool, all_findings: bool = True
) -> Counter[FindingIdentity]:
    """Let a baseline hide what it lists, and return the entries that are removed from it.

    Entries that no finding matches are findings too, if everything that they could apply to was checked; with `prune`,
    they are removed from the file instead. Without `all_findings`, the lint has only some of its findings.
    Raise a UsageError if the file cannot be read, and an OperationError if it cannot be written.
    """
    path, root = request.directory / file, linted.root
    if not os.path.lexists(path):
        command = f"jobgen lint --write-baseline --baseline {file}"
        raise UsageError(f"there is no baseline `{file}`; write it with `{command}`")
    read = read_path(path, file, root)
    judge = request.find_layers(root).judge
    below = os.path.relpath(os.path.realpath(path), os.path.realpath(root))
    if judge is not None and not below.startswith(".."):
        if not (judge / below).is_file():
            # The change brings its own baseline.
            return Counter()
        read = read_file(read_committed(judge / below, file, judge))
    if read.finding:
        raise UsageError(f"`{file}`: {read.finding.message}")
    try:
        text = read.content.decode()
        context.known = baseline.parse(text)
        left = baseline.split(linted.findings, context.known)[2]
    except UnicodeDecodeError as error:
        raise UsageError(f"`{file}` is not UTF-8") from error
    except baseline.BaselineError as error:
        raise UsageError(f"`{file}`: {error}") from error
    paths, written = relative_paths(request, root), baseline.parse_paths(text)
    # The files of the lint that wrote the baseline must be among those of this one.
    covered = all_findings and request.stdin is None
    if not paths and find_root(root) is not None:
        # The rest of a jobs repository is linted only if it is named.
        covered &= all(named.split("/")[0] in REPOSITORY_FOLDERS for named in written)
    elif paths:
        covered &= bool(written)
        covered &= all(any(f"{each}/".startswith(f"{named}/") for named in paths) for each in written)
    describe = baseline.describe_object
    stale = Counter(
        {
            key: count
            for key, count in left.items()
            if covered and linted.coverage.includes(key.file, canonical_rule_name(key.rule), describe(key))
        }
    )
    pruned = stale if prune else Counter()
    if pruned:
        _write(path, file, baseline.remove_stale(text, stale), root)
    else:
        context.stale = [*baseline.find_stale(stale, text, file), *baseline.find_old_version(text, file)]
    return pruned


def _write(path: Path, name: str, text: str, root: Path, *, fsync: bool = True) -> None:
    if links_outside(path, root):
        raise UsageError(f"`{name}` leads out of the repository through a symbolic link; choose another file")
    try:
        folder = replace_file(path, text.encode(), root, fsync=fsync)
    except OSError as error:
        raise OperationError(f"`{name}` cannot be written: {error.strerror}{advise(error)}") from error
    if fsync:
        sync_folders([folder])
