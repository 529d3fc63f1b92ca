"""Volumes of other teams."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Fact, FactViolation, rule
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.team_uses import NAMESPACES, VOLUMES
from jobgen.spec.overlay import Cluster


def collect(manifest: Manifest) -> Iterator[Fact]:
    """Yield the volumes that an object names, or the volume that it is, with the namespace that it is reserved for."""
    team = manifest.team
    if team is None:
        return
    if manifest.kind_name == "PersistentVolume" and not manifest.group:
        namespace = as_text(get_path(manifest.spec, "claimRef", "namespace"))
        owners = team.claims.list_owners(NAMESPACES, namespace) if namespace else [team.team]
        yield Fact(("", manifest.name, namespace, tuple(owners)), ("metadata", "name"))
    elif manifest.kind_name == "PersistentVolumeClaim" and not manifest.group:
        name = as_text(manifest.spec.get("volumeName"))
        if name:
            yield Fact((team.team, name, manifest.namespace, ()), ("spec", "volumeName"))
    else:
        for name in dict.fromkeys(use.value for use in manifest.uses if use.what == VOLUMES):
            yield Fact((team.team, name, manifest.namespace, ()), ("metadata", "name"))


@rule("fleet", ERROR, collect=collect)
def foreign_volume(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A claim for a PersistentVolume of another team, by its name in `volumeName`.

    The volume has the other team's data. A volume belongs to the team whose namespace is in its `claimRef`; without
    one, to the team whose folder declares it.

    Remove `volumeName`, or ask the volume's owner to set `claimRef` to this claim.
    """
    volumes = {fact.value[1]: fact for fact in facts if not fact.value[0]}
    for fact in facts:
        team, name, namespace, _ = fact.value
        volume = volumes.get(name) if team else None
        if volume is None:
            continue
        _, _, reserved, owners = volume.value
        if owners and team not in owners and (not reserved or reserved != namespace):
            message = f"volume `{name}` belongs to team `{owners[0]}`; remove `volumeName`"
            related = ((volume, f"`{name}` is declared here"),)
            yield FactViolation(fact, message, related, evidence=(team, name))
