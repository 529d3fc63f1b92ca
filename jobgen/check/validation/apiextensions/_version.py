"""Validate the subresources, columns and selectable fields of a version."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    get_key,
    iter_items,
    report_missing,
    report_unsupported,
)
from jobgen.check.validation.apiextensions._paths import find_field
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE_TYPES = ("boolean", "integer", "string")
_MAX_SELECTABLE = 8


def validate_subresources(version: Mapping[str, Node], run: Validation) -> None:
    """Validate the paths of the subresource `scale`."""
    scale = as_mapping(version.get("subresources")).get("scale")
    if not isinstance(scale, dict):
        return
    key = get_key(as_mapping(version["subresources"]), "scale")
    for field, roots in (("specReplicasPath", (".spec.",)), ("statusReplicasPath", (".status.",))):
        if not as_text(scale.get(field)):
            report_missing("`scale`", scale, field, key, run)
        else:
            _validate_path(as_text(scale[field]), scale[field], roots, run)
    selector = as_text(scale.get("labelSelectorPath"))
    if selector:
        _validate_path(selector, scale["labelSelectorPath"], (".spec.", ".status."), run)


def _validate_path(text: str, node: Node, roots: tuple[str, ...], run: Validation) -> None:
    if not text.startswith(roots):
        wanted = " or ".join(f"`{root}`" for root in roots)
        run.report("invalid-value", f"`{text}` is not a path that starts with {wanted}", node)


def validate_columns(version: Mapping[str, Node], run: Validation) -> None:
    """Validate the columns that `kubectl get` prints."""
    key = get_key(version, "additionalPrinterColumns")
    for column, node in iter_items(key, version.get("additionalPrinterColumns")):
        for field in ("name", "type", "jsonPath"):
            if not as_text(column.get(field)):
                report_missing("a column", column, field, node, run)
        kind, form, path = (as_text(column.get(field)) for field in ("type", "format", "jsonPath"))
        if kind and kind not in _COLUMN_TYPES:
            report_unsupported("type", column["type"], _COLUMN_TYPES, run)
        if form and form not in _COLUMN_FORMATS:
            report_unsupported("format", column["format"], _COLUMN_FORMATS, run)
        if path and not path.startswith("."):
            run.report("invalid-value", f"`{path}` is not a path; start with `.`", column["jsonPath"])


def validate_selectable(version: Mapping[str, Node], schema: Mapping[str, Node], run: Validation) -> None:
    """Validate the fields by which objects can be selected: they exist and are scalars."""
    seen: set[str] = set()
    key = get_key(version, "selectableFields")
    for item, node in iter_items(key, version.get("selectableFields")):
        path = as_text(item.get("jsonPath"))
        if not path:
            report_missing("a selectable field", item, "jsonPath", node, run)
            continue
        found = find_field(path, schema, allow_items=False)
        kind = as_text(as_mapping(found).get("type")) if found is not None else ""
        if path.startswith(".metadata") or kind not in _SELECTABLE_TYPES:
            message = f"`{path}` is not the path of a field of type string, boolean or integer outside of `metadata`"
            run.report("invalid-value", message, item["jsonPath"])
        elif path in seen:
            run.report(
                "duplicate-item", f"`{path}` is twice in `selectableFields`; remove one of them", item["jsonPath"]
            )
        seen.add(path)
    if len(seen) > _MAX_SELECTABLE:
        message = f"`{len(seen)}` selectable fields are too many; the limit is {_MAX_SELECTABLE}"
        run.report("out-of-range", message, key)
