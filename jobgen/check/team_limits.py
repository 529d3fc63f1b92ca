"""Compare what an object uses with what its team may use."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.rules import Violation
from jobgen.k8s.kind_scopes import CLUSTER_SCOPED
from jobgen.k8s.objects import Manifest
from jobgen.k8s.team_uses import Use
from jobgen.model.lazy_re import lazy_pattern
from jobgen.spec.teams import TeamScope

_MAX_NAMED = 4


def find_foreign_uses(manifest: Manifest, what: str, noun: str, *, always: tuple[str, ...] = ()) -> Iterator[Violation]:
    """Report the names of one list of a team that an object uses, and that its team may not use."""
    team = manifest.team
    if team is None:
        return
    for use in manifest.uses:
        if use.what == what and use.value not in always and not team.allows(what, use.value):
            yield Violation(use.node, describe_foreign(team, use, noun), evidence=(use.value,))


def describe_foreign(team: TeamScope, use: Use, noun: str) -> str:
    """State whose a name is, and which ones the team may use."""
    owner = team.find_owner(use.what, use.value)
    whose = f"belongs to team `{owner}`" if owner else f"is none that team `{team.team}` may use"
    return f"{noun} `{use.value}` {whose}; {advise(team, use.what)}"


def advise(team: TeamScope, what: str) -> str:
    """Say what a team may use instead."""
    allowed = team.allowed.get(what)
    if allowed is None:
        return "use another one"
    if not allowed:
        return "remove it"
    listed = ", ".join(f"`{pattern}`" for pattern in allowed[:_MAX_NAMED])
    more = f" and {len(allowed) - _MAX_NAMED} more" if len(allowed) > _MAX_NAMED else ""
    return f"team `{team.team}` may use {listed}{more}"


GRANTING_KINDS = frozenset(
    """AppProject Application ApplicationSet AuthorizationPolicy CiliumNetworkPolicy Endpoints EndpointSlice
    ExternalSecret GitRepo HelmChart HelmRelease InfisicalSecret Issuer Kustomization LimitRange LocalQueue
    NetworkPolicy Policy PushSecret Queue ReferenceGrant ResourceQuota Role RoleBinding SealedSecret Secret
    SecretProviderClass SecretStore Sensor SopsSecret VaultAuth VaultDynamicSecret VaultPKISecret
    VaultStaticSecret""".split()
)
"""Kinds of a namespace that grant access, hold or read secrets, set limits, route traffic or deploy other objects."""
_OF_CLUSTER = lazy_pattern(r"Cluster[A-Z]")
"""By convention, how the names of kinds of the whole cluster begin if there is a kind for namespaces, too."""


def is_kind_allowed(team: TeamScope, use: Use) -> bool:
    """Whether a team may have objects of a kind; without a list, all but those that affect others."""
    if "kinds" in team.allowed:
        return team.allows("kinds", use.value, f"{use.value}.{use.qualifier}" if use.qualifier else use.value)
    is_of_cluster = use.value in CLUSTER_SCOPED or _OF_CLUSTER.match(use.value)
    return not is_of_cluster and use.value not in GRANTING_KINDS
