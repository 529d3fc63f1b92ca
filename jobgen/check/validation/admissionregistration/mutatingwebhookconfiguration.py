"""Validate MutatingWebhookConfigurations."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation
from jobgen.check.validation.admissionregistration._webhooks import validate_webhooks
from jobgen.model.data import Node


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the webhooks."""
    validate_webhooks(obj, run)
