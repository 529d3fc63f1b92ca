"""The baseline: a file of known findings, identified by rule, object and pointer, or by file and values at fault."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.model.builtin_rules import canonical_rule_name, original_rule_name
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Identity, Severity, find_wrong_values
from jobgen.model.limits import MAX_FINDINGS
from jobgen.model.named_tuple import NamedTuple

VERSION = 2
_OLD_VERSION = 1
"""The version that jobgen 0.2 wrote, with the messages of findings without an object. jobgen 0.4 will not read it."""


class FindingKey(NamedTuple):
    """Identifies a finding: by object and pointer, or without an object by file and the values in its message."""

    rule: str
    env: str
    object: str
    pointer: str
    file: str
    values: str


class BaselineError(Exception):
    """The file is not a valid baseline; the text is a message for users."""


def key_of(finding: Finding) -> FindingKey:
    """Return the key of a finding."""
    same, rule = finding.identity, original_rule_name(finding.rule)
    if finding.object is None:
        return FindingKey(rule, finding.env, "", "", same.file, " ".join(same.values))
    return FindingKey(rule, finding.env, name_object(finding.object), same.path, "", "")


def name_object(identity: Identity) -> str:
    """Return the name of an object in a baseline."""
    group = identity.api_version.rpartition("/")[0]
    return f"{group}/{identity.kind} {identity.namespace}/{identity.name}"


def to_text(findings: Iterable[Finding], paths: Sequence[str] = ()) -> str:
    """Return a baseline with all these findings of a lint of some paths; without paths, of everything."""
    return _format_baseline(Counter(key_of(finding) for finding in findings), paths)


def _format_baseline(known: Counter[FindingKey], paths: Sequence[str]) -> str:
    """Write one line for each entry, sorted, so that changes are easy to review and merge."""
    entries: list[str] = []
    for key, count in sorted(known.items()):
        fields: dict[str, str | int] = {name: value for name, value in key._asdict().items() if value}
        entries.append(f"    {_format_json(fields | {'count': count} if count > 1 else fields)}")
    listed = ",\n".join(entries)
    limited = f'  "paths": {_format_json(sorted(paths))},\n' if paths else ""
    return f'{{\n  "version": {VERSION},\n{limited}  "findings": [\n{listed}\n  ]\n}}\n'


def _format_json(value: object) -> str:
    """Return a value as JSON; the bytes of a path that are not UTF-8 are escaped."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()


def parse_paths(text: str) -> tuple[str, ...]:
    """The paths of the lint that wrote a valid baseline; none if it was a lint of everything."""
    paths = json.loads(text).get("paths", ())
    return tuple(map(str, paths)) if isinstance(paths, list) else ()


def parse(text: str) -> Counter[FindingKey]:
    """Parse a baseline: the keys of its findings, and how many of each."""
    try:
        document = json.loads(text)
        if document["version"] not in (VERSION, _OLD_VERSION):
            found = document["version"]
            raise BaselineError(f"the baseline has version `{found}`; this jobgen reads {_OLD_VERSION} and {VERSION}")
        known: Counter[FindingKey] = Counter()
        for entry in document["findings"]:
            known[_parse_key(entry)] += int(entry.get("count", 1))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise BaselineError("the file is not a baseline; write one with `jobgen lint --write-baseline`") from None
    return known


def _parse_key(entry: Mapping[str, Any]) -> FindingKey:
    key = FindingKey(*(str(entry.get(name, "")) for name in FindingKey._fields))
    if "message" in entry:
        # Version 1 has the whole message.
        key = key._replace(values=" ".join(find_wrong_values(str(entry["message"]))))
    return key._replace(rule=original_rule_name(key.rule))


def split(
    findings: Iterable[Finding], known: Counter[FindingKey]
) -> tuple[list[Finding], list[Finding], Counter[FindingKey]]:
    """Split findings into new and known ones; also return the entries of the baseline that no finding matches."""
    left = Counter(known)
    new: list[Finding] = []
    old: list[Finding] = []
    for finding in findings:
        key = key_of(finding)
        (old if left[key] > 0 else new).append(finding)
        left[key] -= 1
    return new, old, +left


def find_stale(left: Counter[FindingKey], text: str, file: str) -> Iterator[Finding]:
    """Report each entry of the baseline that no finding matches, on its line."""
    lines: dict[FindingKey, int] = {}
    for number, line in enumerate(text.splitlines(), 1) if left else ():
        # `_format_baseline` writes one entry on each line.
        try:
            lines.setdefault(_parse_key(json.loads(line.strip().rstrip(","))), number)
        except (ValueError, AttributeError, RecursionError):
            continue
    for key in sorted(left)[:MAX_FINDINGS]:
        rule = canonical_rule_name(key.rule)
        message = f"`{rule}` no longer finds anything in `{key.object or key.file}`; rewrite the baseline"
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


def remove_stale(text: str, left: Counter[FindingKey]) -> str:
    """Return the baseline without stale entries."""
    known = parse(text)
    known.subtract(left)
    return _format_baseline(+known, parse_paths(text))
