"""Documents for Flux: a Kustomization for each environment of the rendered tree."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.gitops.health import build_cel_checks
from jobgen.gitops.inputs import INJECTED, QUEUE_LABEL, EngineKind, GitSource, resource_name
from jobgen.model.data import Data


def build_kustomization(kinds: Sequence[EngineKind], place: GitSource, env: str, source: str, wait: str) -> Data:
    """The Kustomization of an environment; with `wait`, it is ready when all jobs have ended well."""
    jobs = [kind for kind in kinds if kind.trains]
    return {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": resource_name(env), "namespace": "flux-system"},
        "spec": {
            "sourceRef": {"kind": "GitRepository", "name": source},
            "path": f"./{place.rendered(env)}",
            "interval": "1h",
            "retryInterval": "5m",
            "timeout": wait or "5m",
            "wait": bool(wait),
            "prune": True,
            "force": False,
            "deletionPolicy": "Orphan",
            "ignore": [rule for kind in jobs if (rule := ignore_rules(kind))],
            "healthCheckExprs": [
                {"apiVersion": kind.api_version, "kind": kind.name, **build_cel_checks(kind)} for kind in jobs
            ],
        },
    }


def ignore_rules(kind: EngineKind) -> Data:
    """The fields of a kind that Kueue writes into the jobs it holds."""
    if not kind.queued:
        return None
    suspend = ["/" + "/".join(kind.suspend)] if kind.suspend else []
    # A pointer cannot mean all items of a list, but pods are found by their role.
    inside = ["/" + "/".join((*pod, field)) for pod in kind.pods if "*" not in pod for field in INJECTED]
    # Patches that somebody signs are told apart by the API server, so that Flux owns its own alone.
    unsigned = ["/" + place.replace(".", "/") for place, managed in kind.patches if not managed]
    target = {"group": kind.group, "kind": kind.name, "labelSelector": QUEUE_LABEL}
    return {"target": target, "paths": suspend + inside + unsigned}
