"""Validate PodTemplates."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, is_set
from jobgen.model.data import Node


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate that there is a template; its pods are validated as those of other kinds."""
    if not is_set(obj.get("template")):
        node = find_key(obj, "template", obj)
        run.report("missing-field", "a PodTemplate requires `template`; set it", node)
