"""Validate PersistentVolumeClaims."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, is_set
from jobgen.check.admission.volumes import validate_claim_spec
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.releases import Release
from jobgen.model.data import Node

_ATTRIBUTES_CLASS_SINCE: Release = (1, 34)
_SOURCES = frozenset((("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")))


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the spec."""
    key = find_key(obj, "spec", obj)
    validate_claim_spec(key if isinstance(key, str) else "spec", _drop_fields(run.spec, run.release), obj, run)


def _drop_fields(spec: Mapping[str, Node], release: Release) -> Mapping[str, Node]:
    """Return the spec without the fields that the API server drops before it validates."""
    dropped: set[str] = set()
    if release < _ATTRIBUTES_CLASS_SINCE:
        dropped.add("volumeAttributesClassName")
    # Sources in other namespaces need a feature gate that is off by default.
    if as_text(as_mapping(spec.get("dataSourceRef")).get("namespace")):
        dropped.add("dataSourceRef")
    # Without a reference, the API server drops sources of unknown kinds.
    source = as_mapping(spec.get("dataSource"))
    is_known = (as_text(source.get("apiGroup")), as_text(source.get("kind"))) in _SOURCES
    if not is_known and ("dataSourceRef" in dropped or not is_set(spec.get("dataSourceRef"))):
        dropped.add("dataSource")
    return {name: value for name, value in spec.items() if name not in dropped} if dropped else spec
