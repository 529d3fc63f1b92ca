"""Find RoleBindings that name a role of their file, or of their build, as one of another kind, or misspell it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.model.data import Node
from jobgen.model.finding import Problem, Severity
from jobgen.model.meant import find_meant

RULE = "role-of-another-kind"
KINDS = ("Role", "ClusterRole")


def find_misnamed_roles(objects: Sequence[Mapping[str, Node]]) -> Iterator[tuple[int, Problem]]:
    """Report each RoleBinding, by its number, whose role is of the other kind, or has a name one slip away."""
    kinds = [as_text(obj.get("kind")) for obj in objects]
    roles = {
        (kind, as_text(get_path(obj, "metadata", "name")))
        for kind, obj in zip(kinds, objects, strict=True)
        if kind in KINDS
    }
    for number, kind in enumerate(kinds) if roles else ():
        reference = as_mapping(objects[number].get("roleRef")) if kind == "RoleBinding" else {}
        written, name = as_text(reference.get("kind")), as_text(reference.get("name"))
        other = KINDS[written == "Role"]
        if written not in KINDS or (written, name) in roles:
            continue
        if (other, name) in roles:
            message = explain(name, written, other)
            yield number, Problem(RULE, message, reference["kind"], category="fleet", severity=Severity.WARNING)
        # A name with a sign is filled in later.
        elif (
            name and "$" not in name and (meant := find_meant(name, [each for kind, each in roles if kind == written]))
        ):
            message = f"no {written} beside the binding has the name `{name}`; did you mean `{meant}`?"
            yield number, Problem(RULE, message, reference["name"], category="fleet", severity=Severity.WARNING)


def explain(name: str, written: str, other: str) -> str:
    """Return what is wrong with a binding."""
    reason = f"`{name}` is a {other}, and there is no {written} of this name, so the binding grants nothing"
    return f"{reason}; write `kind: {other}`"
