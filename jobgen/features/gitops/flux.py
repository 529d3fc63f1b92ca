"""Documents for Flux: a Kustomization for each environment of the rendered tree."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.features.gitops.health import build_cel_checks
from jobgen.features.gitops.inputs import INJECTED_FIELDS, EngineKind, GitSource, resource_name
from jobgen.k8s.kueue import QUEUE_LABEL
from jobgen.model.data import Plain


def build_kustomization(
    kinds: Sequence[EngineKind], source: GitSource, env: str, source_name: str, wait: str
) -> dict[str, Plain]:
    """The Kustomization of an environment; with `wait`, it is ready when all jobs have succeeded."""
    queued = [kind for kind in kinds if kind.is_job and kind.is_queued]
    return {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": resource_name(env), "namespace": "flux-system"},
        "spec": {
            "sourceRef": {"kind": "GitRepository", "name": source_name},
            "path": f"./{source.environment_path(env)}",
            "interval": "1h",
            "retryInterval": "5m",
            "timeout": wait or "5m",
            "wait": bool(wait),
            "prune": True,
            "force": False,
            "deletionPolicy": "Orphan",
            "ignore": list(map(_build_ignore_rule, queued)),
            "healthCheckExprs": [
                {"apiVersion": kind.api_version, "kind": kind.name, **build_cel_checks(kind)}
                for kind in kinds
                if kind.has_health
            ],
        },
    }


def _build_ignore_rule(kind: EngineKind) -> dict[str, Plain]:
    """Ignore the fields that Kueue writes to queued jobs."""
    suspend = ["/" + "/".join(kind.suspend_path)] if kind.suspend_path else []
    # A JSON pointer cannot match all items of a list, so only kinds with a map of roles are covered.
    templates = [
        "/" + "/".join((*path, field)) for path in kind.pod_paths if "*" not in path for field in INJECTED_FIELDS
    ]
    # The API server merges patches by `manager`, so Flux already owns only its own.
    patches = ["/" + path.replace(".", "/") for path, has_manager in kind.patch_paths if not has_manager]
    target = {"group": kind.group, "kind": kind.name, "labelSelector": QUEUE_LABEL}
    return {"target": target, "paths": suspend + templates + patches}
