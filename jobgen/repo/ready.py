"""What shipped files mean, ready to use: the documents of kinds and policies, and compiled CEL expressions.

`tools/build_ready.py` makes both tables for a wheel; a checkout can do without, because what is not found is computed.
A table is found by a digest of the code that made it, an entry by a digest of what it was made from. So an entry that
does not fit is never used.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parent.parent
FOLDER = _PACKAGE / "data" / "ready"
DOCUMENTS, EXPRESSIONS = "documents", "expressions"
_MAKERS = {DOCUMENTS: "yamlio/read", EXPRESSIONS: "check/cel"}


def find_documents(content: bytes) -> list[dict[str, Any]] | None:
    """Return the documents of a shipped file by its content; None if they are not ready."""
    found: list[dict[str, Any]] | None = _load(DOCUMENTS).get(make_digest([content]))
    return found


def find_expression(parts: Iterable[bytes]) -> bytes | None:
    """Return the compiled expression that was made from these parts; None if it is not ready."""
    found = _load(EXPRESSIONS).get(make_digest(parts))
    return None if found is None else b64decode(found)


def make_digest(parts: Iterable[bytes]) -> str:
    """Return the key of an entry."""
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.hexdigest()


def name_file(table: str) -> str:
    """Return the name of the file with a table that the code as it is now has made."""
    folder = _PACKAGE / _MAKERS[table]
    sources = (folder / name for name in sorted(os.listdir(folder)) if name.endswith(".py"))
    return f"{table}-{make_digest(source.read_bytes() for source in sources)}.json"


@cache
def _load(table: str) -> Mapping[str, Any]:
    try:
        loaded: dict[str, Any] = json.loads((FOLDER / name_file(table)).read_bytes())
    except OSError:
        return {}
    return loaded
