"""What is wrong with the role of a RoleBinding: it is of another kind, or its name is misspelled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.model.data import Plain
from jobgen.model.finding import Problem, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At

RULE = "role-of-another-kind"
KINDS = ("Role", "ClusterRole")
_SHIPPED = ("admin", "cluster-admin", "edit", "view")
"""ClusterRoles that every cluster has."""


class NamedRole(NamedTuple):
    """A role, or the role that a RoleBinding names; the namespace is that of the object."""

    is_role: bool
    kind: str
    namespace: str
    name: str


class WrongRole(NamedTuple):
    """A binding whose role does not exist: its number, the field of `roleRef` that is wrong, and the role meant."""

    number: int
    field: str
    message: str
    meant: int


def read_role(obj: Mapping[str, Plain]) -> NamedRole | None:
    """Return a role, or what a RoleBinding names; None for other objects, and for names that are filled in later."""
    kind, is_binding = as_text(obj.get("kind")), as_text(obj.get("kind")) == "RoleBinding"
    if kind not in KINDS and not is_binding:
        return None
    namespace, name = (as_text(get_path(obj, "metadata", field)) for field in ("namespace", "name"))
    if is_binding:
        reference = as_mapping(obj.get("roleRef"))
        kind, name = as_text(reference.get("kind")), as_text(reference.get("name"))
    if kind not in KINDS or not name or "$" in name:
        return None
    return NamedRole(not is_binding, kind, namespace, name)


def find_wrong_roles(named: Sequence[NamedRole]) -> Iterator[WrongRole]:
    """Find the bindings whose role is not there by its kind and name, where one of another kind or name is."""
    roles = [(number, each) for number, each in enumerate(named) if each.is_role]
    names = {(each.kind, each.name) for _, each in roles}
    for number, binding in enumerate(named) if roles else ():
        if binding.is_role or (binding.kind, binding.name) in names:
            continue
        is_shipped = binding.kind == KINDS[1] and binding.name in _SHIPPED
        # Roles that a binding can name: those of its namespace, and those of the cluster.
        near = {
            (each.kind, each.name): place
            for place, each in roles
            if each.kind == KINDS[1] or "" in (each.namespace, binding.namespace) or each.namespace == binding.namespace
        }
        written, name, other = binding.kind, binding.name, KINDS[binding.kind == KINDS[0]]
        if (other, name) in near:
            reason = f"`{name}` is a {other}, and there is no {written} of this name, so the binding grants nothing"
            yield WrongRole(number, "kind", f"{reason}; write `kind: {other}`", near[other, name])
            continue
        # Imported late: most bindings are right.
        from jobgen.model.meant import find_meant

        meant = "" if is_shipped else find_meant(name, [each for kind, each in near if kind == written])
        if meant:
            message = f"no {written} beside the binding has the name `{name}`; did you mean `{meant}`?"
            yield WrongRole(number, "name", message, near[written, meant])


def find_misnamed_roles(objects: Sequence[Mapping[str, Plain]]) -> Iterator[tuple[int, Problem]]:
    """Report each RoleBinding of a file or a build, by its number, whose role is not there."""
    named = {number: role for number, obj in enumerate(objects) if (role := read_role(obj))}
    numbers = [*named]
    for found in find_wrong_roles([*named.values()]):
        number = numbers[found.number]
        place = At(objects[number]["roleRef"], found.field)
        yield number, Problem(RULE, found.message, place, category="fleet", severity=Severity.WARNING)
