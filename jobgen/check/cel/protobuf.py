"""The wire format of protocol buffers: messages as field numbers with their values."""

from __future__ import annotations

from collections.abc import Iterator

Parts = dict[int, list[int | bytes]]
"""The fields of a message; bytes are texts, messages, packed numbers or doubles."""

_VARINT, _FIXED, _BYTES = 0, 1, 2


def message(raw: bytes) -> Parts:
    """Decode a message: values by field number."""
    parts: Parts = {}
    for number, value in fields(raw):
        parts.setdefault(number, []).append(value)
    return parts


def one(parts: Parts, number: int) -> bytes:
    """The first value of a field, which is bytes."""
    value = parts.get(number, [b""])[0]
    return value if isinstance(value, bytes) else b""


def text_of(parts: Parts, number: int) -> str:
    """The first value of a field, which is a text."""
    return one(parts, number).decode()


def number_of(parts: Parts, number: int) -> int:
    """The first value of a field, which is a number."""
    value = parts.get(number, [0])[0]
    return value if isinstance(value, int) else 0


def fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Decode the fields of a message: number and value."""
    place = 0
    while place < len(raw):
        tag, place = _varint_at(raw, place)
        wire = tag & 7
        if wire == _VARINT:
            value, place = _varint_at(raw, place)
            yield tag >> 3, value
            continue
        length, place = (8, place) if wire == _FIXED else _varint_at(raw, place)
        yield tag >> 3, raw[place : place + length]
        place += length


def read_path(raw: bytes, *numbers: int) -> int:
    """The number at a path of field numbers, of which all but the last are messages; 0 if there is none."""
    value: int | bytes = raw
    for number in numbers:
        inner = value if isinstance(value, bytes) else b""
        value = next((found for each, found in fields(inner) if each == number), b"")
    return value if isinstance(value, int) else 0


def _varint_at(raw: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[place]
        value |= (byte & 127) << shift
        place += 1
        if byte < 128:
            return value, place
        shift += 7


def varints(raw: bytes) -> Iterator[int]:
    """Decode packed numbers."""
    place = 0
    while place < len(raw):
        value, place = _varint_at(raw, place)
        yield value


def varint(value: int) -> bytes:
    """Encode a number."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def written(number: int, value: int | str | bytes) -> bytes:
    """Encode a field."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | _BYTES) + varint(len(raw)) + raw
