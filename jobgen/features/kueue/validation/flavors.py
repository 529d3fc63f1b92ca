"""What the webhooks refuse of ResourceFlavors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.validation.formats import list_value_errors, validate_key, validate_labels
from jobgen.features.kueue.workload.field_errors import DUPLICATE, INVALID, FieldError


def validate_resource_flavor(obj: Mapping[str, Any]) -> Iterator[FieldError]:
    """List what Kueue refuses of a ResourceFlavor."""
    spec = as_mapping(obj.get("spec"))
    yield from validate_labels("spec.nodeLabels", spec.get("nodeLabels"))
    yield from _validate_taints("spec.nodeTaints", spec.get("nodeTaints"))
    yield from validate_tolerations("spec.tolerations", spec.get("tolerations"))


def _validate_taints(field: str, taints: Any) -> Iterator[FieldError]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(map(as_mapping, as_list(taints))):
        path, key, value = f"{field}[{index}]", str(taint.get("key", "")), str(taint.get("value") or "")
        yield from validate_key(f"{path}.key", key)
        if errors := list(list_value_errors(value)):
            yield FieldError(f"{path}.value", INVALID, ";".join(errors), value)
        pair = (key, str(taint.get("effect", "")))
        if pair in seen:
            yield FieldError(path, DUPLICATE, "taints must be unique by key and effect pair", taint)
        seen.add(pair)


def validate_tolerations(field: str, tolerations: Any) -> Iterator[FieldError]:
    """Validate the keys of tolerations; the schema has the rest."""
    for index, toleration in enumerate(map(as_mapping, as_list(tolerations))):
        if key := str(toleration.get("key") or ""):
            yield from validate_key(f"{field}[{index}].key", key)
