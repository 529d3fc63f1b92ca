"""The limits of namespaces and teams beside queues: ResourceQuotas, and the budgets of the overlay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.check.cluster.names import name_object
from jobgen.check.cluster.quotas import measure_use
from jobgen.check.cluster.state import ClusterState, build_state, list_kinds_to_read
from jobgen.check.rules.fleet.gpu_budget_exceeded import collect
from jobgen.diff.snapshot import Snapshot
from jobgen.k8s.app_wrapper import is_app_wrapper, list_wrapped_objects
from jobgen.k8s.nodes import as_mapping
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import format_amount, sum_gpus
from jobgen.model.data import Node
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import to_milli
from jobgen.pipeline.exported_state import read_exported
from jobgen.repo.root import folder_exists
from jobgen.spec.overlay import Cluster

_QUOTA, _BUDGET = "ResourceQuota", "budget"
_GPUS = "GPUs"


class Limit(NamedTuple):
    """A limit, and what the jobs of an environment take from it together."""

    environment: str
    kind: str
    owner: str
    """The namespace or the team, such as `namespace ml`."""
    name: str
    """The name of the ResourceQuota; empty for a budget."""
    resource: str
    used: str
    limit: str
    share: int
    """What is used of the limit, in thousandths of it, rounded up."""


def list_limits(snapshot: Snapshot, env: str) -> Iterator[Limit]:
    """Yield the ResourceQuotas and budgets of an environment."""
    cluster = snapshot.project.environment(env, []).cluster
    state = _read_quotas(snapshot, env, cluster)
    if state is None and not cluster.budgets:
        return
    manifests = list(_list_manifests(snapshot, env))
    yield from _list_quotas(env, manifests, state) if state else ()
    yield from _list_budgets(env, manifests, cluster.budgets)


def _list_manifests(snapshot: Snapshot, env: str) -> Iterator[Manifest]:
    for each in snapshot.objects:
        if each.env == env:
            yield snapshot.manifest(each)
            wrapped = list_wrapped_objects(each.object) if is_app_wrapper(each.object) else ()
            yield from (snapshot.checker(env).manifest(obj) for _, obj in wrapped)


def _read_quotas(snapshot: Snapshot, env: str, cluster: Cluster) -> ClusterState | None:
    """Read the state of the cluster, as `exceeds-quota` does; None if it has no ResourceQuota."""
    root = snapshot.project.root
    exported: list[Mapping[str, Node]] = []
    if cluster.state and folder_exists(root, cluster.state):
        exported += read_exported(root, cluster.state, [])
    kinds = list_kinds_to_read((), with_references=bool(cluster.complete))
    own = [each.object for each in snapshot.objects if each.env == env and name_object(each.object)[0] in kinds]
    has_quotas = any(name_object(obj)[0] == _QUOTA for obj in (*exported, *own))
    return build_state(cluster, exported, own, ()) if has_quotas else None


def _list_quotas(env: str, manifests: Sequence[Manifest], state: ClusterState) -> Iterator[Limit]:
    """Yield each resource of each ResourceQuota; `exceeds-quota` compares the same sums."""
    used: dict[tuple[str, int, str], int] = {}
    for use in (use for manifest in manifests for use in measure_use(manifest, state)):
        key = (use.namespace, use.quota, use.resource)
        used[key] = used.get(key, 0) + use.milli
    for namespace, quotas in sorted(state.quotas.items()):
        for index, quota in enumerate(quotas):
            for resource, amount in as_mapping(as_mapping(quota.get("spec")).get("hard")).items():
                if (hard := to_milli(amount)) is not None:
                    found = used.get((namespace, index, str(resource)), 0)
                    owner, name = f"namespace {namespace}" if namespace else "any namespace", name_object(quota)[2]
                    shown = (format_amount(resource, found), format_amount(resource, hard))
                    yield Limit(env, _QUOTA, owner, name, str(resource), *shown, _measure_share(found, hard))


def _list_budgets(env: str, manifests: Sequence[Manifest], budgets: Mapping[str, Mapping[str, Any]]) -> Iterator[Limit]:
    """Yield the budgets of namespaces and teams; `gpu-budget-exceeded` compares the same sums."""
    taken: dict[tuple[str, str], list[Any]] = {}
    for fact in (fact for manifest in manifests for fact in collect(manifest)) if budgets else ():
        taken.setdefault(fact.value[0], []).append(fact.value)
    for group in ("namespaces", "teams"):
        for name, budget in sorted(budgets.get(group, {}).items()):
            limit = budget.get("gpus")
            if limit is not None:
                gpus = sum_gpus((value[1], value[4]) for value in taken.get((group, name), ()))
                owner = f"{group.removesuffix('s')} {name}"
                yield Limit(env, _BUDGET, owner, "", _GPUS, str(gpus), str(limit), _measure_share(gpus, limit))


def _measure_share(used: int, limit: int) -> int:
    if limit <= 0:
        return 0 if used <= 0 else 1001
    return -(-used * 1000 // limit)
