"""Namespaces of other teams."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.check.team_limits import advise, find_foreign_uses
from jobgen.k8s.kinds import CLUSTER_SCOPED
from jobgen.k8s.objects import Manifest
from jobgen.k8s.team_uses import NAMESPACES


@rule("manifest", ERROR)
def foreign_namespace(manifest: Manifest) -> Iterator[Violation]:
    """A namespace that the file's team cannot use.

    A team's file lists the namespaces of its objects. An object in another namespace takes the quota of other teams,
    and can use their secrets and volumes. References to objects in other namespaces also count. An object without a
    namespace gets one from the tool that applies it, which can be any.

    Use one of the team's namespaces, or ask the platform team to add this one to the team's file.
    """
    yield from find_foreign_uses(manifest, NAMESPACES, "namespace")
    team = manifest.team
    if team is None or NAMESPACES not in team.allowed or manifest.kind_name in CLUSTER_SCOPED:
        return
    if not manifest.namespace:
        message = f"the object has no namespace; {advise(team, NAMESPACES)}"
        yield Violation(manifest.metadata.get("name", manifest.object), message)
