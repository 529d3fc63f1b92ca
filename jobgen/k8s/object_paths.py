"""Ways into a job's object, for rules that keep facts of an object and blame a part of it later."""

from __future__ import annotations

from jobgen.k8s.objects import Container, Role

Way = tuple[str | int, ...]


def to_role(role: Role) -> Way:
    """The way to what is written about a role."""
    kind = role.manifest.kind
    assert kind is not None
    steps = tuple(map(str, kind.replicas_at))
    if kind.shape == "one":
        return steps[:-1]
    if kind.shape == "list":
        return (*steps, next(place for place, other in enumerate(role.manifest.roles) if other is role))
    return (*steps, role.spelling)


def to_field(container: Container, place: int, field: str) -> Way:
    """The way to a field of a container, which is the one at that place of its pod."""
    kind = container.pod.role.manifest.kind
    assert kind is not None
    if container.pod.partial and kind.template is not None:
        return tuple(map(str, kind.template.container[field]))
    return (*to_role(container.pod.role), "template", "spec", "containers", place, field)
