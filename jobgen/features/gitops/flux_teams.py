"""Flux for teams: an account for each team, with the kinds that it may have in its namespaces and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from jobgen.check.policy.match import pluralize_kind
from jobgen.features.gitops.documents import TeamProject, list_kinds
from jobgen.k8s.team_kinds import is_of_cluster
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.teams import Teams

FLUX_NAMESPACE = "flux-system"
_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
_RBAC = "rbac.authorization.k8s.io"
_WILDCARD = lazy_pattern(r"[*?\[]")


class TeamAccount(NamedTuple):
    """The account that Flux applies the objects of a team with in one environment, and where."""

    name: str
    namespaces: tuple[str, ...]
    kinds: tuple[tuple[str, str], ...]
    """Kinds with their groups."""

    def build(self) -> Iterator[dict[str, Plain]]:
        """Yield the account, and its permissions."""
        yield {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": self.name, "namespace": FLUX_NAMESPACE},
        }
        own = [each for each in self.kinds if not is_of_cluster(each[0])]
        if own:
            yield _build_role(self.name, own)
            for namespace in self.namespaces:
                yield self._bind("RoleBinding", self.name, namespace)
        others = [each for each in self.kinds if is_of_cluster(each[0])]
        if others:
            yield _build_role(f"{self.name}-cluster", others)
            yield self._bind("ClusterRoleBinding", f"{self.name}-cluster")

    def _bind(self, kind: str, role: str, namespace: str = "") -> dict[str, Plain]:
        metadata: dict[str, Plain] = {"name": role, "namespace": namespace} if namespace else {"name": role}
        return {
            "apiVersion": f"{_RBAC}/v1",
            "kind": kind,
            "metadata": metadata,
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": self.name, "namespace": FLUX_NAMESPACE}],
        }


def _build_role(name: str, kinds: Iterable[tuple[str, str]]) -> dict[str, Plain]:
    resources: dict[str, list[Plain]] = {}
    for kind, group in kinds:
        resources.setdefault(group, []).append(pluralize_kind(kind))
    rules: list[Plain] = [
        {"apiGroups": [group], "resources": list(dict.fromkeys(names)), "verbs": list(_VERBS)}
        for group, names in sorted(resources.items())
    ]
    return {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}


def list_accounts(
    projects: Sequence[TeamProject], teams: Teams, rendered: Mapping[str, Iterable[str]]
) -> dict[str, list[TeamAccount]]:
    """Return the accounts of each environment, for the namespaces that it has objects in.

    A namespace that no project deploys to has no account, so its objects are not applied.
    """
    found: dict[str, list[TeamAccount]] = {}
    for env, namespaces in rendered.items():
        for project in projects:
            own = tuple(each for each in sorted(namespaces) if _deploys(project.deployed.get(env, ()), each))
            scopes = (teams.find_scope(team, env) for team in project.teams)
            kinds = {each for scope in scopes for each in list_kinds(scope)}
            # Roles have no patterns of kinds.
            named = tuple(sorted(each for each in kinds if not _WILDCARD.search(each[0])))
            if own:
                found.setdefault(env, []).append(TeamAccount(project.name, own, named))
    return found


def _deploys(patterns: Sequence[str], namespace: str) -> bool:
    if any(fnmatchcase(namespace, each[1:]) for each in patterns if each.startswith("!")):
        return False
    return any(fnmatchcase(namespace, each) for each in patterns if not each.startswith("!"))
