"""Templates of Helm and Jinja: text that becomes YAML only when it is rendered."""

from __future__ import annotations

from jobgen.model.data import Location
from jobgen.model.finding import Finding
from jobgen.model.lazy_re import lazy_pattern
from jobgen.yamlio.read.scalars import quote

# What these faults have in common: a template does not get past them.
_FAULTS = frozenset(("yaml-syntax", "invalid-key"))
_TEMPLATE = lazy_pattern(r"\{\{(?:.*?\}\}|[^}]*\Z)|\{%(?:.*?%\}|[^}]*\Z)")
# A line may be as long as a file.
_LOOKED_AT = 1000
# Outside quotes and comments, for what stands in them does not break YAML; quotes inside a template are its own.
_PASSED_OVER = lazy_pattern(r""""(?:[^"\\]|\\.)*"|'[^']*'|(?:\A|(?<=\s))#.*""")


def blaming_template(fault: Finding, line: str, first_column: int = 0) -> Finding:
    """The fault of a line, told of the template text there if that is what it comes from."""
    if fault.rule not in _FAULTS:
        return fault
    found = _template(line[:_LOOKED_AT])
    if found is None:
        return fault
    start, end = found
    message = f"this is template text ({quote(line[start:end])}); render it first, or quote it"
    file, line_number = fault.location[:2]
    location = Location(file, line_number, first_column + start + 1, line_number, first_column + end + 1)
    return fault._replace(rule="template-text", message=message, location=location)


def _template(line: str) -> tuple[int, int] | None:
    """Where the first template text of a line begins and ends."""
    at = 0
    while template := _TEMPLATE.search(line, at):
        passed = next((part for part in _PASSED_OVER.finditer(line, at) if part.end() > template.start()), None)
        if passed is None or passed.start() > template.start():
            return template.span()
        at = passed.end()
    return None
