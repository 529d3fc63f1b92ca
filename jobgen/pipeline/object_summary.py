"""What a comparison needs to know of an object that has not changed: its groups, and the resources of its pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jobgen.k8s.kueue import get_queue, is_suspended
from jobgen.k8s.nodes import get_path
from jobgen.k8s.object_paths import is_app_wrapper, list_wrapped_objects
from jobgen.k8s.resources import ResourceTotals, add_totals, sum_resources
from jobgen.k8s.workloads import find_workload
from jobgen.model.data import text_of
from jobgen.model.named_tuple import NamedTuple

if TYPE_CHECKING:
    from jobgen.check.checker import Checker
    from jobgen.k8s.objects import Manifest
    from jobgen.model.data import Plain


class ObjectSummary(NamedTuple):
    """The names that resources are summed by, and the resources of all pods."""

    namespace: str
    team: str
    queue: str
    gpus: int
    cpu: int
    memory: int

    @property
    def totals(self) -> ResourceTotals:
        """The resources of all pods."""
        return ResourceTotals(self.gpus, self.cpu, self.memory)

    @property
    def groups(self) -> tuple[str, str, str]:
        """Namespace, team and queue."""
        return self.namespace, self.team, self.queue


def summarize_object(checker: Checker, obj: Mapping[str, Plain], manifest: Manifest) -> ObjectSummary | None:
    """Summarize an object; None if its resources depend on other objects, or cannot be read."""
    try:
        totals = sum_object(checker, obj, manifest)
        return None if totals.shared else ObjectSummary(*list_groups(manifest), *totals.amounts)
    except Exception:  # noqa: BLE001 -- a comparison renders the object then; a lint must not fail because of it
        return None


def list_groups(manifest: Manifest) -> tuple[str, str, str]:
    """Return the namespace, the team and the queue of an object; empty if it has none."""
    return manifest.namespace, text_of(manifest.labels.get("team")), get_queue_name(manifest)


def get_queue_name(manifest: Manifest) -> str:
    """The queue of a job: that of Kueue, or that of a gang scheduler."""
    workload = find_workload(manifest.group, manifest.kind_name)
    own = get_path(manifest.object, *workload.queue) if workload and workload.queue else None
    gang = get_path(manifest.run_policy, "schedulingPolicy", "queue")
    return text_of(get_queue(manifest)) or text_of(own) or text_of(gang)


def sum_object(checker: Checker, data: Any, manifest: Manifest) -> ResourceTotals:
    """Return the resources of all pods of an object; those of an AppWrapper are the pods of the objects in it."""
    if not is_app_wrapper(data):
        return sum_resources(manifest)
    total = ResourceTotals()
    for _, wrapped in () if is_suspended(manifest) else list_wrapped_objects(data):
        total = add_totals(total, sum_resources(checker.manifest(wrapped)))
    return total
