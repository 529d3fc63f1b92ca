"""Lint a share of the files: its report carries the answers about its files, for the merge of all reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen import __version__
from jobgen.api.errors import UsageError
from jobgen.api.lint_files import LintRequest, LintRun
from jobgen.engine.store import Row, Store
from jobgen.pipeline.lint_checks import CHECKED
from jobgen.rendering.result_inputs import make_key, name_entry
from jobgen.rendering.run_state import RunState
from jobgen.reports.shard_part import ShardPart, pack

LINT = "lint"


def pack_shard(request: LintRequest, linted: LintRun, store: Store, baseline: str) -> ShardPart:
    """Return the share of a lint, with the answers about its files."""
    assert request.shard is not None
    rows = [[key, row.reads, row.encode(CHECKED)] for run in linted.runs for key, row in _list_rows(run, store)]
    files = [
        [name_entry(entry), run.inputs.digest("file", name_entry(entry))]
        for run in linted.runs
        if run.inputs is not None
        for entry in run.own
    ]
    options = {"paths": list(request.paths), "envs": list(request.envs), "today": request.today, "baseline": baseline}
    layers = linted.runs[0].project.layers
    data = {"command": LINT, "version": __version__, "options": {**options, "layers": layers}}
    return ShardPart(request.shard, "error", pack({**data, "files": files, "rows": rows}))


def _list_rows(run: RunState, store: Store) -> Iterator[tuple[str, Row]]:
    """Return the answers about the files of a shard that hold now."""
    environments: list[str | None] = [None, *(runner.name for runner in run.runners)]
    for key in (make_key(run.scope, env, entry) for entry in run.own for env in environments):
        row = store.find(CHECKED, key, run.inputs.holds) if run.inputs is not None else None
        if row is not None:
            yield key, row


def add_rows(store: Store, parts: Sequence[Mapping[str, Any]]) -> None:
    """Add the answers of all shards to a store. They hold if the files are those that the shards have read.

    Raises:
        UsageError: Two shards have different answers to one question.
        TypeError, ValueError, LookupError, AttributeError: Answers cannot be read.

    """
    known: dict[str, Any] = {}
    for data in parts:
        for key, reads, text in data["rows"]:
            if known.setdefault(key, (reads, text)) != (reads, text):
                # One of them would hide the findings of the other.
                path = key.split(" ", 4)[-1].partition("\0")[0]
                raise UsageError(f"two reports have different results of `{path}`; run the shards again")
    for key, (reads, text) in known.items():
        if text is not None:
            store.add_row(
                CHECKED, str(key), Row([(str(a), str(b), str(c)) for a, b, c in reads], None, str(text), CHECKED.decode)
            )
