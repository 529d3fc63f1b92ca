"""The store: the answers of queries, each with what it read. An answer holds while all of its reads give the same.

Answers are kept in memory. Those of queries that can be encoded are kept on disk, too: one file for each repository
and query, which is written as a whole, authenticated, and ignored if anything about it is odd (`jobgen.cache`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from jobgen import cache
from jobgen.engine.inputs import Read, digest_bytes, holds, record
from jobgen.model.named_tuple import NamedTuple

Value = TypeVar("Value")

_MAX_VARIANTS = 3
"""How many answers of one question are kept: two revisions are compared, and an edit is often undone."""
_SPARE_ROWS = 100
"""How many answers are kept on disk, at least, that a run did not use; as many as it used if these are more."""


class Query(NamedTuple, Generic[Value]):
    """A question that the store keeps answers of. What it reads decides how long an answer holds."""

    name: str
    encode: Callable[[Value], str | None] | None = None
    """Returns None for an answer that must not be on disk; without it, none is."""
    decode: Callable[[str], Value | None] | None = None


class Row:
    """An answer and what it read. One that was read from disk is decoded when it is used."""

    __slots__ = ("_decode", "_text", "_value", "reads")

    def __init__(self, reads: Sequence[Read], value: Any = None, text: str | None = None, decode: Any = None) -> None:
        # JSON has lists.
        self.reads: tuple[Read, ...] = tuple(map(tuple, reads))  # type: ignore[arg-type]
        self._value = value
        self._text = text
        self._decode = decode

    @property
    def value(self) -> Any:
        """The answer; None if what is on disk cannot be decoded."""
        if self._value is None and self._text is not None:
            try:
                self._value = self._decode(self._text)
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
                self._value = None
        return self._value

    @property
    def version(self) -> str:
        """What stands for the answer where others read it: it changes with everything that was read."""
        return digest_bytes(repr(self.reads).encode("utf-8", "surrogatepass"))

    def encode(self, query: Query[Any]) -> str | None:
        """Return the answer as text; None if it is not kept."""
        if self._text is None and query.encode is not None:
            self._text = query.encode(self._value)
        return self._text

    def pack(self, query: Query[Any]) -> Row:
        """Return the row as text alone, if it can be: processes exchange that, and it may be written later."""
        text = self.encode(query)
        return self if text is None else Row(self.reads, None, text, query.decode)


class _Shelf(NamedTuple):
    """The rows of one query, by key, the newest first."""

    query: Query[Any]
    rows: dict[str, list[Row]]
    used: dict[str, list[Row]]
    """The rows that were added or found since the store was opened."""
    added: list[Row]


class Store:
    """The answers about one repository or folder."""

    def __init__(self, home: str = "") -> None:
        """Open the store of a folder; without one, it is empty at first, and forgotten at last."""
        self._home = home
        self.is_kept = bool(home) and cache.is_enabled()
        self._shelves: dict[str, _Shelf] = {}

    def find(self, query: Query[Value], key: str, is_same: Callable[[Read], bool] = holds) -> Row | None:
        """Return an answer all of whose reads hold; None if there is none."""
        shelf = self._open(query)
        for row in shelf.rows.get(key, ()):
            if all(map(is_same, row.reads)) and row.value is not None:
                shelf.used.setdefault(key, []).append(row)
                return row
        return None

    def add(self, query: Query[Value], key: str, reads: Sequence[Read], value: Value) -> Row:
        """Keep an answer."""
        return self.add_row(query, key, Row(reads, value))

    def add_row(self, query: Query[Value], key: str, row: Row) -> Row:
        """Keep an answer that another process found, or another store had."""
        shelf = self._open(query)
        others = [each for each in shelf.rows.get(key, ()) if each.reads != row.reads]
        shelf.rows[key] = [row, *others][:_MAX_VARIANTS]
        shelf.used.setdefault(key, []).append(row)
        shelf.added.append(row)
        return row

    def ask(self, query: Query[Value], key: str, compute: Callable[[], Value], *, content: str = "") -> Value:
        """Return an answer that holds, or compute it, record what it reads, and keep it.

        `content` is a digest of everything that it reads, if that is known before.
        """
        known = self.find(query, key, (lambda read: read[2] == content) if content else holds)
        if known is not None:
            found: Value = known.value
            return found
        if content:
            value = compute()
            self.add(query, key, (("content", "", content),), value)
            return value
        with record() as recording:
            value = compute()
        if recording.is_whole and recording.is_consistent:
            self.add(query, key, recording.list_reads(), value)
        return value

    def drop_unused(self) -> None:
        """Forget the answers of questions that were not asked since the last call, so that a server does not grow."""
        for shelf in self._shelves.values():
            for key in [key for key in shelf.rows if key not in shelf.used]:
                del shelf.rows[key]
            shelf.used.clear()

    def forget_new(self) -> None:
        """Forget the answers that were added since the store was opened or saved."""
        for shelf in self._shelves.values():
            new = set(map(id, shelf.added))
            for key in list(shelf.rows):
                shelf.rows[key] = [row for row in shelf.rows[key] if id(row) not in new]
            shelf.added.clear()

    def save(self) -> None:
        """Write the answers of queries that are kept, if there are new ones."""
        for name, shelf in self._shelves.items() if self.is_kept else ():
            if shelf.added and shelf.query.encode is not None:
                cache.put(self._name_file(name), _write_rows(shelf))
                shelf.added.clear()

    def _open(self, query: Query[Any]) -> _Shelf:
        shelf = self._shelves.get(query.name)
        if shelf is None:
            content = cache.get(self._name_file(query.name)) if self.is_kept and query.decode else None
            rows = _read_rows(content, query) if content is not None else {}
            shelf = self._shelves[query.name] = _Shelf(query, rows, {}, [])
        return shelf

    def _name_file(self, query: str) -> str:
        return cache.make_key("rows", self._home, query)


def _write_rows(shelf: _Shelf) -> bytes:
    """Return rows as bytes: a line with their keys, reads and lengths, then their answers.

    Those that were used are written, and as many others, the newest first.
    """
    used = {id(row) for rows in shelf.used.values() for row in rows}
    spare = max(len(used), _SPARE_ROWS)
    texts: list[str] = []
    index: list[Any] = []
    for key, row in ((key, row) for key, rows in shelf.rows.items() for row in rows):
        if id(row) not in used:
            spare -= 1
        if id(row) in used or spare >= 0:
            text = row.encode(shelf.query)
            if text is not None:
                index.append((key, row.reads, len(text)))
                texts.append(text)
    return "".join((json.dumps(index, separators=(",", ":")), "\n", *texts)).encode("utf-8", "surrogatepass")


def _read_rows(content: bytes, query: Query[Any]) -> dict[str, list[Row]]:
    """Return the rows that `_write_rows` wrote; none if they are damaged."""
    found: dict[str, list[Row]] = {}
    try:
        line, _, texts = content.decode("utf-8", "surrogatepass").partition("\n")
        start = 0
        for key, reads, length in json.loads(line):
            row = Row(reads, None, texts[start : start + length], query.decode)
            found.setdefault(key, []).append(row)
            start += length
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return {}
    return found


def keep(name: str, parts: Sequence[str | bytes], compute: Callable[[], bytes | None]) -> bytes | None:
    """Return what is computed from texts alone, such as a compiled expression; it is kept on disk by these texts."""
    key = cache.make_key(name, *parts)
    known = cache.get(key)
    if known is None:
        known = compute()
        if known is not None:
            cache.put(key, known)
    return known
