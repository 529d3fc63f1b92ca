"""Find the schema of a field by its path, such as `.spec.a` or `.spec['a-b']`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import Node
from jobgen.model.lazy_re import lazy_pattern

_STEP = lazy_pattern(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[(?:'((?:[^'\\]|\\.)*)'|(\d+))\]", re.ASCII)


def find_field(path: str, schema: Mapping[str, Node], *, allow_items: bool = True) -> Mapping[str, Node] | None:
    """Return the schema of the field at a path; None if there is no such field."""
    place, found = 0, schema
    while place < len(path):
        step = _STEP.match(path, place)
        if step is None:
            return None
        place = step.end()
        name = step[1] or re.sub(r"\\(.)", r"\1", step[2] or "")
        properties, extra = as_mapping(found.get("properties")), found.get("additionalProperties")
        is_item = step[3] is not None
        child = properties.get(name, extra) if not is_item else found.get("items") if allow_items else None
        if not isinstance(child, dict):
            return None
        found = child
    return found if place else None
