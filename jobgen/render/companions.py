"""Companions: objects that a job needs beside its own, such as the Service of its pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.k8s.argocd_annotations import SYNC_OPTIONS
from jobgen.model.data import Node

JOB_LABEL = "jobgen.dev/job"
"""The label of a companion with the name of the object that it belongs to."""

# A companion is deleted, or kept, together with its job.
_SHARED_ANNOTATIONS = (SYNC_OPTIONS, "kustomize.toolkit.fluxcd.io/prune")


def build_companion(api_version: str, kind: str, name: Node, made: Mapping[str, Any]) -> dict[str, Any]:
    """Build a companion of a job's object, in its namespace and with its name in a label."""
    owner = made["metadata"]
    metadata: dict[str, Any] = {"name": name}
    if "namespace" in owner:
        metadata["namespace"] = owner["namespace"]
    metadata["labels"] = {JOB_LABEL: owner["name"]}
    annotations = owner.get("annotations")
    if isinstance(annotations, dict):
        shared = {key: value for key, value in annotations.items() if key in _SHARED_ANNOTATIONS}
        if shared:
            metadata["annotations"] = shared
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
