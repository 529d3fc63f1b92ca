"""Read PEM blocks as far as their structure goes: what is in them needs cryptography to verify."""

from __future__ import annotations

import binascii
from base64 import b64decode

from jobgen.model.named_tuple import NamedTuple

_BEGIN, _END, _DASHES = "-----BEGIN ", "-----END ", "-----"


class PemBlock(NamedTuple):
    """A block: its type, whether it has headers, and its content."""

    kind: str
    has_headers: bool
    content: bytes


def read_pem(text: str) -> list[PemBlock]:
    """Return the blocks of a text; what is not one is ignored."""
    found: list[PemBlock] = []
    kind, body = "", list[str]()
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped.startswith(_BEGIN) and stripped.endswith(_DASHES):
            kind, body = stripped.removeprefix(_BEGIN).removesuffix(_DASHES), []
        elif stripped == f"{_END}{kind}{_DASHES}" and kind:
            found += _parse_block(kind, body)
            kind = ""
        else:
            body.append(stripped)
    return found


def _parse_block(kind: str, body: list[str]) -> list[PemBlock]:
    data = [line for line in body if ":" not in line]
    try:
        content = b64decode("".join(data), validate=True)
    except (binascii.Error, ValueError):
        return []
    return [PemBlock(kind, len(data) < len(body), content)]


def is_der_sequence(content: bytes) -> bool:
    """Return whether bytes are one sequence of DER, as certificates and requests are, and nothing else."""
    if len(content) < 2 or content[0] != 0x30:
        return False
    size, start = content[1], 2
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(content[2:start], "big")
    return len(content) == start + size
