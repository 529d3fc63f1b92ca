"""What the description of a kind says of a role: its definition, and how many pods it has."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.k8s.nodes import as_integer
from jobgen.model.data import Node, value_of
from jobgen.spec import kinds
from jobgen.spec.kinds import Kind
from jobgen.spec.replicas import RoleDescription, count_pods, get_at


def count_role_pods(replica_spec: Mapping[str, Node], definition: RoleDescription | None, kind: Kind | None) -> int:
    """Return the declared number of pods of a role, or the operator's default."""
    omitted = definition.omitted if definition else 1
    if kind is None or (definition and definition.at):
        return omitted
    if kind.shape == "one":
        declared = as_integer(replica_spec.get(str(kind.replicas_at[-1])))
        return omitted if declared is None else max(declared, 0)
    return count_pods(replica_spec, kind.replicas, omitted)


def find_definition(
    replica_type: str, replica_spec: Mapping[str, Node], obj: Mapping[str, Node], kind: Kind | None
) -> RoleDescription | None:
    """Return the entry of a role in its kind; None if the kind does not have such a role."""
    # A group of workers may have the name of a role with a place of its own.
    roles = [
        role for role in (kind.roles.values() if kind else ()) if not role.at or get_at(obj, role.at) is replica_spec
    ]
    found = next(
        (role for role in roles if value_of(role.spelling) == replica_type and role.name != kinds.ANY_ROLE), None
    )
    if found is None and kind and kind.requirements.unknown_roles == "started":
        # An operator that starts unknown roles also ignores the case of known ones.
        found = next((role for role in roles if str(value_of(role.spelling)).lower() == replica_type.lower()), None)
    return found or (
        kind.any_role._replace(name=replica_type, spelling=replica_type) if kind and kind.any_role else None
    )
