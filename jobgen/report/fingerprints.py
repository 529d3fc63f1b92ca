"""What a finding is known by from one run to the next, whatever its line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

from jobgen.model.lazy_re import lazy_pattern
from jobgen.report.entries import ReportEntry

_EVIDENCE = lazy_pattern(r"`([^`]*)`")


def fingerprints(several: Sequence[ReportEntry]) -> list[str]:
    """One for each entry, no two the same: those that nothing tells apart are counted in the order of their places."""
    seen: Counter[str] = Counter()
    found = []
    for entry in several:
        digest = _digest(entry)
        seen[digest] += 1
        found.append(f"{digest}:{seen[digest]}")
    return found


def _digest(entry: ReportEntry) -> str:
    parts = (entry.finding.rule, *_subject(entry), *_evidence(entry.finding.message))
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _subject(entry: ReportEntry) -> tuple[str, ...]:
    """Whom it is about: the object without what an environment changes of it, or else the file."""
    names = {(one.api_version.rpartition("/")[0], one.kind, one.name) for one in entry.objects}
    if len(names) != 1:
        return ("file", entry.finding.location.file)
    # An overlay may choose the namespace, so it tells objects apart only where there are no overlays.
    namespace = "" if entry.environments else entry.objects[0].namespace
    return ("object", *names.pop(), namespace, entry.finding.pointer)


def _evidence(message: str) -> list[str]:
    """The values that a message quotes: its other words may change with a release of ours."""
    return _EVIDENCE.findall(message) or [message]
