"""Where a template writes what is not YAML: its line, and a block of values whose lines get wrong blanks there."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

# An action alone in its line, which writes several lines.
_ALONE = lazy_pattern(r"( *)\{\{(-?)\s*((?:[^{}\"]|\"[^\"]*\")*?)\s*-?\}\}\s*\Z")
_INDENT = lazy_pattern(r"\|\s*(n?)indent\s+(\d{1,3})\Z")
_PLAIN_BLOCK = lazy_pattern(r"toYaml\s+[^|]*\Z|[^|]*\|\s*toYaml\Z")
# Actions that write no line, or more than one, or that join lines.
_UNEVEN = lazy_pattern(
    r"\{\{-|-\}\}|\{\{\s*(?:/\*|if|else|end|range|with|define|block|template|break|continue|\$\w*\s*(?:,.*)?:?=)"
    r"|\b(?:include|tpl|toYaml|toJson|toToml|indent|nindent|Files)\b"
)


class TemplateFault(NamedTuple):
    """The line of a template at which what it writes is not YAML, 1 if that is not certain, and what to write."""

    line: int
    advice: str = ""


def find_fault_at(text: str, line: int) -> TemplateFault:
    """Return the fault of a template whose line writes what is not YAML, or the one that follows it does."""
    lines = text.splitlines()
    for number in (line, line - 1):
        advice = _advise(lines[number - 1]) if 0 < number <= len(lines) else ""
        if advice:
            return TemplateFault(number, advice)
    return TemplateFault(line)


def find_fault(text: str, written: int) -> TemplateFault:
    """Return the fault of a template of which helm cannot read the line `written` of its output; 0 if none is named."""
    lines = text.splitlines()
    line = written if 0 < written <= len(lines) and _is_even(lines[: written - 1]) else 0
    blocks = {number: advice for number, each in enumerate(lines, 1) if (advice := _advise(each))}
    # The parser names the first line of a block, the one after what it cannot continue, or the one that was joined.
    joined = line + 1 if line and lines[line : line + 1] and "{{-" in lines[line] else 0
    for number in (line, line - 1, joined) if line else ():
        if number in blocks:
            return TemplateFault(number, blocks[number])
    if not line and len(blocks) == 1:
        return TemplateFault(*blocks.popitem())
    return TemplateFault(line or 1)


def _is_even(lines: Sequence[str]) -> bool:
    """Return True if the lines of a template are surely the lines of what it writes, in one document."""
    if lines and (not lines[0].strip() or "{{" in lines[0]):
        # Helm drops the blank lines at the start.
        return False
    return not any(
        each.startswith("---") or each.count("{{") != each.count("}}") or ("{{" in each and _UNEVEN.search(each))
        for each in lines
    )


def _advise(line: str) -> str:
    """Return what is wrong with a line whose action writes a block with wrong blanks; empty if nothing is known."""
    found = _ALONE.match(line)
    if found is None:
        return ""
    blanks, code = len(found[1]), found[3]
    indent = _INDENT.search(code)
    if indent is None:
        if blanks and not found[2] and _PLAIN_BLOCK.match(code):
            return f"only its first line has the {blanks} blanks before it; add `| nindent {blanks}`, and write `{{{{-`"
        return ""
    if indent[1]:
        return ""
    width = indent[2]
    if found[2]:
        return f"`{{{{-` joins its first line to the line before; write `nindent {width}`"
    return (
        f"`indent {width}` adds to the {blanks} blanks before it; write `nindent {width}` with `{{{{-`"
        if blanks
        else ""
    )
