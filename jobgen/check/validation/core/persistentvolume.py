"""Validate PersistentVolumes."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, is_set
from jobgen.check.validation.core._volume_spec import MOUNTABLE_SOURCES, validate_volume_spec
from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import Node

_MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the spec, and mount options in an annotation."""
    validate_volume_spec(run.spec, find_key(obj, "spec", obj), run)
    annotations = as_mapping(run.metadata.get("annotations"))
    if _MOUNT_OPTIONS in annotations and not any(is_set(run.spec.get(name)) for name in MOUNTABLE_SOURCES):
        message = f"`{_MOUNT_OPTIONS}` is not valid for this source of a volume; use `mountOptions`"
        run.report("invalid-annotation", message, find_key(annotations, _MOUNT_OPTIONS, annotations))
