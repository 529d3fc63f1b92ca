"""Find the comments of a document, and their places in the document that it becomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any, Literal

from jobgen.model.data import Location, Node, Plain, TracedKey, TracedScalar, location_of, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.build import build_object
from jobgen.rendering.expand import Expander, JobDocument
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import LIST_KEYS
from jobgen.yamlio.commented import Comments, DataPath
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_yaml

_COMMENT = lazy_pattern(r"(?:^|(?<=\s))#.*")

KeyPath = tuple[str, ...]
"""The path of a field; an item of a list is `[name]` if it has a name, else `[0]`."""


Place = Literal["above", "at end", "after"]


class CommentBlock(NamedTuple):
    """Adjacent comments: their first line, their column, the line that they describe, and where they are.

    Comments `after` others are the last ones in a map or list, and describe no line.
    """

    line: int
    column: int
    target: int
    texts: tuple[str, ...]
    place: Place


class PlacedComments(NamedTuple):
    """The comments at each path of a document, and those without a place."""

    comments: dict[DataPath, Comments]
    lost: list[CommentBlock]


def find_comments(lines: list[str], tree: Node, first: int, last: int) -> list[CommentBlock]:
    """Find the comments between two lines of a file; `tree` is the traced document in them."""
    scalars = [location for location in _list_locations(tree) if location.end_line]
    found: list[CommentBlock] = []
    above: list[tuple[int, int, str]] = []
    indent = 0
    for number in range(first, last + 1):
        line = lines[number - 1]
        matches = (each for each in _COMMENT.finditer(line) if not _is_in_scalar(number, each.start() + 1, scalars))
        comment = next(matches, None)
        if comment is not None and not line[: comment.start()].strip():
            # Items of a list can be indented as its key, and so can items that are commented out.
            goes_on = bool(above) and above[-1][1] > comment.start() and comment[0].startswith("#  ")
            is_item = goes_on or comment[0].lstrip("# ").startswith("- ")
            above.append((number, comment.start() + is_item, comment[0].rstrip()))
            continue
        is_in_block = any(location.line < number < location.end_line for location in scalars)
        if not line.strip() or line.startswith("---") or is_in_block:
            continue
        before, indent = indent, len(line) - len(line.lstrip()) + line.lstrip().startswith("- ")
        found += _split_block(above, number, before, indent)
        above = []
        if comment:
            found.append(CommentBlock(number, comment.start(), number, (comment[0].rstrip(),), "at end"))
    return [*found, *_split_block(above, 0, indent, -1)]


def _split_block(above: list[tuple[int, int, str]], target: int, before: int, indent: int) -> Iterator[CommentBlock]:
    """Yield comments between two lines: those that are indented as the one before belong there."""
    ending = list(takewhile(lambda each: each[1] > indent, above)) if above and above[0][1] <= before else []
    blocks: list[tuple[list[tuple[int, int, str]], Place]] = [(ending, "after"), (above[len(ending) :], "above")]
    for comments, place in blocks:
        if comments:
            line, column, _ = comments[0]
            yield CommentBlock(line, column, target, tuple(text for *_, text in comments), place)


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


class _Entry(NamedTuple):
    """An entry of a map, or an item of a list: its key is None."""

    path: KeyPath
    place: DataPath
    key: Node
    value: Node


def _list_entries(tree: Node, path: KeyPath = (), place: DataPath = (), name: str = "") -> Iterator[_Entry]:
    """Yield all entries of a tree, in order."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            entry = _Entry((*path, str(key)), (*place, str(key)), key, value)
            yield entry
            yield from _list_entries(value, entry.path, entry.place, str(key))
    elif isinstance(tree, list):
        keys = LIST_KEYS.get(name)
        for index, item in enumerate(tree):
            known = value_of(item.get(keys[0])) if keys and isinstance(item, dict) else None
            step = known if isinstance(known, (str, int)) else index
            entry = _Entry((*path, f"[{step}]"), (*place, index), None, item)
            yield entry
            yield from _list_entries(item, entry.path, entry.place)


def place_by_rendering(
    comments: list[CommentBlock], manifest: Node, document: Mapping[str, Plain], kind: Kind, renderer: Expander
) -> PlacedComments:
    """Place the comments of a manifest in its spec: at the fields that are rendered as the fields they describe."""
    [source] = read(to_yaml(document).encode(), "spec", traced=True).documents
    origins: dict[Location | None, DataPath] = {}
    for entry in _list_entries(source.data):
        origins.update({location_of(each): entry.place for each in (entry.value, entry.key) if location_of(each)})
    rendered: Any = build_object(JobDocument(source.data, "spec"), renderer, [], [], [])
    places = {
        entry.path: origins[location_of(entry.value)]
        for entry in _list_entries(rendered)
        if not isinstance(entry.value, (dict, list)) and location_of(entry.value) in origins
    }
    return _place(comments, manifest, document, {**_locate_roles(document, kind), **places})


def _locate_roles(document: Any, kind: Kind) -> dict[KeyPath, DataPath]:
    """Return the path of each role in a spec, by the path of the role in the manifest."""
    parent = tuple(map(str, kind.replicas_at))
    found: dict[KeyPath, DataPath] = {}
    for name in document["spec"].get("roles", {}):
        role = kind.find_role(name)
        if role:
            found[parent] = ("spec", "roles")
            path = tuple(map(str, role.at or (*parent, value_of(role.spelling))))
            found[path] = found[*path[:-1], f"[{path[-1]}]"] = ("spec", "roles", name)
    return found


def place_at_same_fields(comments: list[CommentBlock], old: Node, document: Mapping[str, Plain]) -> PlacedComments:
    """Place the comments of an old document in a new one, at the fields that both have."""
    return _place(comments, old, document, {entry.path: entry.place for entry in _list_entries(document)})


def _place(
    comments: list[CommentBlock], old: Node, document: Mapping[str, Plain], places: Mapping[KeyPath, DataPath]
) -> PlacedComments:
    lines = _LineMap(old, document, places)
    found: dict[DataPath, Comments] = {}
    lost: list[CommentBlock] = []
    for comment in comments:
        path = lines.find(comment)
        if path is None:
            lost.append(comment)
            continue
        known = found.get(path, Comments())
        new = tuple(each for each in comment.texts if each not in (*known.above, known.at_end, *known.after))
        if comment.place == "at end" and not known.at_end and new:
            found[path] = known._replace(at_end=new[0])
        elif comment.place == "after":
            found[path] = known._replace(after=(*known.after, *new))
        else:
            found[path] = known._replace(above=(*known.above, *new))
    return PlacedComments(found, lost)


class _Begun(NamedTuple):
    """An entry that begins on a line; an item `ends` there if all of it is on that line."""

    path: KeyPath
    column: int
    ends: bool


class _LineMap:
    """Finds the field of a new document for a comment of the old one; `places` has fields that are in both."""

    def __init__(self, old: Node, document: Mapping[str, Plain], places: Mapping[KeyPath, DataPath]) -> None:
        self._document = document
        self._places = places
        self._same = {entry.path: entry.place for entry in _list_entries(document)}
        self._lines: dict[int, list[_Begun]] = {}
        for entry in _list_entries(old):
            location = location_of(entry.value if entry.key is None else entry.key)
            if location is not None:
                lines = {each.line for each in _list_locations(entry.value)}
                begun = _Begun(entry.path, location.column - 1, ends=entry.key is not None or len(lines) == 1)
                self._lines.setdefault(location.line, []).append(begun)
        self._first = min(self._lines, default=0)

    def find(self, comment: CommentBlock) -> DataPath | None:
        """Return the path of the value that a comment describes, or of the map or list whose last lines it is."""
        if comment.place == "after":
            before = [each[0] for line, each in self._lines.items() if line < comment.line]
            outer = [each.path for each in before if each.column < comment.column]
            return self._find_field(outer[-1]) if outer else ()
        if comment.place == "above" and comment.target == self._first:
            return (next(iter(self._document)),)
        begun = self._lines.get(comment.target, ())
        paths = (self._find_field(each.path) for each in begun if each.ends or comment.place == "above")
        return next((path for path in paths if path is not None), None)

    def _find_field(self, path: KeyPath) -> DataPath | None:
        """Return the path of a field, or of the smallest one that has everything in it."""
        if path in self._places:
            return self._places[path]
        below = self._list_below(path)
        if not below:
            # The name of an item stands for it.
            return self._places.get(path[:-1]) if path[-2:-1] and path[-2].startswith("[") else None
        if path in self._same:
            return self._same[path]
        same = takewhile(lambda steps: len(set(steps)) == 1, zip(*below, strict=False))
        common: DataPath = tuple(steps[0] for steps in same)
        if path[-1] in common:
            # It has one entry, which all of this leads to.
            common = common[: len(common) - common[::-1].index(path[-1])]
        if len(common) > 1:
            return common
        if path[-1].startswith("["):
            return None
        named = next((place for place in below if path[-1] in place), None)
        if named:
            return named[: named.index(path[-1]) + 1]
        # What all roles share is in no role of the spec, but the comment is about one of them.
        outer = (path[:length] for length in range(len(path) - 1, 0, -1))
        return next((self._places[each] for each in outer if each in self._places), common or below[0])

    def _list_below(self, path: KeyPath) -> list[DataPath]:
        return [place for each, place in self._places.items() if each[: len(path)] == path]
