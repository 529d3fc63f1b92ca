"""Comments that suppress findings: `# jobgen: ignore[rule] -- reason` on the line, or alone on the line above.

`ignore-file[rule]` in the comments at the top applies to the whole file; `until=YYYY-MM-DD` before the dashes is the
last day on which the comment applies.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from jobgen.model.builtin_rules import LIMIT_RULES, UNREADABLE_RULES
from jobgen.model.data import Location, Node, TracedKey, TracedList, TracedScalar
from jobgen.model.finding import Finding, Fix, Severity, TextEdit
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_SUPPRESSIONS
from jobgen.model.rule_names import canonical_rule_name, find_similar_rule
from jobgen.model.suggest import did_you_mean
from jobgen.reports.coverage import Coverage
from jobgen.yamlio.read import read

_MARKER = lazy_pattern(r"#[ \t]*jobgen(?![\w./])", re.IGNORECASE)
# A directive. Without the colon it is prose, unless a rule follows.
_COMMENT = lazy_pattern(
    r"(?:^|(?<=\s))#\s*jobgen(?:\s*:\s*([\w-]*)|[ \t-]+(i\w*g[\w-]*)(?=\s*(?:\[|--|$)))(.*)$", re.IGNORECASE
)
_DIRECTIVES = ("ignore", "ignore-file")
_ARGUMENTS = lazy_pattern(r"\[([^\[\]]*)\](?:\s*+until=(\S+))?(?:\s*+--\s*+((?:.*\S)?))?\s*\Z")
_DATE = lazy_pattern(r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])\Z")
_SYNTAX = "write `# jobgen: ignore[rule] -- reason`"


class Suppression(NamedTuple):
    """A comment that suppresses rules on one line, or in the whole file (`line` is 0)."""

    location: Location
    rules: tuple[str, ...]
    line: int
    reason: str
    until: str

    def matches(self, finding: Finding) -> bool:
        """Return True if it suppresses a finding."""
        here = finding.location.file == self.location.file and (not self.line or finding.location.line == self.line)
        return here and finding.rule in map(canonical_rule_name, self.rules)


class SuppressedFinding(NamedTuple):
    """A finding and the comment that suppresses it."""

    finding: Finding
    suppression: Suppression


def may_suppress(content: bytes) -> bool:
    """Return True if a file has a comment that begins with the name of jobgen."""
    return b"jobgen" in content.lower() and _MARKER.search(content.decode("latin-1")) is not None


def parse_suppressions(content: bytes, file: str) -> tuple[list[Suppression], list[Finding]]:
    """Return the comments of a file that suppress findings, and findings about malformed ones."""
    lines = content.decode("utf-8", "replace").splitlines()
    found: list[Suppression] = []
    errors: list[Finding] = []
    scalars: list[Location] | None = None
    content_lines = (number for number, line in enumerate(lines) if not _is_comment(line) and line.strip() != "---")
    top = next(content_lines, len(lines))
    targets = _next_content_lines(lines)
    for number, line in enumerate(lines, 1):
        match = _COMMENT.search(line)
        if match is None:
            continue
        if scalars is None:
            scalars = sorted(
                location
                for document in read(content, file, traced=True).documents
                for location in _find_scalars(document.data)
            )
        location = Location(file, number, match.start() + 1, number, len(line.rstrip()) + 1)
        if _is_inside(location, scalars):
            continue
        if len(found) + len(errors) >= MAX_SUPPRESSIONS:
            message = (
                f"the file has more than `{MAX_SUPPRESSIONS}` comments that suppress findings, and the others are "
                "ignored; turn the rules off in jobgen.yaml"
            )
            errors.append(_finding("malformed-suppression", message, location))
            break
        alone = not line[: match.start()].strip()
        directive, arguments = (match[1] or "").lower(), _ARGUMENTS.match(match[3].strip())
        whole_file = directive == "ignore-file"
        error = _find_directive_error(match[1], match[2])
        if not error:
            at_top = alone and whole_file and number - 1 <= top
            error = _find_error(arguments, whole_file=whole_file, at_top=at_top)
        if error:
            errors.append(_finding("malformed-suppression", error, location))
        elif arguments:
            target = 0 if whole_file else targets[number - 1] if alone else number
            names = tuple(name.strip() for name in arguments[1].split(","))
            found.append(Suppression(location, names, target, arguments[3] or "", arguments[2] or ""))
    return found, errors


def _find_directive_error(directive: str | None, without_colon: str | None) -> str:
    """Return what is wrong with the word after `jobgen:`, or with the missing colon; empty if it is a directive."""
    if directive is not None and directive.lower() in _DIRECTIVES:
        return ""
    if without_colon is not None:
        return f"the comment has no colon after `jobgen`, so it is ignored; {_SYNTAX}"
    hint = did_you_mean(directive or "", list(_DIRECTIVES)) or f"; {_SYNTAX}"
    return f"`{directive}` is not a directive of jobgen, so the comment is ignored{hint}"


def _find_error(arguments: re.Match[str] | None, *, whole_file: bool, at_top: bool) -> str:
    """Return why a comment suppresses nothing; empty if it is valid."""
    if arguments is None or not arguments[1].strip():
        return f"the comment names no rule; {_SYNTAX}"
    if not (arguments[3] or "").strip():
        return f"the comment has no reason, so it is ignored; {_SYNTAX}"
    if arguments[2] and not is_date(arguments[2]):
        return f"`until={arguments[2]}` is not a date like `2027-01-31`, so the comment is ignored"
    if whole_file and not at_top:
        return "`ignore-file` is valid only in the comments at the top of a file, so this comment is ignored"
    return ""


def _is_comment(line: str) -> bool:
    """Return True if a line is empty or a comment."""
    text = line.lstrip()
    return not text or text.startswith("#")


def _next_content_lines(lines: Sequence[str]) -> list[int]:
    """For each line, the number of the next one that is neither empty nor a comment; its own if there is none."""
    found: list[int] = []
    content = 0
    for number in range(len(lines), 0, -1):
        found.append(content or number)
        if not _is_comment(lines[number - 1]):
            content = number
    return found[::-1]


def _find_scalars(tree: Node) -> Iterator[Location]:
    """Yield the locations of all keys and scalars: text in them that looks like a comment is not one."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _find_scalars(key)
            yield from _find_scalars(value)
    elif isinstance(tree, (list, TracedList)):
        for value in tree:
            yield from _find_scalars(value)
    elif isinstance(tree, (TracedScalar, TracedKey)):
        yield tree.location


def _is_inside(comment: Location, scalars: Sequence[Location]) -> bool:
    """Return True if a scalar contains the comment; scalars are sorted and do not overlap, except for aliases."""
    at = bisect_right(scalars, (comment.line, comment.column), key=lambda scalar: (scalar.line, scalar.column))
    if not at:
        return False
    last = scalars[at - 1]
    return (comment.line, comment.column) < (last.end_line, last.end_column)


def apply_suppressions(
    findings: Iterable[Finding], suppressions: Sequence[Suppression], mandatory: frozenset[str], today: str
) -> tuple[list[Finding], list[SuppressedFinding], list[Finding]]:
    """Return the remaining findings, the suppressed ones, and findings about the comments themselves."""
    active: dict[tuple[str, int], list[Suppression]] = {}
    for comment in suppressions:
        if not _is_expired(comment, today):
            active.setdefault((comment.location.file, comment.line), []).append(comment)
    kept: list[Finding] = []
    suppressed: list[SuppressedFinding] = []
    errors: list[Finding] = []
    for finding in findings:
        location = finding.location
        # Comments for the line, and those for the whole file.
        here = (*active.get((location.file, location.line), ()), *active.get((location.file, 0), ()))
        suppressing = next((each for each in here if each.matches(finding)), None)
        if suppressing is None:
            kept.append(finding)
        elif finding.rule in mandatory or is_unreadable(finding):
            kept.append(finding)
            message = _explain_mandatory(finding.rule, mandatory)
            errors.append(_finding("mandatory-suppressed", message, suppressing.location, Severity.ERROR))
        else:
            suppressed.append(SuppressedFinding(finding, suppressing))
    for comment in suppressions if not today else ():
        if comment.until:
            message = f"whether `{comment.until}` has passed is unknown without a commit; set the date with `--today`"
            errors.append(_finding("unknown-current-date", message, comment.location, Severity.WARNING))
    return kept, suppressed, list(dict.fromkeys(errors))


def _explain_mandatory(rule: str, mandatory: frozenset[str]) -> str:
    if rule not in mandatory:
        return f"`{rule}` means that the file was not read, so it cannot be suppressed; fix the file"
    if rule in LIMIT_RULES:
        return f"`{rule}` is a limit of others, so a comment cannot suppress it; ask for an exception in jobgen.yaml"
    return f"`{rule}` is mandatory in this repository and cannot be suppressed"


def is_unreadable(finding: Finding) -> bool:
    """Return True if a finding means that a file was not read, so that it cannot be suppressed."""
    if finding.rule in UNREADABLE_RULES and finding.category in ("yaml", "meta"):
        return True
    # A template may be no YAML at all.
    return "yaml-syntax" in finding.also_reported_by


def is_date(text: str) -> bool:
    """Return True if a text is a date in the format `2027-01-31`."""
    return _DATE.match(text) is not None


def _is_expired(comment: Suppression, today: str) -> bool:
    return bool(comment.until and today and comment.until < today)


def find_unused(
    suppressions: Iterable[Suppression],
    suppressed: Iterable[SuppressedFinding],
    known: Sequence[str],
    coverage: Coverage,
    today: str,
) -> Iterator[Finding]:
    """Report comments that name an unknown rule, have expired, or suppress nothing.

    Nothing is reported unless everything that a comment could apply to was checked. `known` are all rules, also those
    that are turned off.
    """
    used = {(each.suppression.location, each.finding.rule) for each in suppressed}
    names = frozenset(known)
    for comment in suppressions:
        if _is_expired(comment, today):
            if not all(coverage.includes(comment.location.file, canonical_rule_name(rule)) for rule in comment.rules):
                continue
            message = f"the suppression expired on `{comment.until}`; fix the problem, or change the date"
            yield _finding("expired-suppression", message, comment.location, fix=write_rules(comment))
            continue
        current = {rule: canonical_rule_name(rule) for rule in comment.rules}
        unused = [
            rule
            for rule, name in current.items()
            if (comment.location, name) not in used and coverage.includes(comment.location.file, name)
        ]
        similar = {rule: find_similar_rule(rule, known) for rule in unused if current[rule] not in names}
        # All findings about a comment have the same fix, because it replaces the whole comment.
        fix = write_rules(comment, [similar.get(rule, "") if rule in unused else rule for rule in comment.rules])
        for rule in unused:
            if rule in similar:
                hint = f"; did you mean `{similar[rule]}`?" if similar[rule] else ""
                message = f"there is no rule `{rule}`{hint}"
                yield _finding("unknown-suppression", message, comment.location, fix=fix)
            else:
                message = f"`{rule}` finds nothing here; remove it from the comment"
                yield _finding("unused-suppression", message, comment.location, fix=fix)


def write_rules(comment: Suppression, rules: Iterable[str] = ()) -> Fix:
    """Return the fix that gives a comment other rules, or removes it if there are none."""
    left = ", ".join(dict.fromkeys(filter(None, rules)))
    keyword = "ignore" if comment.line else "ignore-file"
    until = f" until={comment.until}" if comment.until else ""
    text = f"# jobgen: {keyword}[{left}]{until} -- {comment.reason}" if left else ""
    return Fix((TextEdit("comment", comment.location, text),), safe=True)


def _finding(
    rule: str,
    message: str,
    location: Location,
    severity: Severity = Severity.WARNING,
    fix: Fix | None = None,
) -> Finding:
    return Finding(rule, "meta", severity, message, location, fix=fix)
