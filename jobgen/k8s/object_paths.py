"""Paths of keys and indexes that lead from an object to its roles and to the fields of their containers."""

from __future__ import annotations

from jobgen.k8s.objects import Container, Role

ObjectPath = tuple[str | int, ...]
"""Keys and indexes that lead from an object to a node in it."""


def path_to_role(role: Role) -> ObjectPath:
    """Return the path to a role's replica spec."""
    kind = role.manifest.kind
    assert kind is not None
    if kind.shape == "one":
        return tuple(map(str, kind.replicas_at[:-1]))
    return next(item.path for item in kind.list_items(role.manifest.object) if item.data is role.replica_spec)


def path_to_container_field(container: Container, index: int, field: str) -> ObjectPath:
    """Return the path to a field of a container, which has this index in its pod."""
    kind, role = container.pod.manifest.kind, container.pod.role
    assert kind is not None
    assert role is not None, "only the containers of roles have facts"
    if container.pod.partial and kind.template is not None:
        return tuple(map(str, kind.template.container[field]))
    return (*path_to_role(role), *map(str, kind.replicas.template), "spec", "containers", index, field)
