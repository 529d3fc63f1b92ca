"""Documents for Argo CD: settings for argocd-cm, an ApplicationSet over the rendered tree, and an annotation."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jobgen.gitops.health import build_lua_check
from jobgen.gitops.inputs import INJECTED, QUEUE_LABEL, QUEUE_MANAGER, EngineKind, GitSource, resource_name
from jobgen.model.data import Data
from jobgen.yamlio.write import to_yaml

GENERATE_PATHS = "argocd.argoproj.io/manifest-generate-paths"
CONFIG_PARTS = ("health", "differences", "types")
_SPELLINGS = {"health": "health", "differences": "ignoreDifferences", "types": "knownTypeFields"}
_CORE = {"env": "core/v1/EnvVar", "resources": "core/v1/ResourceRequirements"}
_HERE = "https://kubernetes.default.svc"


def build_config_map(kinds: Sequence[EngineKind], parts: Collection[str]) -> Data:
    """The part of the ConfigMap `argocd-cm` that is about training jobs."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "argocd-cm", "namespace": "argocd", "labels": {"app.kubernetes.io/part-of": "argocd"}},
        "data": {
            f"resource.customizations.{_SPELLINGS[part]}.{kind.key}": text
            for part in parts
            for kind in kinds
            if (text := _setting(part, kind))
        },
    }


def _setting(part: str, kind: EngineKind) -> str:
    if part == "health":
        return build_lua_check(kind) if kind.trains else ""
    settings = differences(kind) if part == "differences" else known_types(kind)
    return to_yaml(settings) if settings else ""


def differences(kind: EngineKind) -> dict[str, list[str]]:
    """What is written into a job after Git: by Kueue into those that it holds, and by a webhook into all."""
    if not kind.queued:
        return {}
    # What no queue holds is Git's alone: its `suspend` and its tolerations are still compared.
    held = [f'select(.metadata.labels["{QUEUE_LABEL}"]) | {path}' for path in _queue_writes(kind)]
    dated = [f".{place}[]?.time" for place, managed in kind.patches if managed]
    return {"jqPathExpressions": held + dated}


def _queue_writes(kind: EngineKind) -> list[str]:
    suspend = ["." + ".".join(kind.suspend)] if kind.suspend else []
    replicas = sorted({".".join(path[: path.index("template") - 1]) for path in kind.pods})
    inside = [f".{place}[]?.template.spec.{field}" for place in replicas for field in INJECTED]
    return suspend + inside + [_patch_writes(place, managed=managed) for place, managed in kind.patches]


def _patch_writes(place: str, *, managed: bool) -> str:
    """Kueue adds a patch of its own; where nobody signs patches, all of them are let be."""
    return f'.{place}[]? | select(.manager == "{QUEUE_MANAGER}")' if managed else f".{place}"


def known_types(kind: EngineKind) -> list[Data]:
    """Where the types of Kubernetes are inside a kind, so that `1000m` and `1` are no difference."""
    # Lists on the way are walked without being named.
    pods = [{"field": ".".join(step for step in path if step != "*"), "type": "core/v1/PodSpec"} for path in kind.pods]
    return pods + [{"field": at, "type": _CORE[field]} for field in _CORE if (at := kind.container(field))]


def build_application_set(place: GitSource, envs: Sequence[str]) -> Data:
    """An Application for every namespace of every environment."""
    env = f"{{{{ index .path.segments {len(place.tree)} }}}}" if any(envs) else ""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": "jobs", "namespace": "argocd"},
        "spec": {
            "goTemplate": True,
            "goTemplateOptions": ["missingkey=error"],
            "generators": [{"git": _directories(place, envs)}],
            "syncPolicy": {"preserveResourcesOnDeletion": True},
            "template": {
                "metadata": {"name": f"{resource_name(env)}-{{{{ .path.basenameNormalized }}}}"},
                "spec": {
                    "project": "default",
                    "source": {
                        "repoURL": place.repo,
                        "targetRevision": place.revision,
                        "path": "{{ .path.path }}",
                    },
                    "destination": {
                        **({"name": env} if env else {"server": _HERE}),
                        "namespace": "{{ .path.basename }}",
                    },
                    "syncPolicy": _sync_policy(),
                },
            },
        },
    }


def _directories(place: GitSource, envs: Sequence[str]) -> Data:
    folders = [{"path": f"{place.rendered(env)}/*"} for env in envs]
    return {"repoURL": place.repo, "revision": place.revision, "directories": folders}


def _sync_policy() -> Data:
    return {
        "automated": {"prune": True, "selfHeal": False, "allowEmpty": False},
        "syncOptions": ["ApplyOutOfSyncOnly=true", "PruneLast=true", "RespectIgnoreDifferences=true"],
    }


def build_path_annotation(place: GitSource, lineage: tuple[str, ...]) -> Data:
    """The annotation of an Application that runs jobgen as a plugin for an environment."""
    return {"metadata": {"annotations": {GENERATE_PATHS: ";".join(place.sources(lineage))}}}
