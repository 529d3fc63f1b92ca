"""The variables by which the processes of a distributed training find each other, by framework.

Operators for one framework set them; jobgen sets them for kinds that know nothing of frameworks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Mapping, Sequence
from typing import NamedTuple

Variables = dict[str, str]
"""Variables by name; `{index}` in a value stands for the index of the pod among those of its role."""

INDEX = "{index}"


class RoleHosts(NamedTuple):
    """A role, its number of pods, and the DNS name of each, with `{index}`."""

    name: str
    pods: int
    host: str
    processes: int = 1
    """The number of processes that a launcher such as torchrun starts on each pod."""

    def name_host(self, index: int) -> str:
        """Return the DNS name of a pod."""
        return self.host.replace(INDEX, str(index))


class Group(NamedTuple):
    """The pods of a job that train together."""

    job: str
    roles: tuple[RoleHosts, ...]
    declared: int = 1
    """The number of processes on each pod that the job declares; 1 if it leaves this to the launcher."""

    @property
    def nodes(self) -> int:
        """The number of pods."""
        return sum(role.pods for role in self.roles)

    @property
    def leader(self) -> str:
        """The DNS name of the first pod."""
        return self.roles[0].name_host(0)

    def find_rank(self, role: RoleHosts) -> str:
        """Return the rank of the pods of a role; empty if Kubernetes cannot compute it from the index of a pod."""
        if role is self.roles[0]:
            return "0" if role.pods == 1 else INDEX
        return ""


def _list_pytorch(group: Group, role: RoleHosts) -> Variables:
    """For torchrun, and the same variables as a PyTorchJob sets for processes that start without it."""
    ranks = [group.find_rank(each) for each in group.roles]
    variables = {
        "MASTER_ADDR": group.leader,
        "MASTER_PORT": "29500",
        # For processes without a launcher, as a PyTorchJob sets it; torchrun replaces it.
        "WORLD_SIZE": str(group.nodes * group.declared),
        "PET_NNODES": str(group.nodes),
        "PET_NPROC_PER_NODE": str(role.processes),
    }
    if all(ranks):
        rank = group.find_rank(role)
        static = {"PET_NODE_RANK": rank, "PET_MASTER_ADDR": group.leader, "PET_MASTER_PORT": "29500"}
        return {**variables, "RANK": rank, **static}
    # The rank of a worker is its index plus one, which no variable can express: the processes agree on ranks.
    endpoint = f"{group.leader}:29500"
    return {**variables, "PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": endpoint, "PET_RDZV_ID": group.job}


def _list_jax(group: Group, role: RoleHosts) -> Variables:
    rank = group.find_rank(role)
    variables = {"JAX_COORDINATOR_ADDRESS": f"{group.leader}:6666", "JAX_NUM_PROCESSES": str(group.nodes)}
    return {**variables, "JAX_PROCESS_ID": rank} if rank else variables


def _list_tensorflow(group: Group, role: RoleHosts) -> Variables:
    types = {each: "worker" if each.name == "node" else each.name for each in group.roles}
    cluster = {
        types[each]: [f"{each.name_host(index)}:2222" for index in range(each.pods)]
        for each in group.roles
        if types[each] != "evaluator"
    }
    config = {"cluster": cluster, "task": {"type": types[role], "index": INDEX}}
    # The index is a number, not a string.
    return {"TF_CONFIG": json.dumps(config).replace(f'"{INDEX}"', INDEX)}


def _list_paddle(group: Group, role: RoleHosts) -> Variables:
    rank = group.find_rank(role)
    variables = {
        "PADDLE_MASTER": f"{group.leader}:36767",
        "PADDLE_NNODES": str(group.nodes),
        "PADDLE_JOB_ID": group.job,
    }
    return {**variables, "PADDLE_RANK": rank} if rank else variables


def _list_xgboost(group: Group, role: RoleHosts) -> Variables:
    rank = group.find_rank(role)
    tracker = {"DMLC_TRACKER_URI": group.leader, "DMLC_TRACKER_PORT": "29500", "DMLC_NUM_WORKER": str(group.nodes)}
    master = {"MASTER_ADDR": group.leader, "MASTER_PORT": "29500", "WORLD_SIZE": str(group.nodes)}
    return {**tracker, **master, **({"DMLC_TASK_ID": rank, "RANK": rank} if rank else {})}


_FRAMEWORKS: Mapping[str, Callable[[Group, RoleHosts], Variables]] = {
    "deepspeed": _list_pytorch,
    "jax": _list_jax,
    "paddle": _list_paddle,
    "pytorch": _list_pytorch,
    "tensorflow": _list_tensorflow,
    "xgboost": _list_xgboost,
}


HOST_LISTS: Mapping[str, str] = {"tensorflow": "TF_CONFIG"}
"""The variable that has the DNS names of all pods, for frameworks that need them."""

MAX_VARIABLE_BYTES = 128 * 1024 - 1
"""Linux starts no process with a variable that is longer, name and all."""


def exceeds_variable(framework: str, group: Group) -> bool:
    """Return True if the DNS names of all pods do not fit into a variable."""
    # In a list, a name has a port, quotes and a comma, which take more bytes than `{index}`.
    return framework in HOST_LISTS and sum(role.pods * len(role.host) for role in group.roles) > MAX_VARIABLE_BYTES


RANK_VARIABLES: Mapping[str, str] = {"jax": "JAX_PROCESS_ID", "xgboost": "RANK"}
"""The variable with the rank, for frameworks whose processes cannot agree on ranks themselves."""


def list_variables(framework: str, group: Group, role: RoleHosts, provided: Container[str] = frozenset()) -> Variables:
    """Return the variables of the pods of a role that the operator does not provide.

    There are none for a framework that is not distributed by variables.
    """
    found = _FRAMEWORKS.get(framework)
    # A list of all pods, which may be many, is not built in vain.
    if found is None or HOST_LISTS.get(framework, "") in provided:
        return {}
    return {name: value for name, value in found(group, role).items() if name not in provided}


def _list_connecting() -> frozenset[str]:
    apart = (RoleHosts("master", 1, INDEX), RoleHosts("worker", 2, INDEX))
    groups = [Group("", apart), Group("", apart[1:])]
    return frozenset(name for group in groups for find in _FRAMEWORKS.values() for name in find(group, group.roles[0]))


CONNECTING = _list_connecting() | {"JOB_COMPLETION_INDEX"}
"""The names of all variables by which pods are connected."""


def order_roles(roles: Sequence[RoleHosts]) -> tuple[RoleHosts, ...]:
    """Return the roles, the leading one first."""
    return tuple(sorted(roles, key=lambda role: role.name not in LEADERS))


LEADERS = frozenset(("chief", "leader", "master"))
"""Roles whose first pod has rank 0."""
