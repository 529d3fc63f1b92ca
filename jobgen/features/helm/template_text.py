"""The text of a template: its actions, the values that a line reads, and a copy of it whose output tells the lines."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

Path = tuple[str, ...]
ANY_ITEM, ANY_KEY = "[]", "{}"
"""The steps from a list or mapping to any of its items, and to any key of a mapping, in the path of a value."""

# An action without the text in quotes is read to its end; a comment has no quotes.
_COMMENT = lazy_pattern(r"\{\{(?:-\s)?\s*/\*.*?\*/\s*-?\}\}", re.DOTALL)
_ACTION_PART = lazy_pattern(r"\}\}|\"(?:[^\"\\\n]|\\.)*\"|`[^`]*`|'(?:[^'\\\n]|\\.)*'")
_KEYWORD = lazy_pattern(r"(if|else|end|range|with|define|block|break|continue)\b|\$\w*\s*(?:,\s*\$\w+\s*)?:?=")
# A line of a named template that is YAML: other named templates are names and conditions, which a mark would change.
_ENTRY = lazy_pattern(r"\s*(?:- +)*[\"']?[\w./-]+[\"']?:(?:\s|\Z|\{)")
_BLOCK = lazy_pattern(r"\b(?:toYaml|nindent|indent)\b")


class Action(NamedTuple):
    """An action of a template: what is between two pairs of braces."""

    start: int
    end: int
    code: str
    """Without braces and trim marks; empty for a comment."""
    trims_after: bool
    keyword: str
    """What it begins with: `=` for the definition of a variable, `#` for a comment; empty if it writes something."""


def read_actions(text: str) -> list[Action] | None:
    """Return the actions of a template in their order; None if one of them does not end."""
    found: list[Action] = []
    at = text.find("{{")
    while at >= 0:
        comment = _COMMENT.match(text, at)
        if comment:
            found.append(Action(at, comment.end(), "", comment[0].endswith("-}}"), "#"))
        else:
            part = _ACTION_PART.search(text, at + 2)
            while part and part[0] != "}}":
                part = _ACTION_PART.search(text, part.end())
            if part is None:
                return None
            code = text[at + 2 : part.start()]
            trims_after = code.endswith("-") and code[-2:-1].isspace()
            code = code[1:] if code.startswith("-") and code[1:2].isspace() else code
            code = code.removesuffix("-" if trims_after else "").strip()
            found.append(Action(at, part.end(), code, trims_after, _read_keyword(code)))
        at = text.find("{{", found[-1].end)
    return found


def _read_keyword(code: str) -> str:
    found = _KEYWORD.match(code)
    return "" if found is None and code else "#" if found is None else found[1] or "="


class Template(NamedTuple):
    """A template and its actions."""

    text: str
    actions: Sequence[Action]
    starts: Sequence[int]
    """Where its lines begin."""

    def line_at(self, offset: int) -> int:
        """Return the number of the line at an offset."""
        return bisect_right(self.starts, offset)


@lru_cache(maxsize=256)
def read_template(text: str) -> Template | None:
    """Read a template; None if its actions cannot be separated from its text."""
    actions = read_actions(text)
    if actions is None:
        return None
    return Template(text, actions, [0, *(found.end() for found in re.finditer("\n", text))])


# Marks: white space that a line of a template writes after its text.

_BITS = 17
_MARK = lazy_pattern(rf"\t[ \t]{{{_BITS}}}")
MAX_MARKS = 1 << _BITS


_WRITE, _READ = str.maketrans("01", " \t"), str.maketrans(" \t", "01")


def write_mark(number: int) -> str:
    """Return the white space that stands for a number."""
    return "\t" + f"{number:0{_BITS}b}".translate(_WRITE)


def find_marks(line: str) -> list[int]:
    """Return the numbers that are marked in a line of output."""
    return [int(found[1:].translate(_READ), 2) for found in _MARK.findall(line)] if "\t" in line else []


def remove_marks(line: str) -> str:
    """Return a line of output without marks, and without white space at its end."""
    return _MARK.sub("", line).rstrip() if "\t" in line else line.rstrip()


class Marked(NamedTuple):
    """A copy of a template in which the text of each line is followed by a mark."""

    text: str
    inserted: Sequence[tuple[int, str]]
    """What was inserted where in the template."""


def mark_lines(template: Template, first: int, name: str) -> Marked:
    """Return a copy of a template in which the template `name` writes the marks, or nothing: `first`, and the line."""
    # What follows an action is trimmed as before.
    inserted = [
        (place, f'{{{{ template "{name}" "{write_mark(first + line)}" {"-" if trims_after else ""}}}}}')
        for place, line, trims_after in _Places(template).list_all()
    ]
    text = template.text
    places = [0, *(place for place, _ in inserted), len(text)]
    marks = [*(mark for _, mark in inserted), ""]
    parts = (f"{text[start:end]}{mark}" for (start, end), mark in zip(pairwise(places), marks, strict=True))
    return Marked("".join(parts), inserted)


class _Places:
    """Where the marks of a template are: after the last text, or output, of each line, and before each branch."""

    def __init__(self, template: Template) -> None:
        self.template = template
        self.pending: tuple[int, int, bool] | None = None
        self.depth = 0
        self.defined = 0
        """The depth of the named template that is defined here; 0 outside of all."""

    def list_all(self) -> Iterator[tuple[int, int, bool]]:
        """Yield the places, with the line that each is about, and whether an action before it trims what follows."""
        at = 0
        for action in self.template.actions:
            yield from self.add_text(at, action.start)
            yield from self.add_action(action)
            at = action.end
        yield from self.add_text(at, len(self.template.text))
        yield from self.flush()

    def flush(self) -> Iterator[tuple[int, int, bool]]:
        if self.pending:
            yield self.pending
        self.pending = None

    def add_text(self, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
        for place, line in _list_text(self.template, start, end):
            if self.defined and not _ENTRY.match(_line_text(self.template, line)):
                continue
            if self.pending and self.pending[1] != line:
                yield from self.flush()
            self.pending = (place, line, False)

    def add_action(self, action: Action) -> Iterator[tuple[int, int, bool]]:
        keyword, line = action.keyword, self.template.line_at(action.start)
        if self.pending and (self.pending[1] != line or keyword not in ("", "#", "=")):
            yield from self.flush()
        if keyword in ("if", "range", "with", "define", "block"):
            self.depth += 1
            self.defined = self.defined or (self.depth if keyword == "define" else 0)
        elif keyword == "end":
            self.defined = 0 if self.defined == self.depth else self.defined
            self.depth -= 1
        elif not keyword and self.is_marked(action, line):
            self.pending = (action.end, line, action.trims_after)

    def is_marked(self, action: Action, line: int) -> bool:
        is_entry = _BLOCK.search(action.code) or _ENTRY.match(_line_text(self.template, line))
        return not self.defined or is_entry is not None


def _list_text(template: Template, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield a place after the text that each line has between two places, and the number of the line."""
    at, first = start, template.line_at(start)
    for line, piece in enumerate(template.text[start:end].split("\n"), first):
        bare = piece.rstrip()
        if bare and not bare.startswith(("---", "#")):
            # A brace before those of a mark would be one of them.
            yield at + len(bare.rstrip("{")), line
        at += len(piece) + 1


def _line_text(template: Template, line: int) -> str:
    end = template.starts[line] if line < len(template.starts) else len(template.text)
    return template.text[template.starts[line - 1] : end]


def list_output_lines(template: Template) -> set[int]:
    """Return the lines that have a text of their own, or an action that writes something."""
    ends = [0, *(action.end for action in template.actions)]
    starts = [*(action.start for action in template.actions), len(template.text)]
    texts = (line for end, start in zip(ends, starts, strict=True) for _, line in _list_text(template, end, start))
    return {*texts, *(template.line_at(action.start) for action in template.actions if not action.keyword)}


DEFINED = lazy_pattern(r"\{\{-?\s*(?:define|block)\s+[\"`]([^\"`\n]+)[\"`]")
"""The name of a named template, where it is defined."""
_ANY_VALUES = lazy_pattern(r"\bValues\b((?:\.\w+)*)")


def list_mentions(text: str) -> set[Path]:
    """Return the paths of all values that a template mentions, whatever it does with them; `()` for all of them."""
    return {tuple(filter(None, match[1].split("."))) for match in _ANY_VALUES.finditer(text)}
