"""Annotations of Argo CD: lists of words, separated by commas."""

from __future__ import annotations

from jobgen.k8s.objects import Manifest, as_text

DOMAIN = "argocd.argoproj.io/"
HOOK = DOMAIN + "hook"
DELETE_POLICY = DOMAIN + "hook-delete-policy"
SYNC_OPTIONS = DOMAIN + "sync-options"
SYNC_WAVE = DOMAIN + "sync-wave"


def split_annotation(manifest: Manifest, annotation: str) -> list[str]:
    """The words of an annotation; none where it is missing."""
    found = manifest.metadata.get("annotations")
    value = as_text(found.get(annotation)) if isinstance(found, dict) else ""
    return [word.strip() for word in value.split(",")] if value else []


def is_hook(manifest: Manifest) -> bool:
    """Whether Argo CD makes the object anew at each sync, beside those it compares."""
    return bool(split_annotation(manifest, HOOK))


def is_training_job(manifest: Manifest) -> bool:
    """Whether the object is a job that trains, rather than a runtime or anything else."""
    return manifest.kind is not None and bool(manifest.kind.roles)
