"""The cache of whole lints: if no file has changed, the last result is returned and nothing that checks is imported."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jobgen import cache
from jobgen.api.lint_files import LintContents, LintFiles, LintRequest, LintRun, resolve_files
from jobgen.model.digest import blake2b
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.encoded_results import Encoded, contains_secret, decode_finding, encode_finding
from jobgen.pipeline.result_cache import FileStat, digest_files, is_racy, stat_file, to_file_stat
from jobgen.repo import layout
from jobgen.repo.commit import Folder
from jobgen.repo.lock import TREE
from jobgen.report.coverage import Coverage

if TYPE_CHECKING:
    from jobgen.model.finding import Finding


class LintInputs(NamedTuple):
    """Everything that a lint depends on: the key of its cache entry, and a digest of the files."""

    key: str
    digest: str
    moment: int
    settled: bool
    """Whether no file was modified so recently that another change could keep its modification time."""
    files: LintFiles
    layers: bytes


def read_inputs(request: LintRequest) -> LintInputs | None:
    """Return what a lint depends on; None if that is more than files, or the cache is disabled."""
    if not cache.is_enabled() or request.stdin is not None or request.other_tools:
        return None
    moment = time.time_ns()
    files = resolve_files(request)
    entries = [*files.jobs, *(files.standalone or ())]
    stamps = [stat_file(entry.full) if entry.finding is None else None for entry in entries]
    known = [stamp for stamp in stamps if stamp is not None]
    if len(known) < len(entries):
        return None
    layers = digest_files(layout.read_inputs(files.root or request.directory))
    digest = blake2b(layers)
    for entry, stamp in zip(entries, known, strict=True):
        described = f"{entry.path}\0{entry.full}\0{entry.optional}\0{stamp}\0"
        digest.update(described.encode("utf-8", "surrogatepass"))
    tree = _stat_tree(files.root)
    known += tree.values()
    digest.update(repr(list(tree.items())).encode("utf-8", "surrogatepass"))
    digest.update(repr(sorted(files.skipped.items())).encode("utf-8", "surrogatepass"))
    where = (str(request.directory.resolve()), str(files.root or ""), str(request.directory))
    options = (request.today, "strict" if request.strict_files else "")
    key = cache.make_key("lint", *where, str(len(request.paths)), *request.paths, *request.envs, *options)
    return LintInputs(
        key, digest.hexdigest(), moment, not any(is_racy(stamp, moment) for stamp in known), files, layers
    )


def _stat_tree(root: Folder | None) -> dict[str, FileStat]:
    """The stat of every file of the rendered tree, by path; a link counts as itself."""
    if not isinstance(root, Path) or not os.path.isdir(root / TREE):
        return {}
    from jobgen.repo.tree_files import list_files

    found = {path: os.lstat(root / TREE / path) for path in list_files(root / TREE)}
    return {path: to_file_stat(status) for path, status in found.items()}


def get(inputs: LintInputs | None) -> LintRun | None:
    """Return the cached lint of the same files."""
    kept = cache.get_data(inputs.key) if inputs and inputs.settled else None
    if inputs is None or kept is None or kept[0] != inputs.digest:
        return None
    _, findings, counts, environments, rules, root, mandatory, skipped, taken, coverage, contents, watched = kept
    if any(repr(stat_file(path)) != stamp for path, stamp in watched):
        return None
    return LintRun(
        findings=[decode_finding(each) for each in findings],
        suppressed=[],
        files=counts[0],
        objects=counts[1],
        environments=list(environments),
        rules=frozenset(rules),
        root=Path(root),
        comments=[],
        mandatory=frozenset(mandatory),
        today="",
        coverage=Coverage(coverage[0], *map(frozenset, coverage[1:])),
        cacheable=True,
        skipped=skipped,
        taken={path: (sort, why) for path, sort, why in taken},
        contents=_decode_contents(contents),
        watched=[path for path, _ in watched],
    )


def put(inputs: LintInputs | None, linted: LintRun) -> None:
    """Cache a lint of inputs that were read before it."""
    if inputs is None or not inputs.settled or not linted.cacheable:
        return
    findings = _encode_findings(linted.findings)
    watched = {path: stat_file(path) for path in linted.watched}
    if findings is None or any(stamp and is_racy(stamp, inputs.moment) for stamp in watched.values()):
        return
    counts = (linted.files, linted.objects)
    taken = [(path, *found) for path, found in linted.taken.items()]
    rest = (linted.environments, sorted(linted.rules), str(linted.root), sorted(linted.mandatory), dict(linted.skipped))
    coverage = [linted.coverage[0], *map(sorted, linted.coverage[1:])]
    contents = _encode_contents(linted.contents)
    stamps = [(path, repr(stamp)) for path, stamp in watched.items()]
    cache.put_data(inputs.key, (inputs.digest, findings, counts, *rest, taken, coverage, contents, stamps))


class OldLint(NamedTuple):
    """What `--since` needs to know of the lint of a commit."""

    findings: Sequence[Finding]
    contents: LintContents | None


def get_old(request: LintRequest) -> OldLint | None:
    """Return the cached lint of a commit: its content never changes."""
    kept = cache.get_data(_make_old_key(request)) if cache.is_enabled() else None
    return None if kept is None else OldLint([decode_finding(each) for each in kept[0]], _decode_contents(kept[1]))


def put_old(request: LintRequest, linted: OldLint) -> None:
    """Cache the lint of a commit."""
    findings = _encode_findings(linted.findings) if cache.is_enabled() else None
    if findings is not None:
        cache.put_data(_make_old_key(request), (findings, _encode_contents(linted.contents)))


def _make_old_key(request: LintRequest) -> str:
    assert request.committed is not None
    commit, path = request.committed
    where = (commit.top.object, path, str(request.directory.resolve()), str(len(request.paths)))
    return cache.make_key("old lint", *where, *request.paths, *request.envs, request.today)


def _encode_findings(findings: Sequence[Finding]) -> list[Encoded] | None:
    """Encode findings; None if they cannot be stored."""
    try:
        encoded = [encode_finding(found) for found in findings]
    except TypeError:
        # The fix of a finding is more than plain data.
        return None
    return None if contains_secret(encoded) else encoded


def _encode_contents(contents: LintContents | None) -> Encoded | None:
    return contents and [contents.digests, sorted(contents.dated), sorted(contents.devices)]


def _decode_contents(plain: Encoded | None) -> LintContents | None:
    return LintContents(plain[0], frozenset(plain[1]), frozenset(plain[2])) if plain else None
