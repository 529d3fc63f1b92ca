"""Format a job spec as YAML: short values on one line, long lists wrapped, everything else in blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from jobgen.model.data import Plain
from jobgen.yamlio.write import to_inline_yaml, to_yaml

_WIDTH = 110
_MAX_DEPTH = 3
# Maps that always have one line for each entry.
_BLOCKS = frozenset(("spec", "roles"))

KeyPath = tuple[str, ...]


def format_document(document: Mapping[str, Plain], expanded: Collection[KeyPath] = ()) -> str:
    """Format a document; maps in `expanded` have one line for each entry."""
    return "\n".join(_format_mapping(document, "", "", (), expanded)) + "\n"


def _format_mapping(
    mapping: Mapping[str, Plain], first: str, indent: str, path: KeyPath, expanded: Collection[KeyPath]
) -> Iterator[str]:
    """The lines of a mapping; `first` is the prefix of its first line, `indent` that of the others."""
    lead = first
    for key, value in mapping.items():
        yield from _format_entry(f"{lead}{to_inline_yaml(str(key))}:", value, indent, (*path, str(key)), expanded)
        lead = indent


def _format_entry(name: str, value: Plain, indent: str, path: KeyPath, expanded: Collection[KeyPath]) -> Iterator[str]:
    line = f"{name} {to_inline_yaml(value)}"
    if path not in expanded and _fits_on_line(path[-1], value, line):
        yield line
    elif isinstance(value, dict):
        yield name
        yield from _format_mapping(value, f"{indent}  ", f"{indent}  ", path, expanded)
    elif isinstance(value, list) and all(map(_is_single_line, value)) and len(value) > 1:
        yield from _wrap_list(name, value, f"{indent}  ")
    elif isinstance(value, list):
        yield name
        yield from _format_list(value, f"{indent}  ")
    else:
        # `to_yaml` formats strings of several lines.
        head, *rest = to_yaml({"x": value}).rstrip("\n").split("\n")
        yield name + head.removeprefix("x:")
        yield from (f"{indent}{each}" if each else "" for each in rest)


def _format_list(items: list[Any], indent: str) -> Iterator[str]:
    for item in items:
        line = f"{indent}- {to_inline_yaml(item)}"
        if _fits_on_line("", item, line):
            yield line
        elif isinstance(item, dict):
            yield from _format_mapping(item, f"{indent}- ", f"{indent}  ", (), ())
        elif isinstance(item, list):
            yield from _format_entry(f"{indent}-", item, indent, ("",), ())
        else:
            head, *rest = to_yaml({"x": item}).rstrip("\n").split("\n")
            yield f"{indent}- {head.removeprefix('x: ')}"
            yield from (f"{indent}{each}" if each else "" for each in rest)


def _wrap_list(name: str, items: list[Any], indent: str) -> Iterator[str]:
    """A list of scalars in as many lines as necessary."""
    line = f"{name} ["
    for index, item in enumerate(items):
        part = to_inline_yaml(item) + ("," if index < len(items) - 1 else "]")
        if len(line) + len(part) + 1 > _WIDTH and not line.endswith("["):
            yield line
            line = indent + part
        else:
            line += part if line.endswith("[") else f" {part}"
    yield line


def _fits_on_line(key: str, value: Plain, line: str) -> bool:
    if isinstance(value, (dict, list)):
        is_small = len(line) <= _WIDTH and _depth(value) <= _MAX_DEPTH and not _has_line_breaks(value)
        return not value or (is_small and key not in _BLOCKS)
    return not (isinstance(value, str) and "\n" in value)


def _is_single_line(value: Plain) -> bool:
    return not isinstance(value, (dict, list)) and not (isinstance(value, str) and "\n" in value)


def _depth(value: Plain) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _has_line_breaks(value: Plain) -> bool:
    if isinstance(value, dict):
        return any(map(_has_line_breaks, value.values()))
    return any(map(_has_line_breaks, value)) if isinstance(value, list) else not _is_single_line(value)
