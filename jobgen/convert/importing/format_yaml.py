"""The text of a job spec: short things on one line, long lists folded, everything else in blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from jobgen.model.data import Data
from jobgen.yamlio.write import to_inline_yaml, to_yaml

_WIDTH = 110
_DEEPEST = 3
# Maps that are easier to read in lines of their own, however short they are.
_OPEN = frozenset(("spec", "roles"))

Path = tuple[str, ...]


def format_document(document: dict[str, Data], opened: Collection[Path] = ()) -> str:
    """A document as people write it; maps in `opened` have a line for each entry."""
    return "\n".join(_mapping(document, "", "", (), opened)) + "\n"


def _mapping(mapping: dict[str, Data], first: str, indent: str, path: Path, opened: Collection[Path]) -> Iterator[str]:
    """The lines of a mapping; `first` stands before its first key, `indent` before the others."""
    lead = first
    for key, value in mapping.items():
        yield from _entry(f"{lead}{to_inline_yaml(str(key))}:", value, indent, (*path, str(key)), opened)
        lead = indent


def _entry(name: str, value: Data, indent: str, path: Path, opened: Collection[Path]) -> Iterator[str]:
    line = f"{name} {to_inline_yaml(value)}"
    if path not in opened and _is_short(path[-1], value, line):
        yield line
    elif isinstance(value, dict):
        yield name
        yield from _mapping(value, f"{indent}  ", f"{indent}  ", path, opened)
    elif isinstance(value, list) and all(map(_is_word, value)) and len(value) > 1:
        yield from _folded(name, value, f"{indent}  ")
    elif isinstance(value, list):
        yield name
        yield from _sequence(value, f"{indent}  ")
    else:
        # The canonical writer knows how to write texts of several lines.
        head, *rest = to_yaml({"x": value}).rstrip("\n").split("\n")
        yield name + head.removeprefix("x:")
        yield from (f"{indent}{each}" if each else "" for each in rest)


def _sequence(items: list[Data], indent: str) -> Iterator[str]:
    for item in items:
        line = f"{indent}- {to_inline_yaml(item)}"
        if _is_short("", item, line):
            yield line
        elif isinstance(item, dict):
            yield from _mapping(item, f"{indent}- ", f"{indent}  ", (), ())
        elif isinstance(item, list):
            yield from _entry(f"{indent}-", item, indent, ("",), ())
        else:
            head, *rest = to_yaml({"x": item}).rstrip("\n").split("\n")
            yield f"{indent}- {head.removeprefix('x: ')}"
            yield from (f"{indent}{each}" if each else "" for each in rest)


def _folded(name: str, items: list[Data], indent: str) -> Iterator[str]:
    """A list of words on as many lines as it takes."""
    line = f"{name} ["
    for place, item in enumerate(items):
        word = to_inline_yaml(item) + ("," if place < len(items) - 1 else "]")
        if len(line) + len(word) + 1 > _WIDTH and not line.endswith("["):
            yield line
            line = indent + word
        else:
            line += word if line.endswith("[") else f" {word}"
    yield line


def _is_short(key: str, value: Data, line: str) -> bool:
    if isinstance(value, (dict, list)):
        small = len(line) <= _WIDTH and _depth(value) <= _DEEPEST and not _has_breaks(value)
        return not value or (small and key not in _OPEN)
    return not (isinstance(value, str) and "\n" in value)


def _is_word(value: Data) -> bool:
    return not isinstance(value, (dict, list)) and not (isinstance(value, str) and "\n" in value)


def _depth(value: Data) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _has_breaks(value: Data) -> bool:
    if isinstance(value, dict):
        return any(map(_has_breaks, value.values()))
    return any(map(_has_breaks, value)) if isinstance(value, list) else not _is_word(value)
