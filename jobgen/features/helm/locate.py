"""Where the objects of a chart were written: the line of the template for each line that helm printed.

helm renders each template once more, with lines that write marks. A line whose text is the same in both renders is one
of the template that its mark names. Nothing is guessed about the others: they have the place of their document.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from jobgen.features.helm.charts import METADATA, Chart, is_archive, is_crd
from jobgen.features.helm.template_text import find_marks, remove_marks
from jobgen.features.helm.uses import Use
from jobgen.features.helm.value_places import ValuePlaces, write_plain
from jobgen.features.helm.value_reads import Origin, Place, read_values
from jobgen.model.data import Location, TracedKey, TracedList, TracedMapping, TracedScalar
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.files import VARIABLE_LAYER
from jobgen.yamlio.read import read

_ACTION = lazy_pattern(r"\{\{.*?(?:\}\}|\Z)")
_WORD = lazy_pattern(r"[\w.-]")
_NEAR = 25
"""How many documents of a template before and after a place are compared with a document."""


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
        top, _, shown = line[len("# Source: ") :].partition("/")
        # What is not known to be a file of the chart is one if helm says so.
        named = chart.sources.get(shown) or (METADATA if top == chart.name and shown else None)
        if named is not None:
            found += [Chunk(path, lines[begin : at - 1])] if path else []
            begin, path = at + 1, named
            # A file that is printed as it is may have such a line as well.
            start = at + chart.files[named].count(b"\n") if is_crd(named) else at
    if path:
        found.append(Chunk(path, lines[begin:-1] if not lines[-1] else lines[begin:]))
    return found


Origins = Sequence[Origin | None]


class Locator:
    """Finds the lines of templates and of values that wrote an object."""

    def __init__(self, use: Use, chunks: Sequence[Chunk], marked: Mapping[str, Sequence[str]]) -> None:
        """Start with the output of helm, and that of its templates with marks, by the path that helm prints."""
        self.use = use
        self.chunks = chunks
        self._texts_with_marks = marked
        self._places = use.chart.marked.places
        """The template and the line of each mark."""

    def find_document(self, path: str, kind: str) -> Location:
        """Return the document of a template that writes a kind, or the file if several may: all of its lines.

        A place of more than one line is that of a value whose line is not known.
        """
        origin = self.use.chart.origins[path]
        if is_archive(origin):
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
            path = self.use.chart.sources.get(shown.partition("/")[2], METADATA)
            found[path] += (Chunk(path, lines) for text in texts for lines in split_documents(text))
        return found

    def find_lines(self, number: int) -> Origins:
        """Return what wrote each line of a chunk; None where that is not certain."""
        if number not in self._lines:
            self._lines[number] = self._match(self.chunks[number])
        return self._lines[number]

    @cached_property
    def _lines(self) -> dict[int, Origins]:
        return {}

    def list_marked_lines(self, path: str) -> Iterator[tuple[Origin, str]]:
        """Yield the lines that a template writes, also of objects that helm leaves out, with what wrote them."""
        for chunk in self._marked[path]:
            for origin, line in zip(self._read_origins(path)[id(chunk)], chunk.lines, strict=True):
                if origin is not None:
                    yield origin, remove_marks(line)

    def _match(self, chunk: Chunk) -> Origins:
        if is_crd(chunk.path):
            return [Origin((chunk.path, at), (chunk.path, at)) for at in range(1, len(chunk.lines) + 1)]
        candidates = (self._compare(chunk, each) for each in self._list_candidates(chunk))
        found = [each for each in candidates if each is not None]
        return max(found, key=lambda each: sum(place is not None for place in each), default=[None] * len(chunk.lines))

    def _list_candidates(self, chunk: Chunk) -> list[Chunk]:
        """Return the documents with marks that may be a chunk: the one with its text, or else those at its place."""
        every = self._marked[chunk.path]
        same = self._by_text[chunk.path].get(_normalize(chunk.lines), ())
        if same:
            # Of those with the same text, the order is that of helm.
            return [same[min(self._repeats[id(chunk)], len(same) - 1)]]
        # A loop may write thousands, in the same order in both.
        at = self._numbers[id(chunk)]
        return every if len(every) <= 2 * _NEAR else every[max(at - _NEAR, 0) : at + _NEAR]

    @cached_property
    def _by_text(self) -> dict[str, dict[str, list[Chunk]]]:
        """The documents with marks of each text, by file."""
        found: dict[str, dict[str, list[Chunk]]] = defaultdict(dict)
        for path, several in self._marked.items():
            for each in several:
                found[path].setdefault(_normalize(map(remove_marks, each.lines)), []).append(each)
        return found

    @cached_property
    def _repeats(self) -> dict[int, int]:
        """How many documents of its file with the same text are before each chunk."""
        counts = Counter[tuple[str, str]]()
        found: dict[int, int] = {}
        for chunk in self.chunks:
            key = chunk.path, _normalize(chunk.lines)
            found[id(chunk)] = counts[key]
            counts[key] += 1
        return found

    @cached_property
    def _numbers(self) -> dict[int, int]:
        """How many documents of its file are before each chunk."""
        counts = Counter[str]()
        found: dict[int, int] = {}
        for chunk in self.chunks:
            found[id(chunk)] = counts[chunk.path]
            counts[chunk.path] += 1
        return found

    def _compare(self, chunk: Chunk, marked: Chunk) -> list[Origin | None] | None:
        own, other = _remove_end(chunk.lines), _remove_end(marked.lines)
        if len(own) != len(other):
            return None
        origins = self._read_origins(chunk.path)[id(marked)]
        found: list[Origin | None] = [None] * len(chunk.lines)
        end = len(own)
        for at in reversed(range(len(own))):
            # A line without a mark belongs to the next one: an action that writes several lines ends with its mark.
            if find_marks(other[at]):
                self._drop_unproven(other, found, at + 1, end, origins[at + 1] if at + 1 < len(own) else None)
                end = at + 1
            if _is_same(own[at], remove_marks(other[at])):
                found[at] = origins[at]
        self._drop_unproven(other, found, 0, end, origins[0] if own else None)
        return found

    def _read_origins(self, path: str) -> dict[int, list[Origin | None]]:
        """Return what wrote each line of each document of a file with marks."""
        if path not in self._origins:
            defined = read_values(self.use.chart).list_defined_lines(path)
            turns = Counter[tuple[Place, Place]]()
            found: dict[int, list[Origin | None]] = {}
            for each in self._marked[path]:
                found[id(each)] = self._read_marks(each, defined, turns)
            self._origins[path] = {
                key: [each and each._replace(turns=turns[each.place, each.call]) for each in several]
                for key, several in found.items()
            }
        return self._origins[path]

    def _read_marks(
        self, marked: Chunk, defined: Collection[int], turns: Counter[tuple[Place, Place]]
    ) -> list[Origin | None]:
        known = [[self._places[mark] for mark in find_marks(line) if mark < len(self._places)] for line in marked.lines]
        calls: list[Place | None] = [None] * len(known)
        call: Place | None = None
        for at in reversed(range(len(known))):
            call = next((each for each in known[at] if each[0] == marked.path and each[1] not in defined), call)
            calls[at] = call
        found: list[Origin | None] = []
        for places, call in zip(known, calls, strict=True):
            if places:
                key = (places[0], call or places[0])
                found.append(Origin(*key, turns[key]))
                turns[key] += 1
            else:
                found.append(None)
        after: Origin | None = None
        for at in reversed(range(len(found))):
            after = found[at] = found[at] or after
        return found

    @cached_property
    def _origins(self) -> dict[str, dict[int, list[Origin | None]]]:
        return {}

    def _drop_unproven(
        self, lines: Sequence[str], found: list[Origin | None], start: int, end: int, origin: Origin | None
    ) -> None:
        """Remove the places of lines without a mark that the line of a template cannot have written."""
        unmarked = [at for at in range(start, end - 1) if lines[at].strip()[:1] not in ("", "#")]
        if not unmarked or origin is None:
            return
        line = self._split(origin.place[0])[origin.place[1] - 1].strip()
        prefix, action, _ = line.partition("{{")
        if not action or not lines[unmarked[0]].strip().startswith(prefix.strip()):
            for at in unmarked:
                found[at] = None

    # Objects with the places of their values

    def trace(self, number: int, position: int, document: Location) -> Any:
        """Return a document of a chunk whose keys and values know where they were written."""
        chunk = self.chunks[number]
        source = read(chunk.content, chunk.path, traced=True)
        return _Tracer(self, chunk, self.find_lines(number), document).move(source.documents[position].data)

    def place(self, found: Place, text: str, offset: int = -1) -> Location:
        """Return the place of a text in a line of a template; of the line if the template computes it.

        `offset` is where the text begins after the blanks of the line that helm printed, if that is known.
        """
        path, number = found
        origin = self.use.chart.origins[path]
        if is_archive(origin):
            return Location(origin)
        line = self._split(path)[number - 1]
        indent = len(line) - len(line.lstrip())
        return Location(origin, number, _find_text(line, text, indent, offset) + 1)

    def _split(self, path: str) -> list[str]:
        if path not in self._texts:
            self._texts[path] = self.use.chart.files[path].decode("utf-8", "replace").split("\n")
        return self._texts[path]

    @cached_property
    def _texts(self) -> dict[str, list[str]]:
        return {}

    @cached_property
    def values(self) -> ValuePlaces:
        """The lines of the values of the use."""
        return ValuePlaces(self.use)


def _find_text(line: str, text: str, indent: int, offset: int) -> int:
    """Return where a line of a template has a text outside of actions; its indent if it does not, or has two."""
    if not text or "\n" in text:
        return indent
    plain = _ACTION.sub(lambda action: "\0" * len(action[0]), line) if "{{" in line else line
    if plain.startswith(text, indent + offset) and offset >= 0:
        return indent + offset
    places = [at for at in range(len(plain)) if plain.startswith(text, at) and _is_word(plain, at, at + len(text))]
    return places[0] if len(places) == 1 else indent


def _is_word(line: str, start: int, end: int) -> bool:
    return not (_WORD.match(line[start - 1 : start]) or _WORD.match(line[end : end + 1]))


def _normalize(lines: Iterable[str]) -> str:
    return "\n".join([line.rstrip() for line in lines]).rstrip()


def _remove_end(lines: Sequence[str]) -> Sequence[str]:
    """Return lines without the blank ones at their end."""
    end = next((at for at in reversed(range(len(lines))) if lines[at].strip()), -1)
    return lines[: end + 1]


def split_documents(text: str) -> Iterator[list[str]]:
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


def writes_kind(text: str, kind: str) -> bool:
    """Return True if a line of a template writes a kind."""
    return any(_name_kind(line) == kind for line in text.split("\n"))


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


class _Tracer:
    """Moves the nodes of a document to the lines of templates."""

    def __init__(self, locator: Locator, chunk: Chunk, lines: Origins, document: Location) -> None:
        self.locator = locator
        self.chunk = chunk
        self.lines = lines
        self.document = document
        self.above: list[tuple[str | int, Origin | None]] = []
        """The steps to the current node, and what wrote each of them."""

    def find_origin(self, location: Location) -> Origin | None:
        return self.lines[location.line - 1] if location.line <= len(self.lines) else None

    def find(self, location: Location, text: str) -> tuple[Location, str]:
        """Return the place of a node and its layer."""
        origin = self.find_origin(location)
        if origin is None:
            return self.document, VARIABLE_LAYER
        printed = self.chunk.lines[location.line - 1]
        offset = location.column - 1 - (len(printed) - len(printed.lstrip()))
        return self.locator.place(origin.place, text, offset), VARIABLE_LAYER

    def move(self, node: Any) -> Any:
        if type(node) is TracedMapping and not node:
            return TracedMapping(*self.find(node.location, ""))
        if isinstance(node, dict):
            return dict(self.move_field(key, value) for key, value in node.items())
        if type(node) is TracedList:
            return self.move_list(node)
        return self.move_leaf(node) if type(node) is TracedScalar else node

    def move_field(self, key: str, value: Any) -> tuple[str, Any]:
        origin = self.find_origin(key.location) if type(key) is TracedKey else None
        self.above.append((str(key), origin))
        moved = self.move_key(key, origin), self.move(value)
        self.above.pop()
        return moved

    def move_list(self, node: TracedList) -> TracedList:
        origins = [self.find_origin(each) for each in node.item_locations]
        items: list[Any] = []
        first: dict[Origin | None, int] = {}
        for at, item in enumerate(node):
            origin = origins[at] if at < len(origins) else None
            # What an action writes may be the rest of a list whose first items the template has.
            self.above.append((at - first.setdefault(origin, at), origin))
            items.append(self.move(item))
            self.above.pop()
        places = [self.find(each, "")[0] for each in node.item_locations]
        return TracedList(items, *self.find(node.location, ""), None, places)

    def list_steps(self, origin: Origin) -> list[str | int]:
        """Return the steps to the current node from the value that the line of a template writes."""
        found: list[str | int] = []
        for step, each in reversed(self.above):
            if each is None or each != origin:
                break
            found.insert(0, step)
        return found

    def move_key(self, key: str, origin: Origin | None) -> str:
        if type(key) is not TracedKey:
            return key
        given = self.locator.values.find_key(origin, self.list_steps(origin)) if origin else None
        over = TracedScalar(str(key), given, VARIABLE_LAYER) if given else None
        return TracedKey.at(str(key), *self.find(key.location, str(key)), overridden=over)

    def move_leaf(self, node: TracedScalar) -> TracedScalar:
        location, layer = self.find(node.location, str(node.value))
        origin = self.find_origin(node.location)
        over: TracedScalar | None = None
        for leaf in self.locator.values.find(origin, self.list_steps(origin), node) if origin else ():
            over = TracedScalar(write_plain(leaf), leaf.location, VARIABLE_LAYER, over)
        return TracedScalar(node.value, location, layer, over, node.written)
