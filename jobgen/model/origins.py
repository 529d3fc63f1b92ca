"""Objects that were read with locations: without them for checks, and the nodes that were read for their places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jobgen.model.cached_property import cached_property
from jobgen.model.data import Location, Node, Plain, TracedKey, TracedScalar, location_of, untraced
from jobgen.model.place import At, Place, find_original


def _has_locations(obj: Mapping[str, Node]) -> bool:
    # A rendered object has fields that are in no file.
    return any(type(key) is TracedKey or type(value) is TracedScalar for key, value in obj.items())


class Origins:
    """Objects without locations, and the nodes that were read for their places."""

    def __init__(self, read: Iterable[Mapping[str, Node]] = ()) -> None:
        self._pairs: list[tuple[Mapping[str, Any], Mapping[str, Node]]] = [
            (untraced(dict(obj)) if _has_locations(obj) else obj, obj) for obj in read
        ]
        self.objects: list[Mapping[str, Plain]] = [plain for plain, _ in self._pairs]

    @cached_property
    def _read(self) -> dict[int, Any]:
        """The mappings and lists that were read with locations, by the identity of those without."""
        found: dict[int, Any] = {}
        pending: list[tuple[Any, Any]] = [pair for pair in self._pairs if pair[0] is not pair[1]]
        while pending:
            plain, read = pending.pop()
            found[id(plain)] = read
            for key, child in plain.items() if isinstance(plain, dict) else enumerate(plain):
                if isinstance(child, (dict, list)):
                    pending.append((child, read[key]))
        return found

    def follow(self, place: Place) -> Place:
        """Return the node that was read for a place in one of the objects; other places as they are."""
        if type(place) is At:
            holder = self._read.get(id(find_original(place.holder)))
            return place if holder is None else At(holder, place.key, place.is_key).node
        return self._read.get(id(find_original(place)), place) if isinstance(place, (dict, list)) else place

    def find_location(self, place: Place) -> Location | None:
        """Return the location of a place in one of the objects; None if it was read without locations."""
        node = self.follow(place)
        return None if type(node) is At else location_of(node)


NO_ORIGINS = Origins()
