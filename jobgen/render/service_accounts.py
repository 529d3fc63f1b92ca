"""Render the ServiceAccounts that a job creates for its pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.model.data import value_of
from jobgen.render.companions import build_companion
from jobgen.render.expand import JobSpec


def build_service_accounts(made: Mapping[str, Any], job: JobSpec) -> tuple[Mapping[str, Any], ...]:
    """Build the ServiceAccounts with `create: true`, each once."""
    found: dict[str, Mapping[str, Any]] = {}
    # A patch may have replaced the name.
    owner = {**made, "metadata": {"name": job.metadata["name"], **made["metadata"]}}
    for role in job.roles.values():
        account = role.pod.get("serviceAccount")
        if isinstance(account, dict) and value_of(account.get("create")) is True:
            companion = build_companion("v1", "ServiceAccount", account["name"], owner)
            metadata = companion["metadata"]
            annotations = {**metadata.get("annotations", {}), **account.get("annotations", {})}
            if annotations:
                metadata["annotations"] = annotations
            found[str(value_of(account["name"]))] = companion
    return tuple(found.values())
