"""What the test cases of policies expect: comments such as `# expect: team-label warning "every job needs a team"`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress

from jobgen.model.finding import Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

_COMMENT = lazy_pattern(r"# expect: *(.+)")
_TEXT = r'"(?:[^"\\]|\\.)*"'
_ITEM = lazy_pattern(rf'\s*([^\s,"]+)(?:\s+(error|warning|info))?(?:\s+({_TEXT}))?\s*(?:,|$)')


class Expectation(NamedTuple):
    """A finding that a line must have; a severity or a message that is not given may be any."""

    line: int
    rule: str
    severity: Severity | None = None
    message: str | None = None


class Observed(NamedTuple):
    """A finding of a policy."""

    line: int
    rule: str
    severity: Severity
    message: str


def parse_expectations(content: str) -> Iterator[Expectation]:
    """The expectations in the comments of a file; several on a line are separated by commas."""
    for number, line in enumerate(content.splitlines(), 1):
        match = _COMMENT.search(line)
        yield from _parse_items(number, match[1]) if match else ()


def _parse_items(line: int, text: str) -> Iterator[Expectation]:
    position = 0
    while position < len(text):
        match = _ITEM.match(text, position)
        if match is None:
            # Not a list of expectations, so that no finding can have the name.
            yield Expectation(line, text[position:].strip())
            return
        position = match.end()
        message = None
        if match[3]:
            with suppress(ValueError):
                message = str(json.loads(match[3]))
        yield Expectation(line, match[1], Severity(match[2]) if match[2] else None, message)


def find_differences(expected: Iterable[Expectation], observed: Iterable[Observed]) -> list[str]:
    """Say where the findings of a file are not as expected."""
    left = list(observed)
    missing: list[Expectation] = []
    # The ones that say most first, so that they are not left without a finding.
    for one in sorted(expected, key=lambda each: (each.message is None, each.severity is None)):
        match = next((found for found in left if _fits(one, found)), None)
        if match is None:
            missing.append(one)
        else:
            left.remove(match)
    differences: list[tuple[int, str]] = []
    for one in missing:
        similar = next((found for found in left if (found.line, found.rule) == (one.line, one.rule)), None)
        if similar is not None:
            left.remove(similar)
        differences.append((one.line, _describe(one, similar)))
    differences += [(one.line, f"`{one.rule}` is found but not expected: {one.message}") for one in left]
    return [f"line {line}: {text}" for line, text in sorted(differences)]


def _fits(one: Expectation, found: Observed) -> bool:
    return (
        (one.line, one.rule) == (found.line, found.rule)
        and one.severity in (None, found.severity)
        and one.message in (None, found.message)
    )


def _describe(one: Expectation, found: Observed | None) -> str:
    if found is None:
        return f"`{one.rule}` is expected but not found"
    if one.severity not in (None, found.severity):
        assert one.severity is not None, "it differs"
        return f"`{one.rule}` has the severity `{found.severity.value}`, but `{one.severity.value}` is expected"
    return f"`{one.rule}` has the message `{found.message}`, but `{one.message}` is expected"
