"""Documents for Flux: a Kustomization for each environment of the rendered tree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from jobgen.features.gitops.app_projects import TeamProject, build_generators, name_cluster
from jobgen.features.gitops.engine_kinds import (
    INJECTED_FIELDS,
    QUEUE_MANAGER,
    EngineKind,
    GitSource,
    build_cel_checks,
    build_lua_check,
    list_differences,
    resource_name,
)
from jobgen.k8s.kueue import QUEUE_LABEL
from jobgen.model.data import Plain
from jobgen.yamlio.write import to_yaml

GENERATE_PATHS = "argocd.argoproj.io/manifest-generate-paths"
CONFIG_PARTS = ("health", "differences", "types")
_CORE_TYPES = {"env": "core/v1/EnvVar", "resources": "core/v1/ResourceRequirements"}


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


def build_config_map(kinds: Sequence[EngineKind], parts: Collection[str]) -> dict[str, Plain]:
    """The part of the ConfigMap `argocd-cm` that is about training jobs."""
    customizations: dict[str, tuple[str, Callable[[EngineKind], str]]] = {
        "health": ("health", lambda kind: build_lua_check(kind) if kind.has_health else ""),
        "differences": ("ignoreDifferences", _ignored_differences),
        "types": ("knownTypeFields", _known_types),
    }
    data: dict[str, Plain] = {}
    for part in parts:
        name, write = customizations[part]
        for kind in kinds:
            if text := write(kind):
                data[f"resource.customizations.{name}.{kind.key}"] = text
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "argocd-cm", "namespace": "argocd", "labels": {"app.kubernetes.io/part-of": "argocd"}},
        "data": data,
    }


def _ignored_differences(kind: EngineKind) -> str:
    """Fields that are written in the cluster: by Kueue to queued jobs, by webhooks and controllers to all jobs."""
    others = list_differences(kind.workload) if kind.workload else []
    # Jobs without a queue are compared in full, including `suspend` and tolerations.
    fields = _kueue_fields(kind) if kind.is_queued else []
    queued = [f'select(.metadata.labels["{QUEUE_LABEL}"]) | {path}' for path in fields]
    timestamps = [f".{path}[]?.time" for path, has_manager in kind.patch_paths if has_manager]
    found = queued + (timestamps if kind.is_queued else []) + others
    return to_yaml({"jqPathExpressions": found}) if found else ""


def _kueue_fields(kind: EngineKind) -> list[str]:
    suspend = ["." + ".".join(kind.suspend_path)] if kind.suspend_path else []
    if kind.workload:
        pods = ["".join("[]?" if step == "*" else f".{step}" for step in path) for path in kind.pod_paths]
        return [*suspend, *(f"{pod}.{field}" for pod in pods for field in INJECTED_FIELDS), *kind.workload.queued]
    replicas = sorted({".".join(path[: path.index("template") - 1]) for path in kind.pod_paths})
    templates = [f".{path}[]?.template.spec.{field}" for path in replicas for field in INJECTED_FIELDS]
    # Kueue adds its own patch; if patches have no `manager`, all of them are ignored.
    own = f'[]? | select(.manager == "{QUEUE_MANAGER}")'
    return suspend + templates + [f".{path}{own if has_manager else ''}" for path, has_manager in kind.patch_paths]


def _known_types(kind: EngineKind) -> str:
    """Where a kind contains types of Kubernetes, so that `1000m` and `1` are not a difference."""
    if kind.group == "batch":
        return ""
    # Argo CD traverses lists without naming them.
    fields = [(".".join(step for step in path if step != "*"), "core/v1/PodSpec") for path in kind.pod_paths]
    for name, type_ in _CORE_TYPES.items():
        # A kind without pod templates has fields of the main container.
        containers = (version.template.container for version in kind.versions if version.template)
        path = next((".".join(map(str, each[name])) for each in containers if name in each), "")
        fields += [(path, type_)] if path else []
    return to_yaml([{"field": path, "type": type_} for path, type_ in fields]) if fields else ""


def build_application_set(
    source: GitSource, envs: Sequence[str], projects: Sequence[TeamProject] = ()
) -> dict[str, Plain]:
    """An ApplicationSet with an Application for every namespace of every environment, in the project of its team."""
    env = f"{{{{ index .path.segments {len(source.prefix) + 1} }}}}" if any(envs) else ""
    folders = [{"path": f"{source.environment_path(env)}/*"} for env in envs]
    everything: Plain = {"git": {"repoURL": source.url, "revision": source.revision, "directories": folders}}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": "jobs", "namespace": "argocd"},
        "spec": {
            "goTemplate": True,
            "goTemplateOptions": ["missingkey=error"],
            "generators": build_generators(projects, source) if projects else [everything],
            "syncPolicy": {"preserveResourcesOnDeletion": True},
            "template": {
                "metadata": {"name": f"{resource_name(env)}-{{{{ .path.basenameNormalized }}}}"},
                "spec": {
                    "project": "{{ .values.project }}" if projects else "default",
                    "source": {"repoURL": source.url, "targetRevision": source.revision, "path": "{{ .path.path }}"},
                    "destination": {**name_cluster(env), "namespace": "{{ .path.basename }}"},
                    "syncPolicy": {
                        "automated": {"prune": True, "selfHeal": False, "allowEmpty": False},
                        "syncOptions": ["ApplyOutOfSyncOnly=true", "PruneLast=true", "RespectIgnoreDifferences=true"],
                    },
                },
            },
        },
    }
