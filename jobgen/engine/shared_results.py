"""Results that the processes of a run share, so that none of them repeats what another one has done."""

from __future__ import annotations

import os
import pickle
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import Generic, TypeVar

from jobgen.model.digest import blake2b
from jobgen.model.named_tuple import NamedTuple

Value = TypeVar("Value")

_DIGEST, _LENGTH = 16, 8
_HEAD = _DIGEST + _LENGTH + _DIGEST


class _Place(NamedTuple):
    start: int
    length: int
    digest: bytes


class SharedResults(Generic[Value]):
    """Results by keys, in a file without a name: this process, and those that are forked from it, append to it."""

    def __init__(self) -> None:
        """Start without results."""
        self._places: dict[bytes, _Place] = {}
        self._end = 0
        self._file: int | None = None
        # Where no process can be forked, nothing is shared.
        if hasattr(os, "fork"):
            self._file = _open_file()
            weakref.finalize(self, os.close, self._file)

    def add(self, key: bytes, value: Value) -> None:
        """Add a result; do nothing if there is no room for it."""
        if self._file is not None:
            written = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
            head = _digest(key) + len(written).to_bytes(_LENGTH, "big") + _digest(written)
            with suppress(OSError):
                os.write(self._file, head + written)

    def find(self, key: bytes) -> Value | None:
        """Return the result that one of the processes has added; None if there is none."""
        if self._file is None:
            return None
        known = _digest(key)
        if known not in self._places:
            self._places.update(self._read_places(self._file))
        place = self._places.get(known)
        written = os.pread(self._file, place.length, place.start) if place else b""
        if place is None or _digest(written) != place.digest:
            # What a process did not write whole, because it was ended or had no room, is not there.
            return None
        found: Value = pickle.loads(written)  # noqa: S301 -- written by a process of this run
        return found

    def _read_places(self, file: int) -> Iterator[tuple[bytes, _Place]]:
        """Yield the places of the results that were added since the last time."""
        while len(head := os.pread(file, _HEAD, self._end)) == _HEAD:
            length = int.from_bytes(head[_DIGEST:-_DIGEST], "big")
            place = _Place(self._end + _HEAD, length, head[-_DIGEST:])
            self._end = place.start + place.length
            yield head[:_DIGEST], place


def _open_file() -> int:
    """Return a new file without a name."""
    # Imported here: Windows does not have it.
    from fcntl import F_SETFL, fcntl

    file, path = tempfile.mkstemp(prefix="jobgen-")
    os.unlink(path)
    fcntl(file, F_SETFL, os.O_APPEND)
    return file


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=_DIGEST).digest()
