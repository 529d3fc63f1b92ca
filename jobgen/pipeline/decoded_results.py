"""Decode the results of files that `encoded_results` encoded. Only this half imports what results are made of."""

from __future__ import annotations

from jobgen.check.rules import Fact
from jobgen.model.budget import Excess
from jobgen.model.data import Location
from jobgen.model.finding import Identity
from jobgen.pipeline.encoded_results import decode_finding, load_plain, unpack
from jobgen.pipeline.object_summary import ObjectSummary
from jobgen.rendering.environment import OverlayUse, Rendered
from jobgen.rendering.file_result import FileResult, NotedExcess
from jobgen.rendering.trace import JobRef
from jobgen.reports.suppress import Suppression


def decode_result(text: str) -> FileResult:
    """Decode a result."""
    outline, _, encoded_facts = text.partition("\n")
    made, findings, names, used, *others = load_plain(outline)
    comments, unchecked, unrendered, skipped, jobs, lines, excesses = others
    patches, hits, misses, own_misses, defaults, reads = used
    facts: list[tuple[str, Fact]] = []
    for *where, rows in load_plain(encoded_facts):
        job = JobRef(*where)
        facts += [(rule, Fact(unpack(value), tuple(steps), job)) for rule, value, steps in rows]
    return FileResult(
        [
            # Only jobs have summaries.
            Rendered(env, summary and ObjectSummary(*summary), Identity(*who), Location(*location), *place)
            for env, summary, who, location, *place in made
        ],
        [decode_finding(each) for each in findings],
        set(names),
        OverlayUse(
            {(overlay, place) for overlay, place in patches},
            {(name, key): JobRef(*where) for (name, key), where in hits},
            [((name, key), JobRef(*where)) for (name, key), where in misses],
            [JobRef(*where) for where in own_misses],
            [(overlay, place, tuple(map(tuple, paths))) for overlay, place, paths in defaults],
            set(reads),
        ),
        facts,
        [Suppression(Location(*location), tuple(rules), *others) for location, rules, *others in comments],
        unchecked,
        unrendered,
        [(sort, why) for sort, why in skipped],
        [(name, position, item) for name, position, item in jobs],
        [],
        dict(lines),
        [NotedExcess(Excess(*excess), decode_finding(finding)) for excess, finding in excesses],
    )
