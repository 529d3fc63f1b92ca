"""What shipped files mean, ready to use: documents of kinds and policies, frameworks, rules, compiled CEL expressions.

`tools/build_ready.py` makes it when the package is built. Each entry is found by a digest of what it was made from, so
one that does not fit is never used. `tests/test_ready.py` makes all entries again and compares them.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jobgen.model.digest import blake2b

FOLDER = Path(__file__).parent.parent / "data" / "ready"
DOCUMENTS, PACKS, EXPRESSIONS = "documents.json", "packs.json", "expressions.json"
FRAMEWORKS, RULES = "frameworks.json", "rules.json"


def find_documents(content: bytes, table: str = DOCUMENTS) -> list[dict[str, Any]] | None:
    """The documents of a shipped file, which has no errors, by its content; None if they are not ready."""
    found: list[dict[str, Any]] | None = _load(table).get(make_digest([content]))
    return found


def find_frameworks(contents: Iterable[bytes]) -> list[Any] | None:
    """The frameworks of all shipped kinds, by the content of their files; None if they are not ready."""
    found: list[Any] | None = _load(FRAMEWORKS).get(make_digest(contents))
    return found


def find_rules(modules: set[str]) -> Mapping[str, list[Any]] | None:
    """The attributes of the rules of modules, by module; None if they are not ready."""
    found = _load(RULES)
    # A feature may be left out of an installation.
    return {module: found[module] for module in modules} if modules <= found.keys() else None


def find_expression(parts: Iterable[bytes]) -> bytes | None:
    """The compiled expression that was made from these parts; None if it is not ready."""
    found = _load(EXPRESSIONS).get(make_digest(parts))
    return None if found is None else b64decode(found)


def make_digest(parts: Iterable[bytes]) -> str:
    """The key of an entry."""
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.hexdigest()


@cache
def _load(name: str) -> Mapping[str, Any]:
    try:
        loaded: dict[str, Any] = json.loads((FOLDER / name).read_bytes())
    except OSError:
        return {}
    return loaded
