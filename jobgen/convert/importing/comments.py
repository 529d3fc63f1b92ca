"""Comments of a manifest carried over to its spec: each to the line that now says what it stood at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from jobgen.convert.importing.verify import SpecRenderer
from jobgen.model.data import Data, Location, TracedKey, TracedScalar, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.render.build import build_object
from jobgen.render.expand import JobDocument
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import LIST_KEYS
from jobgen.yamlio.read import read

_COMMENT = lazy_pattern(r"(?:^|(?<=\s))#.*")
_WIDTH = 110

Path = tuple[str, ...]


class Remark(NamedTuple):
    """Comments that belong together: the line they stand at, and whether they stand beside it or above."""

    line: int
    at: int
    texts: tuple[str, ...]
    beside: bool


def remarks_in(lines: list[str], tree: Data, first: int, last: int) -> list[Remark]:
    """The comments between two lines of a file, which may stand before the document; `at` is 0 behind its end."""
    scalars = [location for location in _marks(tree) if location.end_line]
    found: list[Remark] = []
    above: list[tuple[int, str]] = []
    for number in range(first, last + 1):
        line = lines[number - 1]
        comments = (each for each in _COMMENT.finditer(line) if not _is_text(number, each.start() + 1, scalars))
        comment = next(comments, None)
        alone = comment is not None and not line[: comment.start()].strip()
        if comment and alone:
            above.append((number, comment[0].rstrip()))
            continue
        if (
            not line.strip()
            or line.startswith("---")
            or any(location.line < number < location.end_line for location in scalars)
        ):
            continue
        if above:
            found.append(Remark(above[0][0], number, tuple(text for _, text in above), beside=False))
            above = []
        if comment:
            found.append(Remark(number, number, (comment[0].rstrip(),), beside=True))
    return [*found, Remark(above[0][0], 0, tuple(text for _, text in above), beside=False)] if above else found


def _is_text(line: int, column: int, scalars: list[Location]) -> bool:
    return any(
        (location.line, location.column) <= (line, column) < (location.end_line, location.end_column)
        for location in scalars
    )


def _marks(tree: Data) -> Iterator[Location]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _marks(key)
            yield from _marks(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _marks(value)
    elif isinstance(tree, (TracedScalar, TracedKey)):
        yield tree.location


def with_remarks(
    text: str, remarks: list[Remark], manifest: Data, kind: Kind, bench: SpecRenderer
) -> tuple[str, list[Remark], set[Path]]:
    """The spec with the comments that have a place in it, those that have none, and the maps that are too crowded."""
    [source] = read(text.encode(), "spec", marked=True).documents
    made = build_object(JobDocument(source.data, "spec"), bench.expander, [], [], [])
    return _carried(text, source.data, remarks, _Places(manifest, made, _role_marks(source.data, kind)))


def carried(text: str, remarks: list[Remark], before: Data) -> tuple[str, list[Remark], set[Path]]:
    """A changed document with the comments of what it was before: each where the same field stands."""
    [source] = read(text.encode(), "spec", marked=True).documents
    return _carried(text, source.data, remarks, _Places(before, source.data, {}))


def _carried(text: str, written: Data, remarks: list[Remark], places: _Places) -> tuple[str, list[Remark], set[Path]]:
    lines = text.rstrip("\n").split("\n")
    starts = _starts(lines, written)
    above: dict[int, list[str]] = {}
    beside: dict[int, str] = {}
    lost: list[Remark] = []
    used: dict[int, list[Location]] = {}
    for remark in remarks:
        location = Location("spec") if remark.at == places.first and not remark.beside else places.mark_for(remark.at)
        if location is None:
            lost.append(remark)
            continue
        line = starts[location.line]
        used.setdefault(line, []).append(location)
        room = len(lines[line - 1]) + len(remark.texts[0]) < _WIDTH and starts.get(line + 1) != line
        if remark.beside and line not in beside and room:
            beside[line] = remark.texts[0]
        elif beside.get(line) not in remark.texts:
            known = above.setdefault(line, [])
            known += (each for each in remark.texts if each not in known)
    crowded = {location for locations in used.values() if len(set(locations)) > 1 for location in locations}
    return _woven(lines, above, beside), lost, set(_holders(written, crowded, ()))


def _holders(tree: Data, locations: set[Location], path: Path) -> Iterator[Path]:
    """The maps whose entries stand at these places, and all that hold them."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if (isinstance(value, TracedScalar) and value.location in locations) or (
                isinstance(key, TracedKey) and key.location in locations
            ):
                yield from (path[: depth + 1] for depth in range(len(path)))
            yield from _holders(value, locations, (*path, str(key)))


def _woven(lines: list[str], above: dict[int, list[str]], beside: dict[int, str]) -> str:
    woven: list[str] = []
    for number, line in enumerate(lines, 1):
        indent = line[: len(line) - len(line.lstrip())]
        woven += (f"{indent}{comment}" for comment in above.get(number, ()))
        woven.append(f"{line} {beside[number]}" if number in beside else line)
    return "\n".join(woven) + "\n"


def _starts(lines: list[str], tree: Data) -> dict[int, int]:
    """The line on which the entry of each line begins: lists of words may be folded."""
    inside = {line for location in _marks(tree) for line in range(location.line + 1, location.end_line + 1)}
    starts: dict[int, int] = {}
    for number in range(1, len(lines) + 1):
        folded = number > 1 and lines[number - 2].endswith(",") and number - 1 not in inside
        starts[number] = starts[number - 1] if folded else number
    return starts


class _Places:
    """Where the spec says what a line of the manifest says: its object, walked with places, knows."""

    def __init__(self, manifest: Data, made: Data, roles: dict[Path | None, Location]) -> None:
        self.first = location.line if (location := next(_marks(manifest), None)) else 0
        self._leaves = list(_leaves(manifest, (), ""))
        self._marks = {path: leaf.location for path, leaf in _leaves(made, (), "") if isinstance(leaf, TracedScalar)}
        self._keys = {location.line: path for path, location in _keys(manifest, (), "")}
        self._roles = roles

    def mark_for(self, line: int) -> Location | None:
        """The place in the spec, if there is one."""
        at_key = self._keys.get(line)
        if at_key in self._roles:
            return self._roles[at_key]
        for path, leaf in self._leaves:
            here = isinstance(leaf, TracedScalar) and leaf.location.line == line
            below = at_key is not None and path[: len(at_key)] == at_key
            if (here or below) and path in self._marks:
                return self._marks[path]
        return None


def _role_marks(spec: Data, kind: Kind) -> dict[Path | None, Location]:
    """The place of each role of the spec, by where the role stands in the manifest."""
    roles = spec["spec"].get("roles", {})
    holder = tuple(str(step) for step in kind.replicas_at)
    spelt = {name: str(value_of(role.spelling)) for name, role in kind.roles.items()}
    return {(*holder, spelt[name]): name.location for name in roles if isinstance(name, TracedKey) and name in spelt}


def _leaves(tree: Data, path: Path, name: str) -> Iterator[tuple[Path, Data]]:
    """Every leaf with its path; items of lists by their keys, where they have keys."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _leaves(value, (*path, str(key)), str(key))
    elif isinstance(tree, list):
        for index, item in enumerate(tree):
            yield from _leaves(item, (*path, _step(item, index, name)), "")
    else:
        yield path, tree


def _keys(tree: Data, path: Path, name: str) -> Iterator[tuple[Path, Location]]:
    """Every key with its path; of two on a line, the last one counts."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if isinstance(key, TracedKey):
                yield (*path, str(key)), key.location
            yield from _keys(value, (*path, str(key)), str(key))
    elif isinstance(tree, list):
        for index, item in enumerate(tree):
            yield from _keys(item, (*path, _step(item, index, name)), "")


def _step(item: Data, index: int, name: str) -> str:
    keys = LIST_KEYS.get(name)
    found = value_of(item.get(keys[0])) if keys and isinstance(item, dict) else None
    return f"[{found}]" if isinstance(found, (str, int)) else str(index)
