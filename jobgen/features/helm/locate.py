"""Where the objects of a chart were written: the line of the template for each line that helm printed.

helm renders each template once more, with lines that write marks. A line whose text is the same in both renders is one
of the template that its mark names. Nothing is guessed about the others: they have the place of their document.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from jobgen.features.helm.charts import Chart, is_crd
from jobgen.features.helm.template_text import (
    Path,
    Template,
    find_marks,
    list_reads,
    read_template,
    remove_marks,
)
from jobgen.features.helm.uses import Use
from jobgen.features.helm.value_tree import ValueTree
from jobgen.model.data import (
    Location,
    Node,
    TracedKey,
    TracedList,
    TracedMapping,
    TracedScalar,
    location_of,
    value_of,
)
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.files import VARIABLE_LAYER
from jobgen.yamlio.read import read

_ARCHIVES = (".tgz", ".tar.gz")


class Chunk(NamedTuple):
    """What helm printed of one file: a template may write several documents, each after a line that names it."""

    path: str
    """In the chart."""
    lines: Sequence[str]

    @property
    def content(self) -> bytes:
        """The text of the documents."""
        return "\n".join(self.lines).encode("utf-8", "surrogateescape")


def split_output(output: bytes, chart: Chart) -> list[Chunk]:
    """Return what helm printed, by the files of the chart."""
    found: list[Chunk] = []
    lines = output.decode("utf-8", "surrogateescape").split("\n")
    start, begin, path = -1, 0, ""
    for at, line in enumerate(lines):
        if at <= start or not line.startswith("# Source: ") or lines[at - 1] != "---":
            continue
        named = chart.sources.get(line[len("# Source: ") :].partition("/")[2])
        if named is not None:
            found += [Chunk(path, lines[begin : at - 1])] if path else []
            begin, path = at + 1, named
            # A file that is printed as it is may have such a line as well.
            start = at + chart.files[named].count(b"\n") if is_crd(named) else at
    if path:
        found.append(Chunk(path, lines[begin:-1] if not lines[-1] else lines[begin:]))
    return found


class Locator:
    """Finds the lines of templates and of values that wrote an object."""

    def __init__(self, use: Use, chunks: Sequence[Chunk], marked: Mapping[str, Sequence[str]]) -> None:
        """Start with the output of helm, and that of its templates with marks, by the path that helm prints."""
        self.use = use
        self.chunks = chunks
        self._texts_with_marks = marked
        self._known: dict[str, Template | None] = {}
        self._places = use.chart.marked.places
        """The template and the line of each mark."""

    def read_template(self, path: str) -> Template | None:
        """Return a template of the chart; None if it cannot be read."""
        if path not in self._known:
            text = self.use.chart.templates.get(path)
            self._known[path] = None if text is None else read_template(text)
        return self._known[path]

    def find_document(self, path: str, kind: str) -> Location:
        """Return the document of a template that writes a kind, or the file if several may: all of its lines.

        A place of more than one line is that of a value whose line is not known.
        """
        origin = self.use.chart.origins[path]
        if origin.endswith(_ARCHIVES):
            return Location(origin)
        lines = self.use.chart.templates.get(path, "").split("\n")
        named = [at for at, line in enumerate(lines) if _name_kind(line) == kind]
        if len(named) != 1:
            return Location(origin, 1, 1, len(lines) + 1, 1)
        begins = (at for at in reversed(range(named[0] + 1)) if lines[at].startswith("---"))
        start = next(begins, -1) + 1
        first = (at for at in range(start, named[0] + 1) if lines[at].startswith(("apiVersion:", "kind:", "metadata:")))
        end = next((at for at in range(named[0], len(lines)) if lines[at].startswith("---")), len(lines))
        return Location(origin, next(first, named[0]) + 1, 1, end + 1, 1)

    @cached_property
    def _marked(self) -> dict[str, list[Chunk]]:
        """The documents with marks, by file."""
        found: dict[str, list[Chunk]] = defaultdict(list)
        for shown, texts in self._texts_with_marks.items():
            path = self.use.chart.sources[shown.partition("/")[2]]
            found[path] += (Chunk(path, lines) for text in texts for lines in _split_documents(text))
        return found

    def find_lines(self, number: int) -> list[tuple[str, int] | None]:
        """Return the template and the line that wrote each line of a chunk; None where that is not certain."""
        if number not in self._lines:
            self._lines[number] = self._match(self.chunks[number])
        return self._lines[number]

    @cached_property
    def _lines(self) -> dict[int, list[tuple[str, int] | None]]:
        return {}

    def _match(self, chunk: Chunk) -> list[tuple[str, int] | None]:
        if is_crd(chunk.path):
            return [(chunk.path, at) for at in range(1, len(chunk.lines) + 1)]
        candidates = (self._compare(chunk, each) for each in self._marked[chunk.path])
        found = [each for each in candidates if each is not None]
        return max(found, key=lambda each: sum(place is not None for place in each), default=[None] * len(chunk.lines))

    def _compare(self, chunk: Chunk, marked: Chunk) -> list[tuple[str, int] | None] | None:
        own, other = _remove_end(chunk.lines), _remove_end(marked.lines)
        if len(own) != len(other):
            return None
        marked = marked._replace(lines=other)
        found: list[tuple[str, int] | None] = [None] * len(chunk.lines)
        end = len(own)
        place: tuple[str, int] | None = None
        # A line without a mark belongs to the next one: an action that writes several lines ends with its mark.
        for at in reversed(range(len(own))):
            marks = find_marks(marked.lines[at])
            if marks:
                self._drop_unproven(marked, found, at + 1, end, place)
                place = self._places[marks[0]] if marks[0] < len(self._places) else None
                end = at + 1
            if _is_same(own[at], remove_marks(marked.lines[at])):
                found[at] = place
        self._drop_unproven(marked, found, 0, end, place)
        return found

    def _drop_unproven(
        self, marked: Chunk, found: list[tuple[str, int] | None], start: int, end: int, place: tuple[str, int] | None
    ) -> None:
        """Remove the places of lines without a mark that the line of a template cannot have written."""
        unmarked = [at for at in range(start, end - 1) if marked.lines[at].strip()[:1] not in ("", "#")]
        if not unmarked or place is None:
            return
        line = self._split(place[0])[place[1] - 1].strip()
        prefix, action, _ = line.partition("{{")
        if not action or not marked.lines[unmarked[0]].strip().startswith(prefix.strip()):
            for at in unmarked:
                found[at] = None

    # Objects with the places of their values

    def trace(self, number: int, position: int, document: Location) -> Any:
        """Return a document of a chunk whose keys and values know where they were written."""
        chunk = self.chunks[number]
        source = read(chunk.content, chunk.path, traced=True)
        return _Tracer(self, self.find_lines(number), document).move(source.documents[position].data, "")

    def place(self, found: tuple[str, int], text: str) -> Location:
        """Return the place of a text in a line of a template; of the line if the template computes it."""
        path, number = found
        origin = self.use.chart.origins[path]
        if origin.endswith(_ARCHIVES):
            return Location(origin)
        line = self._split(path)[number - 1]
        at = line.find(text) if text and "\n" not in text else -1
        return Location(origin, number, (at if at >= 0 else len(line) - len(line.lstrip())) + 1)

    def _split(self, path: str) -> list[str]:
        if path not in self._texts:
            self._texts[path] = self.use.chart.files[path].decode("utf-8", "replace").split("\n")
        return self._texts[path]

    @cached_property
    def _texts(self) -> dict[str, list[str]]:
        return {}

    @cached_property
    def _reads(self) -> dict[str, dict[int, list[Path]]]:
        return {}

    def find_value(self, found: tuple[str, int], key: str, value: Any) -> Location | None:
        """Return the line of the values that gave a value to a line of a template, if there is only one."""
        path, number = found
        if path not in self._reads:
            template = self.read_template(path)
            self._reads[path] = list_reads(template) if template else {}
        if path.startswith("charts/") or value is None or value == "":
            return None
        nodes = (node for each in self._reads[path].get(number, ()) for node in self.values.find(each))
        leaves = [leaf for node in nodes for leaf in _list_sources(node, key, value)]
        # Several values of a line may be a part of it, such as `1` of `1Gi`.
        whole = [leaf for leaf in leaves if str(value_of(leaf)) == str(value)]
        places = {location_of(leaf) for leaf in whole or leaves}
        return places.pop() if len(places) == 1 else None

    @cached_property
    def values(self) -> ValueTree:
        """The values of the use."""
        return ValueTree(self.use)


def _remove_end(lines: Sequence[str]) -> Sequence[str]:
    """Return lines without the blank ones at their end."""
    end = next((at for at in reversed(range(len(lines))) if lines[at].strip()), -1)
    return lines[: end + 1]


def _split_documents(text: str) -> Iterator[list[str]]:
    """Yield the lines of each document of a template, as helm separates them."""
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith("---"):
            yield lines
            lines = []
        rest = line.removeprefix("---")
        # helm removes white space around a document.
        if lines or rest.strip():
            lines.append(rest if lines else rest.lstrip())
    yield lines


def _name_kind(line: str) -> str:
    return line.removeprefix("kind:").partition("#")[0].strip().strip("\"'") if line.startswith("kind:") else ""


def _is_same(line: str, marked: str) -> bool:
    if line.rstrip() == marked:
        return True
    # A value that is computed from marked text differs; its key does not.
    key, other = _find_key(line), _find_key(marked)
    return key is not None and key == other


def _find_key(line: str) -> str | None:
    """Return a line to the end of its key, with the dashes before it; None if it has no key."""
    key, colon, value = line.partition(":")
    if not colon or (value and not value[0].isspace()) or not key.strip(" -") or key.lstrip().startswith("#"):
        return None
    return key


def _list_sources(node: Node, key: str, value: Any) -> Iterator[Node]:
    """Yield the leaves of a value from which a leaf of an object may come."""
    if isinstance(node, (dict, list)):
        for leaf in _list_named(node, ""):
            if value_of(leaf[1]) == value and (not leaf[0] or leaf[0] == key):
                yield leaf[1]
    elif str(value_of(node)) and str(value_of(node)) in str(value):
        yield node


def _list_named(node: Node, key: str) -> Iterator[tuple[str, Node]]:
    if isinstance(node, dict):
        for name, item in node.items():
            yield from _list_named(item, str(name))
    elif isinstance(node, list):
        for item in node:
            yield from _list_named(item, "")
    else:
        yield key, node


class _Tracer:
    """Moves the nodes of a document to the lines of templates."""

    def __init__(self, locator: Locator, lines: Sequence[tuple[str, int] | None], document: Location) -> None:
        self.locator = locator
        self.lines = lines
        self.document = document

    def find(self, location: Location, text: str) -> tuple[Location, str]:
        """Return the place of a node and its layer."""
        place = self.lines[location.line - 1] if location.line <= len(self.lines) else None
        if place is None:
            return self.document, VARIABLE_LAYER
        return self.locator.place(place, text), VARIABLE_LAYER

    def move(self, node: Any, key: str) -> Any:
        if type(node) is TracedMapping and not node:
            return TracedMapping(*self.find(node.location, ""))
        if isinstance(node, dict):
            return {self.move_key(name): self.move(value, str(name)) for name, value in node.items()}
        if type(node) is TracedList:
            items = [self.move(item, "") for item in node]
            places = [self.find(each, "")[0] for each in node.item_locations]
            return TracedList(items, *self.find(node.location, ""), None, places)
        return self.move_leaf(node, key) if type(node) is TracedScalar else node

    def move_key(self, key: str) -> str:
        return TracedKey.at(str(key), *self.find(key.location, str(key))) if type(key) is TracedKey else key

    def move_leaf(self, node: TracedScalar, key: str) -> TracedScalar:
        location, layer = self.find(node.location, str(node.value))
        place = self.lines[node.location.line - 1] if node.location.line <= len(self.lines) else None
        given = self.locator.find_value(place, key, node.value) if place else None
        over = TracedScalar(node.value, given, VARIABLE_LAYER) if given else None
        return TracedScalar(node.value, location, layer, over, node.written)
