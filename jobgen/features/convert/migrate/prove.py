"""Prove a migration: compare the pods that both operators create."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jobgen.features.convert.migrate.torch_env import JOB_NAME
from jobgen.features.convert.operators.compare import PodDifference, compare_pods
from jobgen.features.convert.operators.create import create_pods
from jobgen.features.convert.operators.created import CreatedPod
from jobgen.features.convert.operators.fields import as_fields
from jobgen.features.convert.operators.pod_edits import find_container
from jobgen.features.convert.operators.process_env import read_env
from jobgen.model.data import Plain
from jobgen.spec.overlay import Cluster


def compare_created_pods(
    before: tuple[Mapping[str, Plain], Cluster],
    after: tuple[Mapping[str, Plain], Cluster],
    runtimes: Sequence[Mapping[str, Plain]],
) -> list[PodDifference]:
    """List what differs between the pods of two objects, each with its cluster."""
    old = create_pods(before[0], (), before[1])
    new = [_assign_rank(pod) for pod in create_pods(after[0], runtimes, after[1])]
    hosts = _map_hosts(old, new)
    return [each for each in compare_pods(old, new) if not (_is_name_of_job(each) or _is_same_host(each, hosts))]


def format_difference(difference: PodDifference) -> str:
    """A difference on one line."""
    before, after = (_format(value) for value in (difference.before, difference.after))
    return f"{difference.where}: {difference.field}: {before} before, {after} after"


def _format(value: Any) -> str:
    return "nothing" if value is None else f"`{value}`"


def _map_hosts(old: Sequence[CreatedPod], new: Sequence[CreatedPod]) -> dict[str, str]:
    """The addresses of the nodes before and after."""
    after = {pod.rank: pod.address for pod in new if pod.rank is not None and pod.address}
    return {pod.address: after[pod.rank] for pod in old if pod.address and pod.rank in after}


def _is_same_host(difference: PodDifference, hosts: Mapping[str, str]) -> bool:
    """Whether a variable has the address of the same node."""
    return difference.kind == "env" and difference.before in hosts and hosts[difference.before] == difference.after


def _is_name_of_job(difference: PodDifference) -> bool:
    """Whether a difference is the variable that other variables are composed of."""
    return difference.field.endswith(f"env {JOB_NAME}") and difference.before is None


def _assign_rank(pod: CreatedPod) -> CreatedPod:
    """Give a pod the rank in its variable RANK, if it is a job of its own in the runtime."""
    if pod.rank is not None:
        return pod
    rank = next((value for value in _list_ranks(pod) if value.isdigit()), "")
    return replace(pod, rank=int(rank), main=pod.main or "node") if rank else pod


def _list_ranks(pod: CreatedPod) -> Iterator[str]:
    for container in pod.spec.get("containers") or ():
        name = str(as_fields(container).get("name"))
        written = find_container(as_fields(pod.template.get("spec")), name)
        variable = read_env(pod, as_fields(container), written).get("RANK")
        yield variable.value if variable else ""
