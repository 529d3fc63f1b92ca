"""Variables that a program fills in before a file is applied: what is wrong with their values is not known yet."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

from jobgen.k8s.placeholders import find_placeholders
from jobgen.model.finding import Finding, Related, Severity, quoted_values
from jobgen.model.lazy_re import lazy_pattern
from jobgen.recognize.tree import FileTree
from jobgen.reports.placeholders import VALUE_RULES, find_placeholder

RULE = "unjudged-variable"

_TEMPLATE_NAME = lazy_pattern(r"(?:\A|[-_.])(?:template|tmpl|tpl)s?(?:[-_.]|\Z)")
_TOOL = lazy_pattern(
    rb"^[ \t]{0,80}#[^\n]{0,200}?\b(?:envsubst|sed -|yq |gomplate|ytt|jinja|templat)", re.IGNORECASE | re.MULTILINE
)
# Programs that fill in values, as scripts call them.
_FILLING = (b"envsubst", b"sed ", b"yq ", b".replace(", b"perl -", b"ReplaceAll", b"gomplate", b"templatefile(")
_STYLES = ("dollar", "handlebars")
"""How placeholders are written that programs fill in; the others wait for a person, unless a script replaces them."""
_BLOCK = lazy_pattern(r"[^\n]*[|>][-+]?[ \t]*\n")
_BLOCK_LINES = 3
_MIN_TOKEN = 5
_MAX_RELATED = 5


def report_variables(findings: Sequence[Finding], tree: FileTree) -> list[Finding]:
    """Return the findings, with one info for each file instead of those about values that a program fills in."""
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        by_file.setdefault(finding.location.file, []).append(finding)
    kept = [each for file, several in by_file.items() for each in _settle(file, several, tree)]
    return sorted(kept, key=lambda found: (found.location, found.rule, found.message, found.env))


def _settle(file: str, findings: list[Finding], tree: FileTree) -> Iterator[Finding]:
    """Return the findings of a file, with an info about its variables if a program fills them in."""
    named = [(finding, find_variable(finding) or _find_hidden(finding, tree)) for finding in findings]
    if not any(variable for _, variable in named) and not any(map(find_placeholder, findings)):
        yield from findings
        return
    # A variable where the cluster expects a name or a number shows that the file is filled in; then all of them are.
    is_template = any(variable and finding.rule in VALUE_RULES for finding, variable in named)
    is_template = is_template or _says_template(file, tree)
    filled: list[tuple[Finding, str]] = []
    for finding, variable in named:
        token = variable if is_template else ""
        token = token or _find_replaced(finding, tree)
        if token:
            filled.append((finding, token))
        else:
            yield finding
    if filled:
        yield _report(filled)


def find_variable(finding: Finding) -> str:
    """Return the variable of a program in the values that a finding is about; empty if there is none."""
    found = (each for value in quoted_values(finding.message) for each in find_placeholders(value))
    return next((each.token for each in found if each.style in _STYLES), "")


def _find_hidden(finding: Finding, tree: FileTree) -> str:
    """Return the variable on the line of a value that is not shown, because it may be a secret; empty without one."""
    if "…" not in finding.message or finding.rule not in VALUE_RULES:
        return ""
    lines = tree.read(finding.location.file).content.decode("utf-8", "replace").split("\n")
    # A block of text begins below its key.
    start = finding.location.line - 1
    text = "\n".join(lines[start : start + 1 + _BLOCK_LINES])
    text = text if _BLOCK.match(text) else text.partition("\n")[0]
    return next((each.token for each in find_placeholders(text) if each.style in _STYLES), "")


def _says_template(file: str, tree: FileTree) -> bool:
    """Return True if the name of a file, a comment in it, or a script beside it says that it is filled in."""
    name = posixpath.basename(file)
    if _TEMPLATE_NAME.search(name) or _TOOL.search(tree.read(file).content):
        return True
    return bool(tree.find_mention(file, b"envsubst", name.encode("utf-8", "surrogateescape")))


def _find_replaced(finding: Finding, tree: FileTree) -> str:
    """Return the placeholder that a script near the file replaces; empty if a person must."""
    token = find_placeholder(finding)
    bare = token.strip("<>{}$ ")
    if len(bare) < _MIN_TOKEN:
        return ""
    found = any(
        tree.find_script(finding.location.file, bare.encode("utf-8", "surrogateescape"), filling)
        for filling in _FILLING
    )
    return token if found else ""


def _report(filled: Sequence[tuple[Finding, str]]) -> Finding:
    ordered = sorted(filled, key=lambda pair: pair[0].location)
    names = list(dict.fromkeys(token for _, token in ordered))
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    verb = "is" if len(names) == 1 else "are"
    message = f"`{names[0]}`{more} {verb} filled in before the file is applied, so these values were not judged"
    first = ordered[0][0]
    others: Iterable[tuple[Finding, str]] = (each for each in ordered if each[0].location != first.location)
    related = dict.fromkeys(Related(finding.location, f"`{token}`") for finding, token in others)
    return Finding(
        RULE,
        "meta",
        Severity.INFO,
        message,
        first.location,
        related=tuple(related)[:_MAX_RELATED],
        object=first.object,
        env=first.env,
    )
