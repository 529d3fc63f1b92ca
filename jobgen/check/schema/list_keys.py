"""Items of a list that Kubernetes tells apart by their keys, and cannot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobgen.model.data import Data, value_of
from jobgen.model.finding import Problem

_KEY_DEFAULTS = {"protocol": "TCP"}


def repeated(items: list[Data], keys: tuple[str, ...], name: str) -> Iterator[Problem]:
    """Items of a list that Kubernetes cannot tell apart."""
    seen: set[Any] = set()
    for item in items:
        identity = _identity(item, keys)
        if identity is not None and identity in seen:
            repeated = "/".join(str(part) for part in identity or ())
            node = item.get(keys[0], item) if isinstance(item, dict) and keys else item
            message = (
                f"`{repeated}` stands twice in `{name}`, whose items are told apart by `{'`, `'.join(keys) or 'value'}`"
            )
            yield Problem("duplicate-item", message, node, category="schema")
        if identity is not None:
            seen.add(identity)


def _identity(item: Data, keys: tuple[str, ...]) -> tuple[Any, ...] | None:
    parts = (
        [value_of(item.get(key, _KEY_DEFAULTS.get(key))) for key in keys]
        if isinstance(item, dict)
        else [value_of(item)]
    )
    return None if any(isinstance(part, (dict, list)) for part in parts) else tuple(parts)
