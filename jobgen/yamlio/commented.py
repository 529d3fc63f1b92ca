"""Write YAML for people, with comments, through ruamel.yaml: what `import`, `migrate` and `init` write.

Only their modules import this one, because ruamel.yaml takes 50 ms to import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from io import StringIO
from types import MappingProxyType
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.emitter import RoundTripEmitter
from ruamel.yaml.error import CommentMark
from ruamel.yaml.events import ScalarEvent
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString
from ruamel.yaml.tokens import CommentToken

from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.yamlio.write import to_inline_yaml, to_yaml

_WIDTH = 110
_MAX_DEPTH = 3
# Maps that always have one line for each entry.
_BLOCKS = frozenset(("spec", "roles"))

DataPath = tuple[str | int, ...]
"""The keys and indices that lead to a value."""


class Comments(NamedTuple):
    """The comments at a value: above it, at the end of its line, and after the last entry in it."""

    above: tuple[str, ...] = ()
    at_end: str = ""
    after: tuple[str, ...] = ()


def format_document(document: Mapping[str, Plain], comments: Mapping[DataPath, Comments] = MappingProxyType({})) -> str:
    """Format a document; short maps, and lists of scalars, are in braces and brackets if they have no comments."""
    builder = _Builder(document, comments)
    text = _dump(builder.build(document, (), 0, 0), _Representer)
    return text + "".join(f"{' ' * column}{comment}\n" for comment, column in builder.pending)


def count_lines(document: Mapping[str, Plain]) -> int:
    """Return how many lines a document without comments has, in much less time than it takes to format it."""
    return _count_lines(_Builder({}, {}).build(document, (), 0, 0))


def _count_lines(made: Any) -> int:
    if not _is_block(made):
        return 1 + len(made.splitlines()) if isinstance(made, LiteralScalarString) else 1
    if isinstance(made, CommentedSeq):
        return 1 + sum(_count_lines(item) - _is_block(item) for item in made)
    return 1 + sum(map(_count_lines, made.values()))


def _is_block(made: Any) -> bool:
    """Return True if the entries of a map or a list have lines of their own."""
    return isinstance(made, (CommentedMap, CommentedSeq)) and bool(made) and not made.fa.flow_style()


def edit_text(text: str, edit: Callable[[Any], None]) -> str:
    """Change the data of a YAML text; the comments and the style of all other values stay."""
    data = _make_writer().load(text)
    edit(data)
    return _dump(data, RoundTripRepresenter)


def to_scalar(value: str) -> str:
    """Return a string that is written in quotes or as a block, unless every reader takes its text for this string."""
    if to_inline_yaml(value) == value:
        return value
    is_block = to_yaml({"x": value}).startswith("x: |")
    quoted: str = LiteralScalarString(value) if is_block else DoubleQuotedScalarString(value)
    return quoted


class _Emitter(RoundTripEmitter):
    """Wraps long lists between their items; ruamel.yaml would also wrap strings, and leave spaces at ends of lines."""

    def write_indicator(self, indicator: str, *arguments: Any, **options: Any) -> None:
        super().write_indicator(indicator, *arguments, **options)
        if indicator == "," and isinstance(self.event, ScalarEvent):
            # The next item: a space and a comma are written with it, and perhaps quotes.
            width = len(self.event.value) + (4 if self.event.style else 2)
            if self.column + width > _WIDTH:
                self.write_indent()


class _Representer(RoundTripRepresenter):
    """Writes nulls and floats as every reader takes them."""


for _type, _tag in ((type(None), "tag:yaml.org,2002:null"), (float, "tag:yaml.org,2002:float")):
    _Representer.add_representer(_type, lambda self, value, tag=_tag: self.represent_scalar(tag, to_inline_yaml(value)))


def _make_writer() -> YAML:
    writer = YAML()
    writer.width = 1_000_000
    writer.Emitter = _Emitter
    writer.preserve_quotes = True
    writer.brace_single_entry_mapping_in_flow_sequence = True
    writer.indent(mapping=2, sequence=4, offset=2)
    return writer


def _dump(data: Any, representer: type[RoundTripRepresenter]) -> str:
    writer = _make_writer()
    writer.Representer = representer
    stream = StringIO()
    writer.dump(data, stream)
    return stream.getvalue()


class _Builder:
    """Builds what ruamel.yaml writes. Comments after the last entry of a map are written above the next line."""

    def __init__(self, document: Mapping[str, Plain], comments: Mapping[DataPath, Comments]) -> None:
        self.pending: list[tuple[str, int]] = []
        """Comments to write above the next line, with their columns."""
        self._document = document
        self._comments = comments
        self._above: dict[DataPath, list[str]] = {}
        for path, found in comments.items():
            self._above.setdefault(_find_line(document, path), []).extend(found.above)
        self._expanded = {path[:length] for path in comments for length in range(len(path))}
        self._expanded |= {path for path, found in comments.items() if found.after}

    def build(self, value: Any, path: DataPath, column: int, lead: int) -> Any:
        """Return a value: `column` is that of entries on lines of their own, `lead` the width before the value."""
        if isinstance(value, str):
            return to_scalar(value)
        if not isinstance(value, (dict, list)):
            return value
        is_map = isinstance(value, dict)
        made: Any = CommentedMap() if is_map else CommentedSeq()
        if self._is_inline(value, path, lead):
            made.fa.set_flow_style()
        entries: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
        for key, child in entries:
            below = (*path, key)
            above, self.pending = self.pending, []
            width = column + (len(to_inline_yaml(key)) + 2 if is_map else 2)
            inner = self.build(child, below, column + (4 if not is_map and isinstance(child, list) else 2), width)
            if is_map:
                made[to_scalar(key)] = inner
            else:
                made.append(inner)
            at_end = self._comments[below].at_end if below in self._comments else ""
            if at_end and _has_space(inner, child, width + len(at_end), is_entry=is_map):
                made.yaml_add_eol_comment(at_end, key, column=0)
            elif at_end:
                self._above.setdefault(_find_line(self._document, below), []).append(at_end)
            above += ((comment, column) for comment in self._above.get(below, ()))
            if above:
                tokens = [CommentToken(f"{comment}\n", CommentMark(start)) for comment, start in above]
                made.ca.items.setdefault(key, [None, None, None, None])[1] = tokens
        if path in self._comments:
            self.pending += ((comment, column) for comment in self._comments[path].after)
        return made

    def _is_inline(self, value: Any, path: DataPath, lead: int) -> bool:
        if not path or not value or path in self._expanded or path[-1] in _BLOCKS:
            return False
        if isinstance(value, list) and len(value) > 1 and _is_simple(value, 1):
            return True
        return _is_simple(value, _MAX_DEPTH) and lead + len(to_inline_yaml(value)) <= _WIDTH


def _find_line(document: Any, path: DataPath) -> DataPath:
    """Return the path of the item whose line a value begins: that of its dash."""
    if len(path) < 2 or not isinstance(path[-2], int):
        return path
    parent = document
    for step in path[:-1]:
        parent = parent[step]
    return _find_line(document, path[:-1]) if path[-1] in (0, next(iter(parent))) else path


def _is_simple(value: Any, depth: int) -> bool:
    """Return True if a value has no text of several lines, and at most some levels."""
    if isinstance(value, (dict, list)):
        children = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_is_simple(child, depth - 1) for child in children)
    return not (isinstance(value, str) and "\n" in value)


def _has_space(made: Any, value: Any, width: int, *, is_entry: bool) -> bool:
    """Return True if a comment fits at the end of the line with a value, or with its key."""
    if _is_block(made):
        # ruamel.yaml 0.19 loses a line break after a comment before the first item of a list.
        return is_entry and isinstance(made, CommentedMap)
    return not isinstance(made, LiteralScalarString) and width + len(to_inline_yaml(value)) < _WIDTH
