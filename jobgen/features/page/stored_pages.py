"""The lines of jobs as answers of the store: of a page, only the jobs that have changed are traced again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import eq
from typing import Any

from jobgen.engine.store import Query, Store
from jobgen.features.page.page import Change, Line
from jobgen.pipeline.encoded_results import dump_plain, load_plain, without_secret

JobLines = tuple[tuple[Change, ...], list[tuple[Change, ...]]]
"""The lines of a job's file, and those of its manifest in each environment. They have no secrets."""


class _Numbers(dict[str, int]):
    """The number of each text, in the order in which they are first used."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


def _encode(found: JobLines) -> str | None:
    """Encode lines as numbers of their texts; None if a text has the format of a secret."""
    spec, manifests = found
    numbers = _Numbers()
    plain = [
        [[change.skipped, change.copied, _encode_lines(change.added, numbers)] for change in changes]
        for changes in (spec, *manifests)
    ]
    return without_secret(dump_plain([list(numbers), plain]))


def _encode_lines(lines: Sequence[Line], numbers: _Numbers) -> list[list[int]]:
    found: list[list[int]] = []
    for text, sources in lines:
        line = [numbers[text]]
        for layer, file, at, value in sources:
            line += (numbers[layer], numbers[file], at, numbers[value])
        found.append(line)
    return found


def _decode(text: str) -> JobLines:
    texts, plain = load_plain(text)
    spec, *manifests = (
        tuple([Change(skipped, copied, _decode_lines(added, texts)) for skipped, copied, added in changes])
        for changes in plain
    )
    return spec, manifests


def _decode_lines(lines: Sequence[Any], texts: Sequence[str]) -> tuple[Line, ...]:
    found: list[Line] = []
    for number, *rest in lines:
        starts = range(0, len(rest), 4)
        sources = [(texts[rest[at]], texts[rest[at + 1]], rest[at + 2], texts[rest[at + 3]]) for at in starts]
        found.append((texts[number], tuple(sources)))
    return tuple(found)


_LINES: Query[JobLines] = Query("page lines", _encode, _decode)


def complete_lines(
    store: Store, digests: Sequence[tuple[str, str]], compute: Callable[[Sequence[int]], Sequence[JobLines]]
) -> list[JobLines]:
    """Return the lines of jobs: those that the store has, and those that are computed for the numbers of the others.

    Each job has a name, and a digest of everything that its lines depend on.
    """
    reads = [(name, ("content", "", digest)) for name, digest in digests]
    rows = [store.find(_LINES, name, partial(eq, read)) for name, read in reads]
    missing = [number for number, row in enumerate(rows) if row is None]
    for number, lines in zip(missing, compute(missing) if missing else (), strict=True):
        name, read = reads[number]
        rows[number] = store.add(_LINES, name, (read,), lines)
    return [row.value for row in rows if row is not None]
