"""Comments that suppress findings: `# jobgen: ignore[rule] -- reason` on the line, or alone on the line above.

`ignore-file[rule]` in the comments at the top applies to the whole file; `until=YYYY-MM-DD` before the dashes is the
last day on which the comment applies.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence

from jobgen.model.builtin_rules import LIMIT_RULES, UNREADABLE_RULES, canonical_rule_name, find_similar_rule
from jobgen.model.data import Location, Node, TracedKey, TracedList, TracedScalar
from jobgen.model.finding import Finding, Fix, Severity, TextEdit
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_SUPPRESSIONS
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import did_you_mean
from jobgen.model.times import is_date
from jobgen.repo.root import LAYER_FOLDERS, SETTINGS
from jobgen.reports import Suppressed
from jobgen.yamlio.read import read

# What a lint checked: a suppression or a baseline entry is obsolete only if all it could apply to was checked.

NO_SCHEMA_RULES = frozenset(("broken-schema", "kind-without-crd", "missing-schema", "old-api-version"))
"""Rules whose findings mean that an object was not compared with a schema; its other checks ran."""

HIDING_RULES = NO_SCHEMA_RULES | {"internal-error", "policy-not-evaluated", "too-many-errors", "wrong-type"}
"""Rules whose findings mean that other checks of the same object did not run."""

_LAYERS = (*(f"{folder}/" for folder in LAYER_FOLDERS), SETTINGS)


class Coverage(NamedTuple):
    """What a lint checked."""

    complete: bool
    """True if settings, overlays, kinds and policies are valid, and every environment was checked."""
    files: frozenset[str] = frozenset()
    """Files in which an object was not checked, or not by every check."""
    rules: frozenset[str] = frozenset()
    """Rules that did not run, or not everywhere."""
    cross_file: frozenset[str] = frozenset()
    """Rules that compare objects of several files."""
    without_schema: frozenset[str] = frozenset()
    """Objects that were not compared with a schema, as a baseline names them, and their files."""
    schema_rules: frozenset[str] = frozenset()

    def includes(self, file: str, rule: str, obj: str = "") -> bool:
        """Return True if everything was checked in which a rule could find something in a file, or in an object.

        Without a file, the object may be in any file.
        """
        if not self.complete or rule in self.rules or file in self.files:
            return False
        if not self.without_schema.isdisjoint((file, obj)):
            return False
        if self.without_schema and file.startswith(_LAYERS) and rule in self.schema_rules:
            return False
        # A value of a layer, or a comparison of jobs, may lead to findings in any file.
        return not self.files or (bool(file) and not file.startswith(_LAYERS) and rule not in self.cross_file)


def join_coverage(parts: Iterable[Coverage]) -> Coverage:
    """The coverage of several lints together."""
    complete, *others = zip(*parts, strict=True)
    return Coverage(all(complete), *(frozenset[str]().union(*several) for several in others))


_MARKER = lazy_pattern(r"#[ \t]*jobgen(?![\w./])", re.IGNORECASE)
# A directive. Without the colon it is prose, unless a rule follows.
_COMMENT = lazy_pattern(
    r"(?:^|(?<=\s))#\s*jobgen(?:\s*:\s*([\w-]*)|[ \t-]+(i\w*g[\w-]*)(?=\s*(?:\[|--|$)))(.*)$", re.IGNORECASE
)
_DIRECTIVES = ("ignore", "ignore-file")
_ARGUMENTS = lazy_pattern(r"\[([^\[\]]*)\](?:\s*+until=(\S+))?(?:\s*+--\s*+((?:.*\S)?))?\s*\Z")
_NAMES = lazy_pattern(r"[\[\s:=]*([a-z0-9]+(?:-[a-z0-9]+)+(?:\s*,\s*[a-z0-9]+(?:-[a-z0-9]+)+)*)")


class Suppression(NamedTuple):
    """A comment that suppresses rules on one line, or in the whole file (`line` is 0)."""

    location: Location
    rules: tuple[str, ...]
    line: int
    reason: str
    until: str
    last: int = 0
    """The last line of the text that begins below the line: in a text, there can be no comment."""
    is_fixable: bool = True
    """False in a template, which no fix changes."""

    def matches(self, finding: Finding) -> bool:
        """Return True if it suppresses a finding."""
        location = finding.location
        is_there = not self.line or self.line <= location.line <= max(self.line, self.last)
        return location.file == self.location.file and is_there and finding.rule in map(canonical_rule_name, self.rules)


def may_suppress(content: bytes) -> bool:
    """Return True if a file has a comment that begins with the name of jobgen."""
    return b"jobgen" in content.lower() and _MARKER.search(content.decode("latin-1")) is not None


def parse_suppressions(content: bytes, file: str) -> tuple[list[Suppression], list[Finding]]:
    """Return the comments of a file that suppress findings, and findings about malformed ones."""
    lines = content.decode("utf-8", "replace").splitlines()
    found: list[Suppression] = []
    errors: list[Finding] = []
    scalars: list[Location] | None = None
    content_lines = [number for number, line in enumerate(lines, 1) if not _is_comment(line)]
    top = next((number for number in content_lines if lines[number - 1].strip() != "---"), len(lines) + 1)
    for number, line in enumerate(lines, 1):
        match = _COMMENT.search(line)
        if match is None:
            continue
        if scalars is None:
            documents = read(content, file, traced=True).documents
            scalars = sorted(location for document in documents for location in _find_scalars(document.data))
        location = Location(file, number, match.start() + 1, number, len(line.rstrip()) + 1)
        # Text in a scalar is not a comment. Scalars do not overlap, except for aliases.
        at = bisect_right(scalars, (number, location.column), key=lambda scalar: (scalar.line, scalar.column))
        around = scalars[at - 1] if at else location
        # The text of a block scalar begins below its header, which may have a comment.
        is_header = around.line == number and line[around.column - 1] in "|>"
        if at and not is_header and (number, location.column) < (around.end_line, around.end_column):
            continue
        if len(found) + len(errors) >= MAX_SUPPRESSIONS:
            message = (
                f"the file has more than `{MAX_SUPPRESSIONS}` comments that suppress findings, and the others are "
                "ignored; turn the rules off in jobgen.yaml"
            )
            errors.append(_finding("malformed-suppression", message, location))
            break
        alone = not line[: match.start()].strip()
        arguments = _ARGUMENTS.match(match[3].strip())
        error = _find_error(match[1], match[2], match[3], arguments, at_top=alone and number <= top)
        if error:
            errors.append(_finding("malformed-suppression", error, location))
        elif arguments:
            # A comment on a line of its own is about the next line that is neither empty nor a comment.
            below = bisect_right(content_lines, number)
            target = content_lines[below] if alone and below < len(content_lines) else number
            names = tuple(name.strip() for name in arguments[1].split(","))
            line_number = 0 if match[1].lower() == "ignore-file" else target
            last = max((scalar.end_line - 1 for scalar in scalars if scalar.line == line_number), default=0)
            found.append(Suppression(location, names, line_number, arguments[3] or "", arguments[2] or "", last))
    return found, errors


_MAX_NAMED = 50
"""How many rules a comment can name."""


def _find_error(
    directive: str | None, without_colon: str | None, rest: str, arguments: re.Match[str] | None, *, at_top: bool
) -> str:
    """Return why a comment suppresses nothing; empty if it is valid."""
    named = _NAMES.match(rest)
    form = f"write `# jobgen: ignore[{named[1] if named else 'rule'}] -- reason`"
    if directive is None or directive.lower() not in _DIRECTIVES:
        if without_colon is not None:
            return f"the comment has no colon after `jobgen`, so it is ignored; {form}"
        hint = did_you_mean(directive or "", list(_DIRECTIVES)) or f"; {form}"
        return f"`{directive}` is not a jobgen directive, so the comment is ignored{hint}"
    if arguments is None or not arguments[1].strip():
        return f"the comment names no rule; {form}"
    if arguments[1].count(",") >= _MAX_NAMED:
        return f"the comment names more than `{_MAX_NAMED}` rules, so it is ignored; turn rules off in jobgen.yaml"
    if not (arguments[3] or "").strip():
        return f"the comment has no reason, so it is ignored; {form}"
    if arguments[2] and not is_date(arguments[2]):
        return f"`until={arguments[2]}` is not a date like `2027-01-31`, so the comment is ignored"
    if directive.lower() == "ignore-file" and not at_top:
        return "`ignore-file` is valid only in the comments at the top of a file, so this comment is ignored"
    return ""


def _is_comment(line: str) -> bool:
    """Return True if a line is empty or a comment."""
    text = line.lstrip()
    return not text or text.startswith("#")


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


class CommentFilter:
    """The comments of a lint: which findings they suppress, and what is wrong with those that suppress none."""

    def __init__(self, comments: Iterable[Suppression], mandatory: frozenset[str], today: str) -> None:
        self.today = today
        self.used: set[tuple[Location, str]] = set()
        """The comments that suppress something, with the rule of what they suppress."""
        self.errors: list[Finding] = []
        """What is wrong with comments, as far as that shows while they are applied."""
        self._mandatory = mandatory
        self._active: dict[tuple[str, int], list[Suppression]] = {}
        for comment in comments:
            if not _is_expired(comment, today):
                # Comments for a text are among those for the whole file.
                line = 0 if comment.last > comment.line else comment.line
                self._active.setdefault((comment.location.file, line), []).append(comment)
            if comment.until and not today:
                message = (
                    f"whether `{comment.until}` has passed is unknown without a commit; set the date with `--today`"
                )
                self.errors.append(_finding("unknown-current-date", message, comment.location, Severity.WARNING))

    def keep(self, findings: Sequence[Finding], hidden: list[Suppressed]) -> Sequence[Finding]:
        """Return the findings that no comment suppresses, and add the others to those that are hidden."""
        if not self._active:
            return findings
        kept: list[Finding] = []
        for finding in findings:
            file, line, *_ = finding.location
            # Comments for the line, and those for the whole file.
            here = (*self._active.get((file, line), ()), *self._active.get((file, 0), ()))
            comment = next((each for each in here if each.matches(finding)), None)
            if comment is not None and self._may_hide(comment, finding):
                self.used.add((comment.location, finding.rule))
                hidden.append(Suppressed(finding, comment.reason))
            else:
                kept.append(finding)
        return kept

    def _may_hide(self, comment: Suppression, finding: Finding) -> bool:
        """Return True if a comment may suppress a finding; else report the comment."""
        if finding.rule not in self._mandatory and not is_unreadable(finding):
            return True
        if finding.rule not in self._mandatory:
            message = f"`{finding.rule}` means that the file was not read, so it cannot be suppressed; fix the file"
        elif finding.rule in LIMIT_RULES:
            advice = "so a comment cannot suppress it; ask for an exception in jobgen.yaml"
            message = f"`{finding.rule}` is a limit that others set, {advice}"
        else:
            message = f"`{finding.rule}` is mandatory in this repository and cannot be suppressed"
        self.errors.append(_finding("mandatory-suppressed", message, comment.location, Severity.ERROR))
        return False


def is_unreadable(finding: Finding) -> bool:
    """Return True if a finding means that a file was not read, so that it cannot be suppressed."""
    if finding.rule in UNREADABLE_RULES and finding.category in ("yaml", "meta"):
        return True
    # A template may be no YAML at all.
    return "yaml-syntax" in finding.also_reported_by


def _is_expired(comment: Suppression, today: str) -> bool:
    return bool(comment.until and today and comment.until < today)


def find_unused(
    suppressions: Iterable[Suppression],
    used: Collection[tuple[Location, str]],
    known: Sequence[str],
    coverage: Coverage,
    today: str,
) -> Iterator[Finding]:
    """Report comments that name an unknown rule, have expired, or suppress nothing.

    Nothing is reported unless everything that a comment could apply to was checked. `used` are the comments that
    suppress something, with its rule; `known` are all rules, also those that are turned off.
    """
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


def write_rules(comment: Suppression, rules: Iterable[str] = ()) -> Fix | None:
    """Return the fix that gives a comment other rules, or removes it if there are none; None in a template."""
    if not comment.is_fixable:
        return None
    left = ", ".join(dict.fromkeys(filter(None, rules)))
    keyword = "ignore" if comment.line else "ignore-file"
    until = f" until={comment.until}" if comment.until else ""
    text = f"# jobgen: {keyword}[{left}]{until} -- {comment.reason}" if left else ""
    return Fix((TextEdit("comment", comment.location, text),), safe=True)


def _finding(
    rule: str, message: str, location: Location, severity: Severity = Severity.WARNING, fix: Fix | None = None
) -> Finding:
    return Finding(rule, "meta", severity, message, location, fix=fix)
