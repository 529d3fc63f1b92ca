"""Amounts that are products, such as the GPUs of a job, and the factor that a patch raised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jobgen.k8s.objects import Manifest
from jobgen.model.data import TracedScalar, untraced
from jobgen.model.place import At, Place
from jobgen.model.quantity import to_milli

_PATCH = "patch of "
Related = tuple[tuple[Place, str], ...]


def list_counts(manifest: Manifest) -> Iterator[At]:
    """Yield the places of the numbers of pods of an object."""
    for role in manifest.roles:
        yield from (place for place, _ in role.compared_count)


def list_gpu_factors(manifest: Manifest) -> list[tuple[At, str]]:
    """Return the places of what the GPUs of an object are a product of, and what each factor is."""
    roles = [role for role in manifest.roles if role.gpus]
    counts = [(place, "the number of pods") for role in roles for place, _ in role.compared_count]
    containers = (container for role in roles for container in role.pod.containers if container.gpus)
    devices = (place for container in containers if (place := container.device_place) is not None)
    return [*counts, *((place, "the GPUs of each pod") for place in devices)]


def find_raised(factors: Iterable[Place]) -> Place:
    """Return the factor that a patch of an overlay raised, the first of several; None if none is known to be."""
    return next((node for node in factors if _is_raised(node)), None)


def relate_factors(raised: Place, factors: Iterable[tuple[Place, str]]) -> Related:
    """Return the value that a raised factor overrides, and the other factors that layers have set."""
    related: dict[object, tuple[Place, str]] = {}
    if isinstance(raised, TracedScalar):
        known: list[tuple[Place, str]] = [(raised.overridden, "the value that the patch overrides"), *factors]
        for node, text in known:
            is_written = isinstance(node, TracedScalar) and not node.layer.startswith("kind ")
            if is_written and isinstance(node, TracedScalar) and node.location != raised.location:
                related.setdefault(node.location, (node, text))
    return tuple(related.values())


def _is_raised(node: Place) -> bool:
    if not isinstance(node, TracedScalar) or not node.layer.startswith(_PATCH):
        return False
    before, after = to_milli(untraced(node.overridden)), to_milli(node.value)
    return node.overridden is None or (before is not None and after is not None and after > before)
