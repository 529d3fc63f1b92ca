"""Validate VolumeAttributesClasses."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation
from jobgen.check.validation.storage._parameters import validate_parameters, validate_provisioner
from jobgen.model.data import Node


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the driver and its parameters."""
    validate_provisioner(obj, "driverName", run)
    validate_parameters(obj, run, required=True)
