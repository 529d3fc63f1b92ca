"""The annotations that Argo CD reads: comma-separated lists."""

from __future__ import annotations

from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.k8s.workloads import find_workload

DOMAIN = "argocd.argoproj.io/"
HOOK = DOMAIN + "hook"
DELETE_POLICY = DOMAIN + "hook-delete-policy"
HELM_HOOK = "helm.sh/hook"
"""The annotation of Helm, whose hooks Argo CD runs as its own."""
SYNC_OPTIONS = DOMAIN + "sync-options"
SYNC_WAVE = DOMAIN + "sync-wave"


def split_annotation(manifest: Manifest, annotation: str) -> list[str]:
    """Return the items of an annotation; an empty list if it is missing."""
    value = as_text(manifest.annotations[annotation]) if annotation in manifest.annotations else ""
    return [item.strip() for item in value.split(",")] if value else []


def is_hook(manifest: Manifest) -> bool:
    """Return True if the object is a hook, which Argo CD creates again at each sync."""
    return bool(split_annotation(manifest, HOOK))


def is_training_job(manifest: Manifest) -> bool:
    """Return True if the object is a training job, and not a runtime or another kind."""
    return manifest.kind is not None and bool(manifest.kind.roles)


def lacks_health_check(manifest: Manifest) -> bool:
    """Return True if the object is a job whose health Argo CD cannot tell; it knows the Jobs of Kubernetes."""
    workload = find_workload(manifest.group, manifest.kind_name)
    if workload is None:
        return is_training_job(manifest)
    return workload.operator != "kubernetes" and not workload.scheduled


def uses_server_side_apply(manifest: Manifest) -> bool:
    """Return True if the API server merges the object: with Flux, and with Argo CD if the object asks for it."""
    return manifest.cluster.gitops == "flux" or "ServerSideApply=true" in split_annotation(manifest, SYNC_OPTIONS)
