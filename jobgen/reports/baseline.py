"""The baseline: a file of known findings, identified by rule, object and pointer, or by file and values at fault."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.model.builtin_rules import canonical_rule_name, original_rule_name
from jobgen.model.data import Location
from jobgen.model.finding import Finding, FindingIdentity, Identity, Severity
from jobgen.model.limits import MAX_FINDINGS
from jobgen.model.sentence import values_at_fault

VERSION = 2
_OLD_VERSION = 1
"""The version that jobgen 0.2 wrote, with the messages of findings without an object. jobgen 0.4 will not read it."""


class BaselineError(Exception):
    """The file is not a valid baseline; the text is a message for users."""


def key_of(finding: Finding) -> FindingIdentity:
    """Return what a baseline knows a finding by: its identity, as the file can hold it."""
    return _parse_key(_list_fields(finding.identity))


def _list_fields(key: FindingIdentity) -> dict[str, str]:
    """Return the fields of an entry, which are empty if there is no such thing."""
    obj = describe_object(key)
    return {
        "rule": original_rule_name(key.rule),
        "env": key.env,
        "object": obj,
        "pointer": key.path if obj else "",
        "file": key.file,
        "values": " ".join(key.values),
    }


def describe_object(key: FindingIdentity) -> str:
    """Return the object of an entry as a baseline names it; empty without one."""
    is_there = any((*key.kind, key.namespace, key.name))
    return f"{'/'.join(key.kind)} {key.namespace}/{key.name}" if is_there else ""


def name_object(identity: Identity) -> str:
    """Return the name of an object in a baseline."""
    group = identity.api_version.rpartition("/")[0]
    return f"{group}/{identity.kind} {identity.namespace}/{identity.name}"


def to_text(findings: Iterable[Finding], paths: Sequence[str] = ()) -> str:
    """Return a baseline with all these findings of a lint of some paths; without paths, of everything."""
    return _format_baseline(Counter(key_of(finding) for finding in findings), paths)


def _format_baseline(known: Counter[FindingIdentity], paths: Sequence[str]) -> str:
    """Write one line for each entry, sorted, so that changes are easy to review and merge."""
    entries: list[str] = []
    for key in sorted(known, key=_list_texts):
        fields: dict[str, str | int] = {name: value for name, value in _list_fields(key).items() if value}
        entries.append(f"    {_format_json(fields | ({'count': known[key]} if known[key] > 1 else {}))}")
    listed = ",\n".join(entries)
    limited = f'  "paths": {_format_json(sorted(paths))},\n' if paths else ""
    return f'{{\n  "version": {VERSION},\n{limited}  "findings": [\n{listed}\n  ]\n}}\n'


def _list_texts(key: FindingIdentity) -> tuple[str, ...]:
    """Return what baselines are sorted by."""
    return tuple(_list_fields(key).values())


def _format_json(value: object) -> str:
    """Return a value as JSON; the bytes of a path that are not UTF-8 are escaped."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()


def parse_paths(text: str) -> tuple[str, ...]:
    """The paths of the lint that wrote a valid baseline; none if it was a lint of everything."""
    paths = json.loads(text).get("paths", ())
    return tuple(map(str, paths)) if isinstance(paths, list) else ()


def parse(text: str) -> Counter[FindingIdentity]:
    """Parse a baseline: the keys of its findings, and how many of each."""
    try:
        document = json.loads(text)
        if document["version"] not in (VERSION, _OLD_VERSION):
            found = document["version"]
            raise BaselineError(f"the baseline has version `{found}`; this jobgen reads {_OLD_VERSION} and {VERSION}")
        known: Counter[FindingIdentity] = Counter()
        for entry in document["findings"]:
            known[_parse_key(entry)] += int(entry.get("count", 1))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise BaselineError("the file is not a baseline; write one with `jobgen lint --write-baseline`") from None
    return known


def _parse_key(entry: Mapping[str, Any]) -> FindingIdentity:
    rule, env, obj, pointer, file = (str(entry.get(name, "")) for name in ("rule", "env", "object", "pointer", "file"))
    values = str(entry.get("values", ""))
    if "message" in entry:
        # Version 1 has the whole message.
        values = " ".join(values_at_fault(str(entry["message"])))
    kind, _, name = obj.partition(" ")
    group, _, kind = kind.rpartition("/")
    namespace, _, name = name.partition("/")
    rule, texts = original_rule_name(rule), (values,) if values else ()
    return FindingIdentity(rule, env, (group, kind), namespace, name, file, pointer, texts)


def split(
    findings: Iterable[Finding], known: Counter[FindingIdentity]
) -> tuple[list[Finding], list[Finding], Counter[FindingIdentity]]:
    """Split findings into new and known ones; also return the entries of the baseline that no finding matches."""
    left = Counter(known)
    new: list[Finding] = []
    old: list[Finding] = []
    for finding in findings:
        key = key_of(finding)
        (old if left[key] > 0 else new).append(finding)
        left[key] -= 1
    return new, old, +left


def find_stale(left: Counter[FindingIdentity], text: str, file: str) -> Iterator[Finding]:
    """Report each entry of the baseline that no finding matches, on its line."""
    lines: dict[FindingIdentity, int] = {}
    for number, line in enumerate(text.splitlines(), 1) if left else ():
        # `_format_baseline` writes one entry on each line.
        try:
            lines.setdefault(_parse_key(json.loads(line.strip().rstrip(","))), number)
        except (ValueError, AttributeError, RecursionError):
            continue
    for key in sorted(left, key=_list_texts)[:MAX_FINDINGS]:
        rule, where = canonical_rule_name(key.rule), describe_object(key) or key.file
        message = f"`{rule}` no longer finds anything in `{where}`; rewrite the baseline"
        yield Finding("stale-baseline", "meta", Severity.WARNING, message, Location(file, lines.get(key, 1)))
    if len(left) > MAX_FINDINGS:
        message = f"{len(left) - MAX_FINDINGS} more entries no longer find anything; rewrite the baseline"
        yield Finding("stale-baseline", "meta", Severity.WARNING, message, Location(file, 1))


def find_old_version(text: str, file: str) -> Iterator[Finding]:
    """Report a valid baseline whose version a later jobgen does not read."""
    if json.loads(text)["version"] == _OLD_VERSION:
        message = (
            f"the baseline has version `{_OLD_VERSION}`; run `jobgen lint --write-baseline` to write version {VERSION}"
        )
        yield Finding("stale-baseline", "meta", Severity.INFO, message, Location(file))


def remove_stale(text: str, left: Counter[FindingIdentity]) -> str:
    """Return the baseline without stale entries."""
    known = parse(text)
    known.subtract(left)
    return _format_baseline(+known, parse_paths(text))
