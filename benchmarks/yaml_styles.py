"""Write data as YAML in the styles that people use: indentation, quotes, flow and block, comments, anchors, key order.

A `Style` is chosen once for each file. The same data, style and random numbers give the same text, and the text always
reads as the data: `tests/test_benchmarks.py` checks that with PyYAML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

PLAIN = re.compile(r"(?:--?)?[A-Za-z_/][A-Za-z0-9_./@+=:-]*[A-Za-z0-9_/]|[A-Za-z_/]")
"""Strings that need no quotes if they are no keyword; stricter than YAML, so that the context does not matter."""
KEYWORDS = frozenset("y n yes no on off true false null none ~".split())
COMMENTS = (
    "keep in sync with the runbook",
    "see the wiki before you change this",
    "TODO: ask the platform team",
    "measured in March, do not lower",
    "copied from the previous experiment",
    "größer ist hier nicht besser",
    "required by the data loader: one process for each shard",
    "image: old-registry/train:0.9",
    "--- disabled ---",
    "owner: see CODEOWNERS #12",
)
WIDTH = 88


class Octal(int):
    """A file mode, which YAML files write in octal."""


class Style(NamedTuple):
    """How one file is written."""

    indent: int
    dash_indent: int
    """Columns between a key and the dashes of its list."""
    quote: str
    """The quotes of strings that need none: `'`, `"`, or nothing."""
    needed_quote: str
    flow: float
    """The share of small collections that are written on one line."""
    comments: float
    """The share of lines that have a comment, above them or at their end."""
    blank_lines: bool
    anchors: bool
    order: str
    """`usual` (as written by hand), `sorted` (as exported), or `shuffled`."""
    folded: bool
    """Whether long texts of one line are folded."""


def choose_style(random: Random) -> Style:
    """Choose a style; most files look like those of most people."""
    [indent] = random.choices((2, 3, 4), (85, 3, 12))
    return Style(
        indent=indent,
        dash_indent=random.choice((0, indent, indent)),
        quote=random.choices(("", "'", '"'), (85, 5, 10))[0],
        needed_quote=random.choices("'\"", (1, 3))[0],
        flow=random.choices((0, 0.2, 0.6, 1), (50, 30, 17, 3))[0],
        comments=random.choices((0, 0.03, 0.08, 0.2), (50, 25, 20, 5))[0],
        blank_lines=random.random() < 0.15,
        anchors=random.random() < 0.03,
        order=random.choices(("usual", "sorted", "shuffled"), (80, 15, 5))[0],
        folded=random.random() < 0.15,
    )


def to_json(documents: list[Any]) -> str:
    """Return one document as JSON, or several as a List."""
    [data] = documents if len(documents) == 1 else [{"apiVersion": "v1", "kind": "List", "items": documents}]
    return json.dumps(data, indent=2) + "\n"


def to_yaml(documents: list[Any], style: Style, random: Random) -> str:
    """Return documents as one YAML file."""
    texts = [Writer(style, random).document(data) for data in documents]
    head = "---\n" if random.random() < 0.3 else ""
    if style.comments and random.random() < 0.7:
        head = f"# {random.choice(COMMENTS)}\n{head}"
    [tail] = random.choices(("", "...\n", "---\n"), (94, 2, 4))
    text = head + "---\n".join(texts) + tail
    return text.rstrip("\n") if random.random() < 0.05 else text


class Writer:
    """The state of writing one document: which collections have an anchor already."""

    def __init__(self, style: Style, random: Random) -> None:
        self.style = style
        self.random = random
        self.repeated: set[str] = set()
        self.anchors: dict[str, str] = {}

    def document(self, data: dict[str, Any]) -> str:
        data = arrange(data, self.style.order, self.random)
        if self.style.anchors:
            self.repeated = repeated_mappings(data)
        return "".join(f"{line}\n" for line in self.block(data, 0))

    def block(self, data: Any, column: int) -> Iterator[str]:
        """Yield the lines of a collection that begins in a column."""
        entries = self.mapping(data, column) if isinstance(data, dict) else self.sequence(data, column)
        for line in entries:
            # A comment inside a block scalar would be part of it: those lines are marked.
            if line.startswith("\0"):
                yield line[1:]
            else:
                yield from self.commented(line, column)

    def commented(self, line: str, column: int) -> Iterator[str]:
        if self.random.random() >= self.style.comments:
            yield line
        elif self.random.random() < 0.5:
            yield f"{' ' * column}# {self.random.choice(COMMENTS)}"
            yield line
        else:
            yield f"{line} # {self.random.choice(COMMENTS)}" if ends_a_value(line) else line

    def mapping(self, data: dict[str, Any], column: int) -> Iterator[str]:
        for number, (key, value) in enumerate(data.items()):
            if self.style.blank_lines and number and column == 0:
                yield "\0"
            head = f"{' ' * column}{self.scalar(key, is_key=True)}:"
            nested = column + (self.style.dash_indent if isinstance(value, list) else self.style.indent)
            yield from self.value(head, value, column, nested)

    def sequence(self, data: list[Any], column: int) -> Iterator[str]:
        for value in data:
            head = f"{' ' * column}-"
            if isinstance(value, (dict, list)) and not (flow := self.one_line(value, column)):
                lines = list(self.block(value, column + 2))
                first = next(number for number, line in enumerate(lines) if not is_comment(line))
                yield from (f"\0{line}" for line in lines[:first])
                yield f"\0{head} {lines[first].lstrip(' ')}"
                yield from (f"\0{line}" for line in lines[first + 1 :])
            elif isinstance(value, (dict, list)):
                yield f"{head} {flow}"
            else:
                yield from self.value(head, value, column, column + 2)

    def value(self, head: str, value: Any, column: int, nested: int) -> Iterator[str]:
        """Yield the lines of a value behind its key or its dash."""
        if isinstance(value, str) and "\n" in value:
            yield from block_scalar(head, value, column + self.style.indent)
        elif isinstance(value, str) and self.style.folded and is_foldable(value):
            yield from folded_scalar(head, value, column + self.style.indent)
        elif not isinstance(value, (dict, list)):
            yield f"{head} {self.scalar(value)}"
        elif flow := self.one_line(value, column):
            yield f"{head} {flow}"
        else:
            yield from self.anchored(head, value, nested)

    def anchored(self, head: str, value: Any, nested: int) -> Iterator[str]:
        """Yield a collection in block style, with an anchor if it is repeated, or as an alias of an earlier one."""
        known = json.dumps(value, sort_keys=True)
        if known in self.anchors:
            yield f"{head} *{self.anchors[known]}"
            return
        if known in self.repeated:
            self.anchors[known] = f"shared-{len(self.anchors) + 1}"
            head += f" &{self.anchors[known]}"
        yield head
        yield from (f"\0{line}" for line in self.block(value, nested))

    def one_line(self, value: Any, column: int) -> str:
        """Return a small collection in flow style, or nothing if it is to be written in block style."""
        if not value:
            return "{}" if isinstance(value, dict) else "[]"
        is_small = all(not isinstance(each, (dict, list)) for each in members(value))
        if not is_small and self.style.flow < 1:
            return ""
        if self.random.random() >= self.style.flow or has_lines(value):
            return ""
        text = self.flow(value)
        return text if column + len(text) < WIDTH else ""

    def flow(self, value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self.scalar(k, is_key=True)}: {self.flow(v)}" for k, v in value.items()) + "}"
        return f"[{', '.join(map(self.flow, value))}]" if isinstance(value, list) else self.scalar(value)

    def scalar(self, value: Any, *, is_key: bool = False) -> str:
        if isinstance(value, Octal):
            return f"0{value:o}"
        if not isinstance(value, str):
            return json.dumps(value)
        plain = bool(PLAIN.fullmatch(value)) and value.lower() not in KEYWORDS
        quote = (self.style.quote if plain and not is_key else "") or ("" if plain else self.style.needed_quote)
        if quote == "'":
            return "'" + value.replace("'", "''") + "'"
        return json.dumps(value, ensure_ascii=False) if quote else value


def members(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else list(value)


def has_lines(value: Any) -> bool:
    if isinstance(value, (dict, list)):
        return any(map(has_lines, members(value)))
    return isinstance(value, str) and "\n" in value


def is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def ends_a_value(line: str) -> bool:
    """Whether a comment may follow: not behind the header of a block scalar, where it is rare."""
    return not line.endswith(("|", "|-", "|+", ">", ">-"))


def is_foldable(value: str) -> bool:
    """Whether a text has single spaces between its words, and is long enough to be folded."""
    return len(value) > 60 and " " in value and value.split(" ") == value.split()


def block_scalar(head: str, value: str, column: int) -> Iterator[str]:
    """Yield a text of several lines as a literal block."""
    stripped = value.rstrip("\n")
    ending = len(value) - len(stripped)
    yield f"{head} |{('-', '', '+')[min(ending, 2)]}"
    for line in stripped.split("\n") + [""] * (ending - 1):
        yield "\0" + (" " * column + line if line else "")


def folded_scalar(head: str, value: str, column: int) -> Iterator[str]:
    """Yield a long text as a folded block."""
    yield f"{head} >-"
    line = ""
    for part in value.split(" "):
        if line and column + len(line) + len(part) > WIDTH:
            yield f"\0{' ' * column}{line}"
            line = part
        else:
            line = f"{line} {part}" if line else part
    yield f"\0{' ' * column}{line}"


def arrange(data: Any, order: str, random: Random) -> Any:
    """Return data with its keys in an order; `usual` keeps the order in which they were made."""
    if isinstance(data, list):
        return [arrange(each, order, random) for each in data]
    if not isinstance(data, dict):
        return data
    keys = list(data)
    if order == "sorted":
        keys.sort()
    elif order == "shuffled":
        random.shuffle(keys)
    return {key: arrange(data[key], order, random) for key in keys}


def repeated_mappings(data: Any) -> set[str]:
    """Return the mappings of at least two keys that occur more than once, as JSON."""
    seen: set[str] = set()
    repeated: set[str] = set()

    def visit(value: Any) -> None:
        if isinstance(value, dict) and len(value) > 1:
            text = json.dumps(value, sort_keys=True)
            (repeated if text in seen else seen).add(text)
        if isinstance(value, (dict, list)):
            for each in members(value):
                visit(each)

    visit(data)
    return repeated
