"""Joins findings about one text of a sweep that differ only in the value of a variable.

A fault of `--lr ${{ matrix.lr }}` is in all members; it is one fault, whatever their values are.
This comes after severities and suppressions, as `consequences` does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from jobgen.model.finding import Finding, Related
from jobgen.model.lazy_re import lazy_pattern

_OF_MATRIX = lazy_pattern(r"`([^`]*)` is the value in the matrix\Z")

_MOST_NOTES = 4
"""How many values of a matrix are shown."""


def join_members(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with one for those that members of a sweep have at one place, but for their values."""
    if not any(_OF_MATRIX.match(note.message) for each in findings for note in each.related):
        return list(findings)
    groups: dict[object, list[Finding]] = {}
    for each in findings:
        shown = _hide_values(each)
        key = (each.rule, each.severity, each.location, each.env, shown) if shown else id(each)
        groups.setdefault(key, []).append(each)
    return [_join(several) if len(several) > 1 else several[0] for several in groups.values()]


def _hide_values(found: Finding) -> str:
    """Return the message with `…` for values of a matrix; empty if it has none, or says something else about them."""
    message = found.message
    for note in found.related:
        value = _OF_MATRIX.match(note.message)
        if value and value[1]:
            message = "`".join(_hide(part, value[1]) if at % 2 else part for at, part in enumerate(message.split("`")))
    return message if message != found.message else ""


def _hide(quoted: str, value: str) -> str:
    """Return a quoted text with `…` for a value that is a whole word of it."""
    return re.sub(rf"(?<![\w.]){re.escape(value)}(?![\w.])", "…", quoted)


def _join(several: Sequence[Finding]) -> Finding:
    """Return one finding for all members, with the values of all of them as notes."""
    first = several[0]
    related: dict[Related, None] = dict.fromkeys(note for each in several for note in each.related)
    # What identifies the fault for `--since` stays that of the first member.
    return first._replace(
        message=_hide_values(first),
        related=(*related,)[:_MOST_NOTES],
        evidence=first.evidence or first.values,
        fix=None,
    )
