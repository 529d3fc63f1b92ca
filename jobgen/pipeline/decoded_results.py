"""Decode the results of files that `encoded_results` encoded. Only this half imports what results are made of."""

from __future__ import annotations

from jobgen.check.rules import Fact
from jobgen.model.data import Location
from jobgen.model.finding import Identity
from jobgen.pipeline.encoded_results import Encoded, decode_finding, load_plain, unpack
from jobgen.pipeline.object_summary import ObjectSummary
from jobgen.rendering.environment import OverlayUse, Rendered
from jobgen.rendering.file_result import FileResult
from jobgen.rendering.trace import JobRef
from jobgen.reports.suppress import Suppression


def decode_result(text: str) -> FileResult:
    """Decode a result."""
    outline, _, facts = text.partition("\n")
    return _decode_outline(load_plain(outline), load_plain(facts))


def _decode_outline(plain: Encoded, facts: Encoded) -> FileResult:
    made, findings, names, used, comments, unchecked, skipped, dependent, jobs = plain
    return FileResult(
        [
            Rendered(env, _decode_summary(summary), Identity(*who), Location(*location), *where)
            for env, summary, who, location, *where in made
        ],
        [decode_finding(each) for each in findings],
        set(names),
        _decode_use(*used),
        _decode_facts(facts),
        [
            Suppression(Location(*location), tuple(rules), line, reason, until)
            for location, rules, line, reason, until in comments
        ],
        unchecked,
        [(sort, why) for sort, why in skipped],
        dependent,
        [(name, position, item) for name, position, item in jobs],
        [],
    )


def _decode_summary(plain: Encoded | None) -> ObjectSummary | None:
    if plain is None:
        return None
    # Only jobs have summaries.
    return ObjectSummary(*plain)


def _decode_facts(plain: Encoded) -> list[tuple[str, Fact]]:
    found: list[tuple[str, Fact]] = []
    for *where, rows in plain:
        job = JobRef(*where)
        found += [(rule, Fact(unpack(value), tuple(steps), job)) for rule, value, steps in rows]
    return found


def _decode_use(patches: Encoded, hits: Encoded, misses: Encoded, own_misses: Encoded, days: Encoded) -> OverlayUse:
    return OverlayUse(
        {(overlay, place) for overlay, place in patches},
        {(name, key): JobRef(*where) for (name, key), where in hits},
        [((name, key), JobRef(*where)) for (name, key), where in misses],
        [JobRef(*where) for where in own_misses],
        days,
    )
