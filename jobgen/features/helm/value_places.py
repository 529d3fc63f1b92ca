"""The lines of values that gave a value to a line of a template."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.features.helm.charts import is_archive
from jobgen.features.helm.template_text import ANY_ITEM, ANY_KEY
from jobgen.features.helm.uses import Use
from jobgen.features.helm.value_reads import Origin, Place, Read, read_values
from jobgen.features.helm.value_tree import ValueTree
from jobgen.model.data import Location, Node, TracedKey, TracedScalar, value_of

_SHORT = 3
"""The letters of a value that a line which includes a named template has by chance."""
_MAX_PARTS = 3


class ValuePlaces:
    """The values of a use, by the lines of templates that write them."""

    def __init__(self, use: Use) -> None:
        self._use = use
        self._tree = ValueTree(use)
        self._reads: dict[tuple[Place, Place], list[Read]] = {}

    def find(self, origin: Origin, steps: Sequence[str | int], node: TracedScalar) -> list[TracedScalar]:
        """Return the values that a leaf is, or is joined of; none if that is not certain.

        `steps` lead to it from the value that the line writes, or from further outside.
        """
        shown = write_plain(node)
        if shown in ("", "null"):
            return []
        reads = self._list_reads(origin)
        for start in range(len(steps) + 1) if reads else ():
            inside = steps[start:]
            found = [leaf for each in reads for leaf in self._select(each, inside, origin, shown)]
            places = {leaf.location: leaf for leaf in found}
            if places:
                return list(places.values()) if len(places) == 1 else []
        return self._find_parts(reads, origin, shown)

    def find_key(self, origin: Origin, steps: Sequence[str | int]) -> Location | None:
        """Return the place of a key of values that a line writes, if it is certain."""
        reads = self._list_reads(origin)
        if not reads:
            return None
        for start in range(len(steps)):
            found: set[Location] = set()
            for each in reads:
                for holder in self._tree.find((*each.path, *steps[start:-1]), each.chart):
                    keys = [key for key in holder if key == steps[-1]] if isinstance(holder, dict) else []
                    found |= {key.location for key in keys if type(key) is TracedKey and _is_shown(key.location)}
            if found:
                return found.pop() if len(found) == 1 else None
        named = (node for each in reads if each.path[-1] == ANY_KEY for node in self._tree.find_read(each))
        places = {node.location for node in named if type(node) is TracedKey and node == steps[-1:][0]}
        return places.pop() if len(places) == 1 and _is_shown(next(iter(places))) else None

    def _list_reads(self, origin: Origin) -> list[Read]:
        key = (origin.call, origin.place)
        if key not in self._reads:
            self._reads[key] = sorted(read_values(self._use.chart).find(origin.call[0], *key))
        return self._reads[key]

    def _select(self, read: Read, inside: Sequence[str | int], origin: Origin, shown: str) -> Iterator[TracedScalar]:
        """Yield the leaves below a value that have a text; of the items of a list, the one whose turn it was."""
        nodes = self._tree.find((*read.path, *inside), read.chart)
        is_item = ANY_ITEM in read.path or ANY_KEY in read.path
        equal = [each for each in nodes if _is_leaf(each) and write_plain(each) == shown]
        if is_item and len(equal) > 1 and len(nodes) == origin.turns and nodes[origin.turn] in equal:
            equal = [nodes[origin.turn]]
        for each in equal:
            yield from _locate(each)

    def _find_parts(self, reads: Sequence[Read], origin: Origin, shown: str) -> list[TracedScalar]:
        """Return the values that a text is joined of, in its order; none if one of them may be another value."""
        found: dict[str, set[Location]] = {}
        leaves: dict[Location, TracedScalar] = {}
        for read in reads:
            nodes = self._tree.find_read(read)
            if len(nodes) > 1:
                nodes = [nodes[origin.turn]] if len(nodes) == origin.turns else []
            for each in nodes:
                text = write_plain(each) if _is_leaf(each) else ""
                if text and text in shown and (read.is_direct or len(text) >= _SHORT):
                    for leaf in _locate(each):
                        found.setdefault(text, set()).add(leaf.location)
                        leaves[leaf.location] = leaf
        if any(len(places) > 1 for places in found.values()):
            return []
        # A part of another part was hardly meant.
        texts = [text for text in found if not any(text in other and text != other for other in found)]
        ordered = sorted(texts, key=shown.index)[:_MAX_PARTS]
        # The first one is to be the first note.
        return [leaves[next(iter(found[text]))] for text in reversed(ordered)]


def _is_leaf(node: Node) -> bool:
    return not isinstance(node, (dict, list))


def _is_shown(location: Location) -> bool:
    """Return True for a line that can be shown: those of archives cannot."""
    return not is_archive(location.file)


def _locate(node: Node) -> Iterator[TracedScalar]:
    if type(node) is TracedScalar and _is_shown(node.location):
        yield node
    elif type(node) is TracedKey and _is_shown(node.location):
        yield TracedScalar(str(node), node.location)


def write_plain(node: Node) -> str:
    """Return the text of a value as YAML has it."""
    value = value_of(node)
    if isinstance(node, TracedScalar) and node.written and not isinstance(value, str):
        return node.written
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)
