"""Reports unfilled placeholders instead of what they cause: their values are not wrong one by one.

A file with a placeholder that the cluster refuses is a template. In any file, one finding names all placeholders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TypeAlias

from jobgen.k8s.placeholders import find_placeholders
from jobgen.model.finding import Finding, Related, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.reports.entries import RANK
from jobgen.spec.filled_names import PLACEHOLDERS

RULE = "unfilled-placeholder"

# A value that begins with `{name}`, which is a mapping in YAML, or no YAML if text follows.
_BRACES = lazy_pattern(r"(?:: |- )\s*(\{[A-Za-z][\w.-]*\})(?=\S|\s*(?:#|\Z))")
_BRACES_RULES = frozenset(("wrong-type", "yaml-syntax"))
# Rules that refuse a value, or text, because of what it is.
VALUE_RULES = frozenset(
    """bad-job-name invalid-annotation invalid-config-key invalid-container-name invalid-env-name invalid-host-name
    invalid-label invalid-name invalid-object-name invalid-port-name invalid-quantity invalid-value invalid-volume-name
    invalid-volume-path malformed-image missing-main-container rejected-by-operator template-text unfilled-placeholder
    unknown-enum-value unsupported-value wrong-type yaml-syntax""".split()
)
# Rules that refuse capitals in a name, or text in place of a number.
_CAPITALS_RULES = frozenset(
    """invalid-container-name invalid-host-name invalid-name invalid-object-name invalid-port-name invalid-quantity
    invalid-volume-name malformed-image wrong-type""".split()
)
_ASSIGNED_NAME = lazy_pattern(r"(?<!\S)[A-Za-z_][A-Za-z0-9_]* ?=")
"""The name of a variable in `PROJECT=bert`, which is written where a mapping belongs: it is no value."""
_NAMES_FIELD = frozenset(("invalid-quantity", "wrong-type"))
"""Rules whose messages begin with the name of the field."""
_VALUES_OF_FIELD = _NAMES_FIELD | {"invalid-value"}
_VARIABLE = lazy_pattern(r"\$\{\{ *matrix\.[\w.-]+ *\}{0,2}")
"""A variable of a sweep, which jobgen fills in."""
_SNAKE = lazy_pattern(r"[a-z]+(?:_[a-z]+)+\Z")
_SERIES = lazy_pattern(r"\b[A-Z]_[A-Z][A-Z0-9_]+\b")
"""A name of a series that is told from others by its first letter."""
_CAPITALS = lazy_pattern(r"(?<![A-Za-z0-9])[A-Z][A-Z0-9]*(?:[_-][A-Z0-9]+)*(?![A-Za-z0-9])")
# The last part of capitals that say what is to be written in their place, and parts that another one follows.
_NOUNS = frozenset(
    """ACCOUNT BUCKET CAPACITY CERT CERTIFICATE CLUSTER CRT DOMAIN ENV ENVIRONMENT HOST ID IMAGE NAME NAMESPACE
    PATH PORT PROJECT REGION REGISTRY REPO REPOSITORY TAG TEAM TENANT URL USER USERNAME VERSION ZONE""".split()
)
_REQUESTS = frozenset(("AUTOREPLACE", "FILLIN", "REPLACE", "REPLACED", "TODO"))
"""Parts of capitals that say that something is to be written in their place."""
_OWNERS = frozenset(("ACCOUNT", "BUCKET", "CLUSTER", "NAMESPACE", "PROJECT"))

_Found: TypeAlias = "tuple[str, Finding]"
"""A placeholder, and the finding about it."""


def group_placeholders(
    findings: Iterable[Finding], read_text: Callable[[str], str]
) -> tuple[list[Finding], dict[Finding, list[Finding]]]:
    """Return the findings that are not about placeholders, and those about placeholders, each with what it replaces.

    A message may quote other tools, so a placeholder counts only if it stands in the file, which `read_text` reads.
    """
    read_words = cache(lambda file: " ".join(read_text(file).split()))
    read_lines = cache(lambda file: read_text(file).split("\n"))
    left: list[Finding] = []
    by_file: dict[tuple[str, str], list[_Found]] = {}
    for finding in findings:
        file = finding.location.file
        token = find_placeholder(finding) or _find_braces(finding, read_lines)
        if token and (finding.rule == RULE or " ".join(token.split()) in read_words(file)):
            by_file.setdefault((file, finding.env), []).append((token, finding))
        else:
            left.append(finding)
    grouped: dict[Finding, list[Finding]] = {}
    for (file, _), several in by_file.items():
        first = several[0][1]
        # These say themselves that a single value is a placeholder.
        is_mild = first.rule == "malformed-image" and first.severity is not Severity.ERROR
        if len(several) == 1 and (is_mild or first.rule == "template-text"):
            left.append(first)
            continue
        grouped[_report(several, read_text(file))] = [finding for _, finding in several]
    return left, grouped


def find_placeholder(finding: Finding) -> str:
    """Return what looks like a placeholder in the values that a finding is about; empty if nothing does."""
    if finding.rule not in VALUE_RULES or finding.cause == "no placeholder":
        return ""
    if finding.rule == RULE:
        return finding.values[0]
    values = (_VARIABLE.sub("", value) for value in _list_quoted(finding))
    tokens = (found.token for value in values for found in find_placeholders(value))
    # An overlay's `{team}` is filled by jobgen.
    written = next((token for token in tokens if token.strip("{}") not in PLACEHOLDERS), "")
    return written or next(_list_words(finding), "")


def find_capitals(finding: Finding) -> list[str]:
    """Return the words in capitals in the values that a finding refuses: a script or a person may replace them."""
    # What may be meant instead is in the advice.
    is_text = finding.rule == "invalid-value" and not finding.advice
    if (finding.rule not in _CAPITALS_RULES and not is_text) or finding.cause == "no placeholder":
        return []
    # A variable `VERSION` whose value is refused is no placeholder.
    quoted = _list_quoted(finding)
    values = quoted[1:2] if is_text else quoted[1:] if finding.rule in _NAMES_FIELD else quoted
    return [word for value in values for word in _CAPITALS.findall(value)]


def _list_quoted(finding: Finding) -> Sequence[str]:
    """Return the values that a finding quotes, without the names of variables and with them what to write instead."""
    if finding.rule != "wrong-type":
        return finding.values
    wrong = finding.wrong_values
    values = tuple(_ASSIGNED_NAME.sub("", value) if "=" in value else value for value in wrong)
    return finding.values if values == wrong else values


def find_snake(finding: Finding) -> str:
    """Return the words with `_` that a finding refuses, which are names of variables in a template."""
    if not finding.rule.startswith("invalid-"):
        return ""
    values = finding.values[1:] if finding.rule in _VALUES_OF_FIELD else finding.values
    return next(filter(_SNAKE.match, values), "")


def _find_braces(finding: Finding, read_lines: Callable[[str], list[str]]) -> str:
    """Return the `{name}` that makes a line a mapping, or no YAML; empty if another fault does."""
    if finding.rule not in _BRACES_RULES or finding.cause in ("no list", "no placeholder"):
        return ""
    line = read_lines(finding.location.file)[finding.location.line - 1 : finding.location.line]
    match = _BRACES.search(line[0]) if line else None
    return match[1] if match and match[1].strip("{}") not in PLACEHOLDERS else ""


def _report(several: list[_Found], text: str) -> Finding:
    ordered = sorted(several, key=lambda found: found[1].location)
    first = ordered[0][1]
    others = {finding.location: token for token, finding in ordered if finding.location != first.location}
    related = tuple(Related(location, f"`{token}`") for location, token in [*others.items()][:5])
    causes = {finding.rule for _, finding in several} - {RULE}
    if not causes:
        tokens = list(dict.fromkeys(token for token, _ in ordered))
        said = f"{_list_names(tokens)} are placeholders; fill them in"
        left = first._replace(related=related)
        return left if len(tokens) < 2 else left._replace(message=said, evidence=())
    every = dict.fromkeys(name for token, finding in ordered for name in (token, *_list_words(finding)))
    # The word in a token is no token of its own.
    # Others of a series such as `V_KSA` may stand where any text is valid.
    for prefix in {name[:2] for name in every if _SERIES.fullmatch(name)}:
        every.update(dict.fromkeys(name for name in _SERIES.findall(text) if name.startswith(prefix)))
    names = [name for name in every if not any(name != other and other.strip("<>{}$ ") == name for other in every)]
    message = (
        f"the file is a template: {_list_names(names)} must be filled in by a person or a script; "
        "fill in the values, or exclude the file"
    )
    return Finding(
        RULE,
        "yaml",
        min((finding.severity for _, finding in several), key=RANK.__getitem__),
        message,
        first.location,
        env=first.env,
        related=related,
        # The file as a whole: the finding is not new while its placeholders are filled in one after the other.
        evidence=(),
        also_reported_by=tuple(sorted(causes)),
    )


def _list_words(finding: Finding) -> Iterator[str]:
    """Yield the words in capitals that describe values. Any others may be names that are spelled wrong."""
    return filter(_is_description, find_capitals(finding))


def _is_description(word: str) -> bool:
    """Return True for `NODE_NAME`, `CLUSTER_NAME` and the like, and for `V_KSA`, which begins as variables do."""
    parts = word.split("_")
    last = parts[-1].rpartition("-")[2]
    is_variable = len(parts[0]) == 1 and len(word) > 3 and len(parts) > 1
    is_request = not _REQUESTS.isdisjoint(parts)
    return last in _NOUNS or not _OWNERS.isdisjoint(parts[:-1]) or is_variable or is_request


_MAX_NAMED = 8


def _list_names(names: list[str]) -> str:
    shown = [f"`{name}`" for name in names[:_MAX_NAMED]]
    if len(names) > _MAX_NAMED:
        shown = [*shown[:-1], f"{len(names) - _MAX_NAMED + 1} more"]
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]
