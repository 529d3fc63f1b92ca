"""Results of files as JSON data, for the cache."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

from jobgen.k8s.secrets_in_text import find_assignments, find_token, looks_like_secret, may_state_secret
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Fix, Identity, Related, Severity, TextEdit
from jobgen.model.lazy_re import lazy_pattern
from jobgen.rendering.file_result import FileResult

Encoded = list[Any]
"""A value as JSON data: the fields of named tuples in order."""

_ENCODER, _DECODER = json.JSONEncoder(separators=(",", ":")), json.JSONDecoder()
_STRING = lazy_pattern(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_SEVERITIES = {each.value: each for each in Severity}
_COLLECTIONS: dict[str, type] = {each.__name__: each for each in (list, frozenset)}


def encode_result(part: FileResult) -> str | None:
    """Encode a result: a line without facts, and a line of facts, which are most of it.

    Facts are grouped by job: the number of a job's environment and file is the same for all of them. None if a rule's
    facts cannot be encoded, or if it may contain a secret.
    """
    used = part.used
    hits, misses = ([[marker, where] for marker, where in pairs] for pairs in (used.hits.items(), used.misses))
    try:
        outline: Encoded = [
            [[each.env, each.object if isinstance(each.object, tuple) else None, *each[2:]] for each in part.made],
            [encode_finding(finding) for finding in part.findings],
            sorted(part.names),
            [sorted(used.patches), hits, misses, used.own_misses, used.defaults, sorted(used.reads)],
            [list(comment) for comment in part.comments],
            part.unchecked,
            part.unrendered,
            part.skipped,
            part.jobs,
            list(part.lines.items()),
            [[noted.excess, encode_finding(noted.finding)] for noted in part.excesses],
        ]
        facts: Encoded = [
            [*job, [[rule, pack(fact.value), list(fact.path)] for rule, fact in rows]]
            for job, rows in groupby(part.rows, key=lambda row: row[1].job)
        ]
    except TypeError:
        return None
    return without_secret(f"{dump_plain(outline)}\n{dump_plain(facts)}")


def encode_findings(findings: list[Finding]) -> str | None:
    """Encode findings; None if one cannot be encoded, or may contain a secret."""
    try:
        plain = list(map(encode_finding, findings))
    except TypeError:
        return None
    return without_secret(dump_plain(plain))


def decode_findings(text: str) -> list[Finding]:
    """Decode findings."""
    return list(map(decode_finding, load_plain(text)))


def dump_plain(plain: Encoded | dict[str, Any]) -> str:
    """Write JSON data without spaces."""
    return _ENCODER.encode(plain)


def load_plain(text: str) -> Encoded:
    """Read what `dump_plain` wrote. It has no spaces; to look for them takes longer than to read a short text."""
    plain: Encoded = _DECODER.raw_decode(text)[0]
    return plain


def encode_finding(found: Finding) -> Encoded:
    """Encode a finding, or raise a TypeError if a value of its fix cannot be encoded."""
    fix: Encoded | None = None
    if found.fix:
        fix = [[[edit.op, edit.location, *map(pack, edit[2:])] for edit in found.fix.edits], found.fix.safe]
    return [*found[:-1], fix]


def decode_finding(plain: Encoded) -> Finding:
    """Decode a finding."""
    rule, category, severity, message, location, who, env, pointer, related, evidence, place, also, *known, fix = plain
    cause, meant = known
    shown = (
        Fix(tuple(TextEdit(op, Location(*at), *map(unpack, rest)) for op, at, *rest in fix[0]), fix[1]) if fix else None
    )
    return Finding(
        rule,
        category,
        _SEVERITIES[severity],
        message,
        Location(*location),
        Identity(*who) if who else None,
        env,
        pointer,
        tuple(Related(Location(*other), text) for other, text in related),
        None if evidence is None else tuple(evidence),
        place,
        tuple(also),
        cause,
        meant,
        shown,
    )


def pack(value: Any) -> Any:
    """Return JSON data for a scalar, or a tuple, list, mapping or set of them; raise a TypeError for anything else."""
    if value is None or isinstance(value, (str, int, float)):
        # A subclass, such as an enumeration, would come back as its base class.
        if value is not None and type(value) not in (str, int, float, bool):
            raise TypeError(type(value).__name__)
        return value
    if type(value) is tuple:
        return list(map(pack, value))
    if type(value) is dict:
        return {"mapping": [[pack(key), pack(child)] for key, child in value.items()]}
    if type(value) not in _COLLECTIONS.values():
        raise TypeError(type(value).__name__)
    return {type(value).__name__: list(map(pack, value))}


def unpack(data: Any) -> Any:
    """Return the value that `pack` turned into JSON data."""
    if type(data) is list:
        # Most items are scalars, and calls for them would take most of the time.
        return tuple([unpack(each) if type(each) in (list, dict) else each for each in data])
    if type(data) is not dict:
        return data
    ((name, items),) = data.items()
    if name == "mapping":
        return {unpack(key): unpack(child) for key, child in items}
    return _COLLECTIONS[name](map(unpack, items))


def without_secret(text: str) -> str | None:
    """Return JSON text that may be stored; None if a string in it has the format of a secret."""
    if not may_state_secret(text):
        return text
    strings = {string for string in _STRING.findall(text) if may_state_secret(string)}
    return None if any(_states_secret(_DECODER.decode(string)) for string in strings) else text


def _states_secret(text: str) -> bool:
    return bool(find_token(text)) or any(looks_like_secret(*pair) for pair in find_assignments(text))
