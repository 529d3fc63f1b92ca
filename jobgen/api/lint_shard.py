"""Lint a share of the files: its report carries the answers about its files, for the merge of all reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobgen import __version__
from jobgen.api.errors import UsageError
from jobgen.api.lint_files import LintRequest, LintRun
from jobgen.engine.store import Row, Store
from jobgen.pipeline.lint_checks import CHECKED
from jobgen.rendering.result_inputs import make_key, name_entry
from jobgen.reports.shard_part import ShardPart, pack

LINT = "lint"


def pack_shard(request: LintRequest, linted: LintRun, store: Store, baseline: str) -> ShardPart:
    """Return the share of a lint, with the answers about its files."""
    assert request.shard is not None
    rows: list[list[Any]] = []
    files: list[list[str]] = []
    for run in linted.runs:
        environments: list[str | None] = [None, *(runner.name for runner in run.runners)]
        for entry in run.own if run.inputs is not None else ():
            assert run.inputs is not None
            files.append([name_entry(entry), run.inputs.digest("file", name_entry(entry))])
            keys = [make_key(run.scope, env, entry) for env in environments]
            # The answers that hold now.
            known = [(key, store.find(CHECKED, key, run.inputs.holds)) for key in keys]
            rows += [[key, row.reads, row.encode(CHECKED)] for key, row in known if row is not None]
    options = {"paths": list(request.paths), "envs": list(request.envs), "today": request.today, "baseline": baseline}
    layers = linted.runs[0].project.layers
    data = {"command": LINT, "version": __version__, "options": {**options, "layers": layers}}
    return ShardPart(request.shard, "error", pack({**data, "files": files, "rows": rows}))


def add_rows(store: Store, parts: Sequence[Mapping[str, Any]]) -> None:
    """Add the answers of all shards to a store, or raise a UsageError if two shards have different ones to a question.

    They hold if the files are those that the shards have read. Any other error means that they cannot be read.
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
