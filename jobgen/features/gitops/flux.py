"""Documents for Flux: a Kustomization for each environment of the rendered tree."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jobgen.features.gitops.health import build_cel_checks, build_lua_check
from jobgen.features.gitops.inputs import INJECTED_FIELDS, QUEUE_MANAGER, EngineKind, GitSource, resource_name
from jobgen.features.gitops.status_rules import list_differences
from jobgen.k8s.kueue import QUEUE_LABEL
from jobgen.model.data import Plain
from jobgen.yamlio.write import to_yaml


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


GENERATE_PATHS = "argocd.argoproj.io/manifest-generate-paths"
CONFIG_PARTS = ("health", "differences", "types")
_CUSTOMIZATIONS = {"health": "health", "differences": "ignoreDifferences", "types": "knownTypeFields"}
_CORE_TYPES = {"env": "core/v1/EnvVar", "resources": "core/v1/ResourceRequirements"}
_IN_CLUSTER = "https://kubernetes.default.svc"


def build_config_map(kinds: Sequence[EngineKind], parts: Collection[str]) -> dict[str, Plain]:
    """The part of the ConfigMap `argocd-cm` that is about training jobs."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "argocd-cm", "namespace": "argocd", "labels": {"app.kubernetes.io/part-of": "argocd"}},
        "data": {
            f"resource.customizations.{_CUSTOMIZATIONS[part]}.{kind.key}": text
            for part in parts
            for kind in kinds
            if (text := _build_setting(part, kind))
        },
    }


def _build_setting(part: str, kind: EngineKind) -> str:
    if part == "health":
        return build_lua_check(kind) if kind.has_health else ""
    settings = _ignored_differences(kind) if part == "differences" else _known_types(kind)
    return to_yaml(settings) if settings else ""


def _ignored_differences(kind: EngineKind) -> dict[str, list[str]]:
    """Fields that are written in the cluster: by Kueue to queued jobs, by webhooks and controllers to all jobs."""
    others = list_differences(kind.workload) if kind.workload else []
    # Jobs without a queue are compared in full, including `suspend` and tolerations.
    fields = _kueue_fields(kind) if kind.is_queued else []
    queued = [f'select(.metadata.labels["{QUEUE_LABEL}"]) | {path}' for path in fields]
    timestamps = [f".{path}[]?.time" for path, has_manager in kind.patch_paths if has_manager]
    found = queued + (timestamps if kind.is_queued else []) + others
    return {"jqPathExpressions": found} if found else {}


def _kueue_fields(kind: EngineKind) -> list[str]:
    suspend = ["." + ".".join(kind.suspend_path)] if kind.suspend_path else []
    if kind.workload:
        templates = [f"{_to_jq(path)}.{field}" for path in kind.pod_paths for field in INJECTED_FIELDS]
        return [*suspend, *templates, *kind.workload.queued]
    replicas = sorted({".".join(path[: path.index("template") - 1]) for path in kind.pod_paths})
    templates = [f".{path}[]?.template.spec.{field}" for path in replicas for field in INJECTED_FIELDS]
    return suspend + templates + [_kueue_patch(path, has_manager=has_manager) for path, has_manager in kind.patch_paths]


def _to_jq(path: tuple[str, ...]) -> str:
    return "".join("[]?" if step == "*" else f".{step}" for step in path)


def _kueue_patch(path: str, has_manager: bool) -> str:
    """Kueue adds its own patch; if patches have no `manager`, all of them are ignored."""
    return f'.{path}[]? | select(.manager == "{QUEUE_MANAGER}")' if has_manager else f".{path}"


def _known_types(kind: EngineKind) -> list[dict[str, str]]:
    """Where a kind contains types of Kubernetes, so that `1000m` and `1` are not a difference."""
    if kind.is_builtin:
        return []
    # Argo CD traverses lists without naming them.
    pods = [
        {"field": ".".join(step for step in path if step != "*"), "type": "core/v1/PodSpec"} for path in kind.pod_paths
    ]
    return pods + [
        {"field": path, "type": _CORE_TYPES[name]} for name in _CORE_TYPES if (path := kind.container_path(name))
    ]


def build_application_set(source: GitSource, envs: Sequence[str]) -> dict[str, Plain]:
    """An ApplicationSet with an Application for every namespace of every environment."""
    env = f"{{{{ index .path.segments {len(source.tree)} }}}}" if any(envs) else ""
    folders = [{"path": f"{source.environment_path(env)}/*"} for env in envs]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": "jobs", "namespace": "argocd"},
        "spec": {
            "goTemplate": True,
            "goTemplateOptions": ["missingkey=error"],
            "generators": [{"git": {"repoURL": source.url, "revision": source.revision, "directories": folders}}],
            "syncPolicy": {"preserveResourcesOnDeletion": True},
            "template": {
                "metadata": {"name": f"{resource_name(env)}-{{{{ .path.basenameNormalized }}}}"},
                "spec": {
                    "project": "default",
                    "source": {
                        "repoURL": source.url,
                        "targetRevision": source.revision,
                        "path": "{{ .path.path }}",
                    },
                    "destination": {
                        **({"name": env} if env else {"server": _IN_CLUSTER}),
                        "namespace": "{{ .path.basename }}",
                    },
                    "syncPolicy": {
                        "automated": {"prune": True, "selfHeal": False, "allowEmpty": False},
                        "syncOptions": ["ApplyOutOfSyncOnly=true", "PruneLast=true", "RespectIgnoreDifferences=true"],
                    },
                },
            },
        },
    }


def build_path_annotation(source: GitSource, overlays: tuple[str, ...]) -> dict[str, str]:
    """The annotation for an Application that runs jobgen as a plugin for an environment with these overlays."""
    return {GENERATE_PATHS: ";".join(source.input_paths(overlays))}
