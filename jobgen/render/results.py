"""The results of files: those that the store has, and those of files that are processed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from jobgen.engine.store import Query, Row
from jobgen.render.environment import EnvironmentRunner
from jobgen.render.file_result import Answer, FileParts, FileResult
from jobgen.render.process_files import map_files, process_files
from jobgen.render.result_inputs import ResultInputs, make_key, name_entry
from jobgen.render.run_state import RunState, keep_object
from jobgen.render.trace import Tracer
from jobgen.repo.files import FileEntry, read_file

RENDERED: Query[FileResult] = Query("rendered")
"""The objects of a file in one environment, for comparisons in one process."""
_RENDERED_SCOPE = f"jobs {keep_object.__name__}"

_SHARE = 500
"""How many files are processed before their results are kept, if a newer edit may end the run."""
_MAX_HELD_BYTES = 64 * 1024 * 1024
"""How many bytes of files are held, so that processes need not read them again."""


def complete_results(
    run: RunState, runners: Sequence[EnvironmentRunner], tracer: Tracer, entries: Sequence[FileEntry]
) -> list[FileParts]:
    """Return the results of files: those that the store has, and those of files that are processed."""
    assert run.store is not None
    query = run.checks.query if run.checks is not None else RENDERED
    held = _hold_contents(entries)
    describe = run.checks.describe_membership if run.checks is not None else None
    inputs = run.inputs = ResultInputs(run.project, run.store, runners, held, run.entries, describe)
    environments: list[str | None] = [None, *(runner.name for runner in runners)]
    keys = [[make_key(run.scope, env, entry) for env in environments] for entry in held]
    found: list[list[Row | None]] = [[run.store.find(query, key, inputs.holds) for key in several] for several in keys]
    if run.summarize is not None:
        _take_summaries(run.summarize, held, found)
    lacking: dict[tuple[int, ...], list[int]] = {}
    for index, rows in enumerate(found):
        numbers = tuple(number for number, row in enumerate(rows[1:]) if row is None)
        if numbers or rows[0] is None:
            lacking.setdefault(numbers, []).append(index)
    size = _SHARE if run.is_cancellable else max(len(entries), 1)
    for numbers, indices in lacking.items():
        wanted = [runners[number] for number in numbers]
        answer = partial(_answer, run, tracer, query, wanted)
        for start in range(0, len(indices), size):
            share = indices[start : start + size]
            answers = map_files(run, wanted, [held[index] for index in share], answer)
            for index, new in zip(share, answers, strict=True):
                for number, (row, left) in zip((0, *(1 + each for each in numbers)), new, strict=True):
                    found[index][number] = run.store.add_row(query, keys[index][number], row)
                    if left is not None:
                        key = make_key(_RENDERED_SCOPE, environments[number], held[index])
                        run.store.add_row(RENDERED, key, left)
    complete = [[row for row in rows if row is not None] for rows in found]
    pairs = zip(held, complete, strict=True)
    run.answers = {
        name_entry(entry): Answer(tuple(row.value for row in rows), tuple(row.version for row in rows))
        for entry, rows in pairs
    }
    return [run.answers[name_entry(entry)].parts for entry in entries]


def _take_summaries(
    summarize: Callable[[FileEntry], FileParts | None], entries: Sequence[FileEntry], found: list[list[Row | None]]
) -> None:
    """Use what is known of files that need not be rendered."""
    for number, entry in enumerate(entries):
        parts = summarize(entry) if any(row is None for row in found[number]) else None
        if parts is not None:
            found[number] = [Row((), part) for part in parts]


def _hold_contents(entries: Sequence[FileEntry]) -> list[FileEntry]:
    """Return the entries with their contents, as far as these are not too large together."""
    held: list[FileEntry] = []
    size = 0
    for entry in entries:
        if entry.content is None and entry.finding is None and entry.build is None and size < _MAX_HELD_BYTES:
            file = read_file(entry)
            size += len(file.content)
            entry = entry._replace(content=file.content) if file.finding is None else entry  # noqa: PLW2901
        held.append(entry)
    return held


def _answer(
    run: RunState,
    tracer: Tracer,
    query: Query[FileResult],
    runners: Sequence[EnvironmentRunner],
    share: Sequence[FileEntry],
) -> list[list[tuple[Row, Row | None]]]:
    """Process files, and return the rows of each: of the file by itself, and in each environment.

    Beside each is that of a render, if the run leaves the objects. Answers that are kept are encoded here, where
    several processes work, and decoded where they are needed.
    """
    assert run.inputs is not None
    environments: list[str | None] = [None, *(runner.name for runner in runners)]
    found = []
    for entry, parts in zip(share, process_files(run, runners, tracer, share), strict=True):
        pairs = zip(environments, parts, strict=True)
        found.append([_make_rows(run, run.inputs, query, entry, env, part) for env, part in pairs])
    return found


def _make_rows(
    run: RunState, inputs: ResultInputs, query: Query[FileResult], entry: FileEntry, env: str | None, part: FileResult
) -> tuple[Row, Row | None]:
    """Return the row of a result, and that of a render of the same file, if the run leaves the objects."""
    row = Row(inputs.list_reads(entry, env, part), part._replace(objects=[]))
    if run.store is not None and run.store.is_kept:
        row = row.pack(query)
    # What is wrong with a file by itself, or prevents a render, a render reports again.
    if not run.leaves_objects or "" in part.unchecked or (env is None and part.findings):
        return row, None
    made = [made._replace(object=data) for made, data in zip(part.made, part.objects, strict=True)]
    left = part._replace(made=made, findings=[], rows=[], comments=[], dependent=[], objects=[])
    return row, Row(inputs.list_reads(entry, env, left), left)
