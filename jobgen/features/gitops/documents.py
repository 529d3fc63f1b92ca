"""Documents for Argo CD and Flux: AppProjects of teams, and a Kustomization for each environment."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

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
from jobgen.k8s.team_kinds import (
    GRANTING_KINDS,
    is_counted,
    is_everything,
    is_of_cluster,
    list_named_kinds,
    list_patterns,
)
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.teams import Team, Teams, TeamScope
from jobgen.yamlio.write import to_yaml

_ALL = "*"
_WILDCARD = lazy_pattern(r"[*?\[]")

Namespaces = Mapping[str, Sequence[str]]
"""Patterns of namespaces, by environment or by team; one that begins with `!` leaves namespaces out."""


class TeamProject(NamedTuple):
    """The project of a team, or of what teams share."""

    name: str
    teams: tuple[Team, ...]
    """Whose kinds are allowed."""
    allowed: Namespaces
    """Where its Applications may deploy to, by environment."""
    deployed: Namespaces
    """What the ApplicationSet deploys with it, by environment."""


def list_projects(teams: Teams, envs: Sequence[str]) -> list[TeamProject]:
    """Return the project of each team, and last that of shared namespaces if there are any."""
    claims = {env: {team.name: _list_namespaces(teams, team, env) for team in teams.all} for env in envs}
    own = {env: {name: _select_own(name, found) for name in found} for env, found in claims.items()}
    projects = [
        TeamProject(
            f"{resource_name('')}-{team.name}",
            (team,),
            {env: _leave_out(found[team.name], found, team.name) for env, found in claims.items()},
            {env: found[team.name] for env, found in own.items()},
        )
        for team in teams.all
    ]
    sharing = tuple(team for team in teams.all if any(own[env][team.name] != claims[env][team.name] for env in envs))
    shared: dict[str, Sequence[str]] = {}
    for env, found in claims.items():
        left = {each for name, listed in found.items() for each in listed if each not in own[env][name]}
        shared[env] = _leave_out([_ALL] if _ALL in left else sorted(left), own[env])
    return [*projects, TeamProject(resource_name(""), sharing, shared, shared)] if sharing else projects


def _list_namespaces(teams: Teams, team: Team, env: str) -> Sequence[str]:
    """Return the patterns of a team's namespaces; `*` if it has no list, or may use all."""
    allowed = teams.find_scope(team, env).allowed
    listed = allowed.get("namespaces", (_ALL,))
    if not all(each.strip(_ALL) for each in listed):
        return (_ALL,)
    # The tree has objects without a namespace in the folder `default`.
    return (*listed, "default") if any(map(_may_be_of_cluster, allowed.get("kinds", ()))) else listed


def _may_be_of_cluster(pattern: str) -> bool:
    if is_everything(pattern):
        return False
    return is_of_cluster(pattern.partition(".")[0]) or _WILDCARD.search(pattern) is not None


def _select_own(name: str, claims: Namespaces) -> Sequence[str]:
    """Return the patterns of a team that match no namespace of another team."""
    others = [each for other, listed in claims.items() if other != name for each in listed if each != _ALL]
    own = (each for each in claims[name] if each != _ALL)
    return tuple(each for each in own if not any(_may_overlap(each, other) for other in others))


def _may_overlap(first: str, second: str) -> bool:
    stems = [_WILDCARD.split(each)[0] for each in (first, second)]
    if stems[0] == first or stems[1] == second:
        return fnmatchcase(first, second) or fnmatchcase(second, first)
    return stems[0].startswith(stems[1]) or stems[1].startswith(stems[0])


def _leave_out(patterns: Sequence[str], claims: Namespaces, name: str = "") -> Sequence[str]:
    """Return the patterns; if they are for all namespaces, without what other teams have."""
    if _ALL not in patterns:
        return patterns
    others = {each for other, listed in claims.items() if other != name for each in listed if each != _ALL}
    return (*patterns, *(f"!{each}" for each in sorted(others)))


def name_cluster(env: str) -> dict[str, Plain]:
    """Return the cluster of an environment, as a part of a destination."""
    return {"name": env} if env else {"server": "https://kubernetes.default.svc"}


def build_project(project: TeamProject, teams: Teams, source: GitSource) -> dict[str, Plain]:
    """Return the AppProject: one source, the namespaces, and the kinds that its teams may have in any environment."""
    scopes = [teams.find_scope(team, env) for team in project.teams for env in project.allowed]
    patterns = {each for scope in scopes for each in list_patterns(scope)}
    kinds = sorted({each for scope in scopes for each in list_kinds(scope)})
    namespaced = "Whitelist", [each for each in kinds if not is_of_cluster(each[0])]
    if any(map(is_everything, patterns)):
        refused = GRANTING_KINDS - {kind for kind, _ in kinds}
        namespaced = "Blacklist", [(kind, _ALL) for kind in sorted(refused)]
    elif not namespaced[1]:
        # An empty list would allow everything.
        namespaced = "Blacklist", [(_ALL, _ALL)]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": project.name, "namespace": "argocd"},
        "spec": {
            "sourceRepos": [source.url],
            "destinations": [
                {**name_cluster(env), "namespace": each} for env, found in project.allowed.items() for each in found
            ],
            "clusterResourceWhitelist": _write_kinds(each for each in kinds if _may_be_of_cluster(each[0])),
            f"namespaceResource{namespaced[0]}": _write_kinds(namespaced[1]),
        },
    }


def list_kinds(team: TeamScope) -> Iterator[tuple[str, str]]:
    """Yield the kinds that a team may have and whose pods count for its budget, each with its group, as patterns."""
    for pattern in list_patterns(team):
        named = list_named_kinds(team, pattern)
        if named is not None:
            yield from ((kind, group) for group, kind in named if not team.has_budget or is_counted(team, group, kind))
        elif not is_everything(pattern):
            kind, _, group = pattern.partition(".")
            yield kind, group or _ALL


def _write_kinds(kinds: Iterable[tuple[str, str]]) -> Plain:
    return [{"group": group, "kind": kind} for kind, group in kinds]


def build_generators(projects: Iterable[TeamProject], source: GitSource) -> list[Plain]:
    """Return the generators of the ApplicationSet: which folders of the tree are deployed with which project."""
    generators: list[Plain] = []
    for project in projects:
        folders: list[Plain] = []
        for env, found in project.deployed.items():
            for each in found:
                # Folders are matched as in Go, where `^` negates a set of letters.
                path = f"{source.environment_path(env)}/{each.removeprefix('!').replace('[!', '[^')}"
                folders.append({"path": path, "exclude": True} if each.startswith("!") else {"path": path})
        if folders:
            place = {"repoURL": source.url, "revision": source.revision, "directories": folders}
            generators.append({"git": {**place, "values": {"project": project.name}}})
    return generators


GENERATE_PATHS = "argocd.argoproj.io/manifest-generate-paths"
CONFIG_PARTS = ("health", "differences", "types")
_CORE_TYPES = {"env": "core/v1/EnvVar", "resources": "core/v1/ResourceRequirements"}


def build_kustomization(
    kinds: Sequence[EngineKind],
    source: GitSource,
    env: str,
    source_name: str,
    wait: str,
    *,
    namespace: str = "",
    account: str = "",
) -> dict[str, Plain]:
    """The Kustomization of an environment; with `wait`, it is ready when all jobs have succeeded.

    With `namespace`, it is for the objects of one namespace, which it applies with `account`.
    """
    own: dict[str, Plain] = {"serviceAccountName": account} if account else {}
    queued = [kind for kind in kinds if kind.is_job and kind.is_queued]
    return {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": "-".join(filter(None, (resource_name(env), namespace))), "namespace": "flux-system"},
        "spec": {
            "sourceRef": {"kind": "GitRepository", "name": source_name},
            "path": "/".join(filter(None, (f"./{source.environment_path(env)}", namespace))),
            **own,
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
                        "syncOptions": [
                            "ApplyOutOfSyncOnly=true",
                            "PruneLast=true",
                            "RespectIgnoreDifferences=true",
                            "ServerSideApply=true",
                        ],
                    },
                },
            },
        },
    }
