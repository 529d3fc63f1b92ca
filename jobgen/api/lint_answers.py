"""Whole lints as answers of the store: if nothing that a lint read has changed, nothing that checks is imported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobgen.api.lint_files import Lint, LintContents, LintNotes, LintRequest, Sources, find_sources
from jobgen.engine.inputs import add_reads, real_path, record
from jobgen.engine.store import Query, Row, Store
from jobgen.model.data import Location
from jobgen.model.finding import Severity
from jobgen.pipeline.encoded_results import decode_finding, dump_plain, encode_finding, without_secret
from jobgen.repo.root import SETTINGS
from jobgen.reports import Suppressed
from jobgen.reports.narrowing import Narrowing
from jobgen.reports.suppress import Coverage, Suppression


def name_lint(request: LintRequest) -> str:
    """Return the key of a lint: everything but files that it depends on. A commit is known by its content."""
    where = (str(request.directory.resolve()), str(request.directory))
    full = [real_path(str(request.directory / path)) for path in request.paths if path != "-"]
    commit = (request.committed.commit.top.object, request.committed.path) if request.committed else ()
    options: tuple[object, ...] = (
        request.today,
        request.strict_files,
        request.is_compared,
        request.starts_tools,
        request.judged.judge.commit.name if request.judged and request.judged.judge else "",
    )
    options += request.chart_values
    same = request.same
    options += (sorted(same.pairs), sorted(same.rules), same.teams and sorted(same.teams)) if same.pairs else ()
    options += () if request.compares_trees else ("no trees",)
    return repr((where, commit, list(request.paths), full, list(request.envs), options))


def _can_answer(request: LintRequest) -> bool:
    """Return True if a lint depends on files alone, and covers all of them."""
    return request.stdin is None and not request.other_tools


def _encode(linted: Lint) -> str | None:
    try:
        plain: dict[str, Any] = linted._asdict() | {
            "findings": list(map(encode_finding, linted.findings)),
            "hidden": [[encode_finding(finding), reason, by] for finding, reason, by in linted.hidden],
            "rules": sorted(linted.rules),
            "root": str(linted.root),
            "mandatory": sorted(linted.mandatory),
            "coverage": [linted.coverage[0], *map(sorted, linted.coverage[1:])],
            "contents": linted.contents
            and [linted.contents.digests, sorted(linted.contents.dated), sorted(linted.contents.devices)],
            "lines": {file: list(lines.items()) for file, lines in linted.lines.items()},
            "notes": [*linted.notes],
            "narrowing": [*linted.narrowing],
            "beside": linted.beside and dict(linted.beside),
            "opinions": (),
        }
    except TypeError:
        # The fix of a finding is more than plain data.
        return None
    return without_secret(dump_plain(plain))


def _decode(text: str) -> Lint:
    plain: dict[str, Any] = json.loads(text)
    complete, *coverage = plain["coverage"]
    contents = plain["contents"]
    found = {
        "findings": [decode_finding(each) for each in plain["findings"]],
        "hidden": [Suppressed(decode_finding(each), reason, by) for each, reason, by in plain["hidden"]],
        "rules": frozenset(plain["rules"]),
        "root": Path(plain["root"]),
        "comments": list(map(_decode_comment, plain["comments"])),
        "mandatory": frozenset(plain["mandatory"]),
        "coverage": Coverage(complete, *map(frozenset, coverage)),
        "taken": {path: (sort, why) for path, (sort, why) in plain["taken"].items()},
        "contents": LintContents(contents[0], *map(frozenset, contents[1:])) if contents else None,
        "notes": LintNotes(*plain["notes"]),
        "narrowing": _decode_narrowing(*plain["narrowing"]),
        "lines": {file: dict(lines) for file, lines in plain["lines"].items()},
    }
    return Lint(**plain | found)


def _decode_narrowing(select: Sequence[str], ignore: Sequence[str], severity: str) -> Narrowing:
    return Narrowing(tuple(select), tuple(ignore), Severity(severity))


def _decode_comment(plain: Sequence[Any]) -> Suppression:
    location, rules, *others = plain
    return Suppression(Location(*location), tuple(rules), *others)


LINT: Query[Lint] = Query("lint", _encode, _decode)


def ask_findings(request: LintRequest, store: Store) -> Lint:
    """Return the lint of a request: that of the store if it holds."""
    known = _find_answer(request, store) if _can_answer(request) else None
    if known is not None:
        # The answer of a report reads what the lint did.
        add_reads(known.reads)
        found: Lint = known.value
        return found
    from jobgen.api.lint_run import find_findings

    with record() as recording:
        files = find_sources(request)
        check_files(request, files)
        linted = find_findings(request, store, files)
    if not recording.is_consistent:
        # A file changed while it was linted, so that no answer belongs to its content.
        store.forget_new()
    elif _can_answer(request) and recording.is_whole:
        key = name_lint(request if linted.taken else request._replace(is_compared=False))
        store.add(LINT, key, recording.list_reads(), linted)
    return linted


def knows_findings(request: LintRequest, store: Store) -> bool:
    """Return True if the store has the lint of a request."""
    return _can_answer(request) and _find_answer(request, store) is not None


def _find_answer(request: LintRequest, store: Store) -> Row | None:
    """Return a lint that holds.

    Other tools build kustomizations only in a lint that is not compared; without any, it is the same if it is compared.
    """
    known = store.find(LINT, name_lint(request))
    if known is None and request.is_compared:
        known = store.find(LINT, name_lint(request._replace(is_compared=False)))
        return known if known is not None and not known.value.taken else None
    return known


def check_files(request: LintRequest, files: Sources) -> None:
    """Raise a UsageError if a folder contains other jobs repositories."""
    if any(entry.path.endswith(SETTINGS) for entry in files.standalone or ()):
        from jobgen.api.recognized_files import refuse_repositories

        refuse_repositories(request, files)
