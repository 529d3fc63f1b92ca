"""Validate ClusterRoleBindings."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation
from jobgen.check.admission.names import PATH_SEGMENT_NAME
from jobgen.check.validation.rbac._bindings import validate_binding
from jobgen.model.data import Node

NAME_FORMAT = PATH_SEGMENT_NAME


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the role and the subjects."""
    validate_binding(obj, run, ("ClusterRole",), namespaced=False)
