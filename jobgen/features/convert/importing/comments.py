"""Transfer comments of a manifest to its spec: each to the line with the value that it was written at."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from jobgen.features.convert.importing.verify import SpecRenderer
from jobgen.model.data import Location, Node, Plain, TracedKey, TracedScalar, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.rendering.build import build_object
from jobgen.rendering.expand import JobDocument
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import LIST_KEYS
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_inline_yaml, to_yaml

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


_COMMENT = lazy_pattern(r"(?:^|(?<=\s))#.*")
_WIDTH = 110


class CommentBlock(NamedTuple):
    """Adjacent comments: their first line, the line that they describe, and whether they are at the end of it.

    `target` is 0 for comments after the last line of a document.
    """

    line: int
    target: int
    texts: tuple[str, ...]
    at_end_of_line: bool


class CommentedText(NamedTuple):
    """A text with comments, the comments without a place, and the maps with too many comments on one line."""

    text: str
    lost: list[CommentBlock]
    crowded: set[KeyPath]


def find_comments(lines: list[str], tree: Node, first: int, last: int) -> list[CommentBlock]:
    """The comments between two lines of a file; `tree` is the traced document in them."""
    scalars = [location for location in _list_locations(tree) if location.end_line]
    found: list[CommentBlock] = []
    above: list[tuple[int, str]] = []
    for number in range(first, last + 1):
        line = lines[number - 1]
        matches = (each for each in _COMMENT.finditer(line) if not _is_in_scalar(number, each.start() + 1, scalars))
        comment = next(matches, None)
        if comment is not None and not line[: comment.start()].strip():
            above.append((number, comment[0].rstrip()))
            continue
        is_in_block = any(location.line < number < location.end_line for location in scalars)
        if not line.strip() or line.startswith("---") or is_in_block:
            continue
        if above:
            found.append(CommentBlock(above[0][0], number, tuple(text for _, text in above), at_end_of_line=False))
            above = []
        if comment:
            found.append(CommentBlock(number, number, (comment[0].rstrip(),), at_end_of_line=True))
    if above:
        found.append(CommentBlock(above[0][0], 0, tuple(text for _, text in above), at_end_of_line=False))
    return found


def _is_in_scalar(line: int, column: int, scalars: list[Location]) -> bool:
    return any(
        (location.line, location.column) <= (line, column) < (location.end_line, location.end_column)
        for location in scalars
    )


def _list_locations(tree: Node) -> Iterator[Location]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _list_locations(key)
            yield from _list_locations(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _list_locations(value)
    elif isinstance(tree, (TracedScalar, TracedKey)):
        yield tree.location


def transfer_comments(
    text: str, comments: list[CommentBlock], manifest: Node, kind: Kind, renderer: SpecRenderer
) -> CommentedText:
    """Add the comments of a manifest to the text of its spec."""
    [source] = read(text.encode(), "spec", traced=True).documents
    rendered = build_object(JobDocument(source.data, "spec"), renderer.expander, [], [], [])
    return _insert(text, source.data, comments, _LineMap(manifest, rendered, _locate_roles(source.data, kind)))


def transfer_to_same_fields(text: str, comments: list[CommentBlock], old: Node) -> CommentedText:
    """Add the comments of an old document to the text of the new one, at the fields that both have."""
    [source] = read(text.encode(), "spec", traced=True).documents
    return _insert(text, source.data, comments, _LineMap(old, source.data, {}))


def _insert(text: str, document: Node, comments: list[CommentBlock], line_map: _LineMap) -> CommentedText:
    lines = text.rstrip("\n").split("\n")
    starts = _find_entry_starts(lines, document)
    above: dict[int, list[str]] = {}
    at_end: dict[int, str] = {}
    lost: list[CommentBlock] = []
    used: dict[int, list[Location]] = {}
    for comment in comments:
        is_heading = comment.target == line_map.first and not comment.at_end_of_line
        location = Location("spec") if is_heading else line_map.find(comment.target)
        if location is None:
            lost.append(comment)
            continue
        line = starts[location.line]
        used.setdefault(line, []).append(location)
        fits = len(lines[line - 1]) + len(comment.texts[0]) < _WIDTH and starts.get(line + 1) != line
        if comment.at_end_of_line and line not in at_end and fits:
            at_end[line] = comment.texts[0]
        elif at_end.get(line) not in comment.texts:
            known = above.setdefault(line, [])
            known += (each for each in comment.texts if each not in known)
    crowded = {location for locations in used.values() if len(set(locations)) > 1 for location in locations}
    return CommentedText(_join_lines(lines, above, at_end), lost, set(_list_parents(document, crowded, ())))


def _list_parents(tree: Node, locations: set[Location], path: KeyPath) -> Iterator[KeyPath]:
    """The paths of the maps with entries at these locations, and of all their parents."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if (isinstance(value, TracedScalar) and value.location in locations) or (
                isinstance(key, TracedKey) and key.location in locations
            ):
                yield from (path[: depth + 1] for depth in range(len(path)))
            yield from _list_parents(value, locations, (*path, str(key)))


def _join_lines(lines: list[str], above: dict[int, list[str]], at_end: dict[int, str]) -> str:
    result: list[str] = []
    for number, line in enumerate(lines, 1):
        indent = line[: len(line) - len(line.lstrip())]
        result += (f"{indent}{comment}" for comment in above.get(number, ()))
        result.append(f"{line} {at_end[number]}" if number in at_end else line)
    return "\n".join(result) + "\n"


def _find_entry_starts(lines: list[str], tree: Node) -> dict[int, int]:
    """For each line, the first line of its entry; lists of scalars may be wrapped."""
    inside = {line for location in _list_locations(tree) for line in range(location.line + 1, location.end_line + 1)}
    starts: dict[int, int] = {}
    for number in range(1, len(lines) + 1):
        is_wrapped = number > 1 and lines[number - 2].endswith(",") and number - 1 not in inside
        starts[number] = starts[number - 1] if is_wrapped else number
    return starts


class _LineMap:
    """Maps lines of the old document to locations in the new one, by the paths of the traced values in both."""

    def __init__(self, old: Node, new: Node, roles: dict[KeyPath | None, Location]) -> None:
        self.first = location.line if (location := next(_list_locations(old), None)) else 0
        self._leaves = list(_list_leaves(old, (), ""))
        self._locations = {
            path: leaf.location for path, leaf in _list_leaves(new, (), "") if isinstance(leaf, TracedScalar)
        }
        self._keys = {location.line: path for path, location in _list_keys(old, (), "")}
        self._roles = roles

    def find(self, line: int) -> Location | None:
        """The location in the new document for a line of the old one, if there is one."""
        key_path = self._keys.get(line)
        if key_path in self._roles:
            return self._roles[key_path]
        for path, leaf in self._leaves:
            is_here = isinstance(leaf, TracedScalar) and leaf.location.line == line
            is_below = key_path is not None and path[: len(key_path)] == key_path
            if (is_here or is_below) and path in self._locations:
                return self._locations[path]
        return None


def _locate_roles(document: Any, kind: Kind) -> dict[KeyPath | None, Location]:
    """The location of each role of the spec, by the path of the role in the manifest."""
    roles = document["spec"].get("roles", {})
    parent = tuple(str(step) for step in kind.replicas_at)
    found = {name: kind.find_role(name) for name in roles if isinstance(name, TracedKey)}
    paths = {name: role.at or (*parent, str(value_of(role.spelling))) for name, role in found.items() if role}
    return {tuple(map(str, path)): name.location for name, path in paths.items()}


def _list_leaves(tree: Node, path: KeyPath, name: str) -> Iterator[tuple[KeyPath, Node]]:
    """Every leaf with its path; items of lists by their key, if they have one."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _list_leaves(value, (*path, str(key)), str(key))
    elif isinstance(tree, list):
        for index, item in enumerate(tree):
            yield from _list_leaves(item, (*path, _step_to(item, index, name)), "")
    else:
        yield path, tree


def _list_keys(tree: Node, path: KeyPath, name: str) -> Iterator[tuple[KeyPath, Location]]:
    """Every key with its path and location."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if isinstance(key, TracedKey):
                yield (*path, str(key)), key.location
            yield from _list_keys(value, (*path, str(key)), str(key))
    elif isinstance(tree, list):
        for index, item in enumerate(tree):
            yield from _list_keys(item, (*path, _step_to(item, index, name)), "")


def _step_to(item: Node, index: int, name: str) -> str:
    keys = LIST_KEYS.get(name)
    value = value_of(item.get(keys[0])) if keys and isinstance(item, dict) else None
    return f"[{value}]" if isinstance(value, (str, int)) else str(index)
