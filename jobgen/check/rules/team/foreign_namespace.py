"""Namespaces of other teams."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.check.team_limits import advise, find_foreign_uses
from jobgen.k8s.kinds import CLUSTER_SCOPED
from jobgen.k8s.objects import Manifest
from jobgen.k8s.team_uses import NAMESPACES


@rule("manifest", ERROR)
def foreign_namespace(manifest: Manifest) -> Iterator[Violation]:
    """A namespace that the team of the file may not use.

    The file of a team lists the namespaces of its objects. An object in another one takes the quota of others, and can
    use their secrets and volumes. References to objects of other namespaces count, too. An object without a namespace
    gets that of the tool that applies it, which may be any.

    Name a namespace of the team, or have the platform team add it to the file of the team.
    """
    yield from find_foreign_uses(manifest, NAMESPACES, "namespace")
    team = manifest.team
    if team is None or NAMESPACES not in team.allowed or manifest.kind_name in CLUSTER_SCOPED:
        return
    if not manifest.namespace:
        message = f"the object has no namespace; {advise(team, NAMESPACES)}"
        yield Violation(manifest.metadata.get("name", manifest.object), message)
