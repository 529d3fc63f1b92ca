"""Comments that silence a finding: `# jobgen: ignore[rule] -- reason` on its line, or alone above it.

`ignore-file[rule]` in the comments at the top speaks of the whole file; `until=YYYY-MM-DD` before the dashes ends it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from jobgen.check.rule_names import canonical_rule_name
from jobgen.model.data import Data, Location, TracedKey, TracedList, TracedScalar
from jobgen.model.finding import Finding, Fix, Severity, TextEdit
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import did_you_mean
from jobgen.yamlio.read import read

MARKER = b"jobgen: ignore"
_COMMENT = lazy_pattern(r"(?:^|(?<=\s))#\s*jobgen: ignore(-file)?(?![\w-])(.*)$")
_FORM = lazy_pattern(r"\[([^\[\]]*)\]\s*(?:until=(\S+))?\s*(?:--\s*(.*?))?\s*\Z")
_DATE = lazy_pattern(r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])\Z")
_HOW = "write `# jobgen: ignore[rule] -- reason`"


class Suppression(NamedTuple):
    """A comment that silences rules on one line, or in the whole file."""

    location: Location
    rules: tuple[str, ...]
    line: int
    reason: str
    until: str

    def means(self, finding: Finding) -> bool:
        """Whether it is about this finding."""
        here = finding.location.file == self.location.file and (not self.line or finding.location.line == self.line)
        return here and finding.rule in map(canonical_rule_name, self.rules)


class Silenced(NamedTuple):
    """A finding and the comment that silences it."""

    finding: Finding
    suppression: Suppression


def suppressions_in(content: bytes, file: str) -> tuple[list[Suppression], list[Finding]]:
    """The comments of a file that silence findings, and what is wrong with those that do not."""
    lines = content.decode("utf-8", "replace").splitlines()
    found: list[Suppression] = []
    faults: list[Finding] = []
    texts: list[Location] | None = None
    for number, line in enumerate(lines, 1):
        match = _COMMENT.search(line)
        if match is None:
            continue
        if texts is None:
            texts = [
                location
                for document in read(content, file, marked=True).documents
                for location in _scalars(document.data)
            ]
        location = Location(file, number, match.start() + 1, number, len(line.rstrip()) + 1)
        if any(_covers(text, location) for text in texts):
            continue
        alone = not line[: match.start()].strip()
        form = _FORM.match(match[2].strip())
        fault = _fault(form, whole_file=bool(match[1]), at_top=alone and _only_comments(lines[: number - 1]))
        if fault:
            faults.append(_finding("malformed-suppression", fault, location))
        elif form:
            target = 0 if match[1] else _below(lines, number) if alone else number
            names = tuple(name.strip() for name in form[1].split(","))
            found.append(Suppression(location, names, target, form[3] or "", form[2] or ""))
    return found, faults


def _fault(form: re.Match[str] | None, *, whole_file: bool, at_top: bool) -> str:
    """Why a comment silences nothing."""
    if form is None or not form[1].strip():
        return f"the comment silences nothing; {_HOW}"
    if not (form[3] or "").strip():
        return f"the comment gives no reason, so it silences nothing; {_HOW}"
    if form[2] and not is_date(form[2]):
        return f"`until={form[2]}` is not a date like `2027-01-31`, so the comment silences nothing"
    if whole_file and not at_top:
        return "`ignore-file` stands among the comments at the top of a file, so this one silences nothing"
    return ""


def _only_comments(lines: Sequence[str]) -> bool:
    return all(not line.strip() or line.lstrip().startswith("#") or line.strip() == "---" for line in lines)


def _below(lines: Sequence[str], number: int) -> int:
    """The next line that says something."""
    rest = enumerate(lines[number:], number + 1)
    return next((place for place, line in rest if line.strip() and not line.lstrip().startswith("#")), number)


def _scalars(tree: Data) -> Iterator[Location]:
    """The places of all keys and scalars: what looks like a comment in one of them is none."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _scalars(key)
            yield from _scalars(value)
    elif isinstance(tree, (list, TracedList)):
        for value in tree:
            yield from _scalars(value)
    elif isinstance(tree, (TracedScalar, TracedKey)):
        yield tree.location


def _covers(text: Location, comment: Location) -> bool:
    return (text.line, text.column) <= (comment.line, comment.column) < (text.end_line, text.end_column)


def silence(
    findings: Iterable[Finding], suppressions: Sequence[Suppression], mandatory: frozenset[str], today: str
) -> tuple[list[Finding], list[Silenced], list[Finding]]:
    """The findings that remain, those that are silenced, and what is wrong with the comments that do it."""
    live = [comment for comment in suppressions if not _is_expired(comment, today)]
    kept: list[Finding] = []
    silenced: list[Silenced] = []
    faults: list[Finding] = []
    for finding in findings:
        comment = next((comment for comment in live if comment.means(finding)), None)
        if comment is None:
            kept.append(finding)
        elif finding.rule in mandatory:
            kept.append(finding)
            message = f"`{finding.rule}` is mandatory here and cannot be silenced"
            faults.append(_finding("mandatory-suppressed", message, comment.location, Severity.ERROR))
        else:
            silenced.append(Silenced(finding, comment))
    for comment in suppressions if not today else ():
        if comment.until:
            message = f"whether `{comment.until}` is over depends on the day, and there is no commit to take it from"
            faults.append(
                _finding(
                    "unknown-current-date", f"{message}; say it with `--today`", comment.location, Severity.WARNING
                )
            )
    return kept, silenced, list(dict.fromkeys(faults))


def is_date(text: str) -> bool:
    """Whether a text is a date like `2027-01-31`."""
    return _DATE.match(text) is not None


def _is_expired(comment: Suppression, today: str) -> bool:
    return bool(comment.until and today and comment.until < today)


def idle(
    suppressions: Iterable[Suppression],
    silenced: Iterable[Silenced],
    known: Sequence[str],
    spared: frozenset[str],
    today: str,
    *,
    whole: bool,
) -> Iterator[Finding]:
    """Comments that name no rule, have expired, or silence nothing.

    The last only where everything was looked at, and not of rules that are spared.
    """
    used = {(each.suppression.location, each.finding.rule) for each in silenced}
    names = frozenset(known)
    for comment in suppressions:
        if _is_expired(comment, today):
            message = f"the suppression ended on `{comment.until}`; mend the fault, or give it another date"
            yield _finding("expired-suppression", message, comment.location, fix=_without(comment, comment.rules))
            continue
        current = {rule: canonical_rule_name(rule) for rule in comment.rules}
        idle_rules = [
            rule for rule, name in current.items() if name not in names or (comment.location, name) not in used
        ]
        for rule in idle_rules:
            if current[rule] not in names:
                message = f"there is no rule `{rule}`{did_you_mean(rule, list(known))}"
                yield _finding("unknown-suppression", message, comment.location, fix=_without(comment, [rule]))
            elif whole and current[rule] not in spared:
                message = f"`{rule}` finds nothing here; remove it"
                yield _finding("unused-suppression", message, comment.location, fix=_without(comment, idle_rules))


def _without(comment: Suppression, rules: Sequence[str]) -> Fix:
    """The comment less some rules; nothing if none is left."""
    left = ", ".join(rule for rule in comment.rules if rule not in rules)
    word = "ignore" if comment.line else "ignore-file"
    until = f" until={comment.until}" if comment.until else ""
    text = f"# jobgen: {word}[{left}]{until} -- {comment.reason}" if left else ""
    return Fix((TextEdit("comment", comment.location, text),), safe=True)


def _finding(
    rule: str, message: str, location: Location, severity: Severity = Severity.WARNING, fix: Fix | None = None
) -> Finding:
    return Finding(rule, "meta", severity, message, location, fix=fix)
