"""Findings as plain data, to be kept on disk and read again."""

from __future__ import annotations

from typing import Any

from jobgen.model.data import Location
from jobgen.model.finding import Finding, Fix, Identity, Related, Severity, TextEdit

Encoded = tuple[Any, ...]


def encode_finding(found: Finding) -> Encoded:
    """A finding as plain data."""
    fix: Encoded | None = None
    if found.fix:
        edits: list[Encoded] = [(edit.op, tuple(edit.location), *edit[2:]) for edit in found.fix.edits]
        fix = (tuple(edits), found.fix.safe)
    return (
        found.rule,
        found.category,
        found.severity.value,
        found.message,
        tuple(found.location),
        found.object and tuple(found.object),
        found.env,
        found.pointer,
        tuple((tuple(related.location), related.message) for related in found.related),
        found.evidence,
        fix,
    )


def decode_finding(plain: Encoded) -> Finding:
    """The finding again."""
    rule, category, severity, message, location, who, env, pointer, related, evidence, fix = plain
    return Finding(
        rule,
        category,
        Severity(severity),
        message,
        Location(*location),
        Identity(*who) if who else None,
        env,
        pointer,
        tuple(Related(Location(*place), words) for place, words in related),
        evidence,
        Fix(tuple(TextEdit(op, Location(*place), *rest) for op, place, *rest in fix[0]), fix[1]) if fix else None,
    )
