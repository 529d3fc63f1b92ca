"""Values: the pods and the other objects that an operator creates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.overlay import Cluster

Fields = Mapping[str, Any]
"""Plain data of an object. A field may be missing or have a wrong type."""

_NONE: Fields = MappingProxyType({})
RANDOM = "<random>"
"""Stands for the characters that Kubernetes appends to a generated name."""

MAX_PODS = 64
"""The number of pods of a role that are computed one by one."""


class Restarts(NamedTuple):
    """What happens when a container or a pod fails."""

    policy: str
    """`restartPolicy` of the pod: what the kubelet does."""
    retried: str = "always"
    """Whether training that failed starts again, in the same pod or in a new one: `always`, `never`, or `retryable` if
    that depends on the exit code."""
    limit: int | None = None
    """The number of restarts or new pods after which the job fails; None if it is unlimited."""


_ALWAYS = Restarts("Always")


@dataclass(frozen=True, slots=True)
class CreatedPod:
    """A pod that an operator creates."""

    role: str
    """The role, task or replicated Job, as the operator spells it."""
    index: int
    """The index of the pod in its role."""
    name: str
    spec: Fields
    """The complete pod spec, with all that the operator adds and changes."""
    template: Fields
    """The pod template before the operator changes it: what users wrote."""
    labels: Fields
    """All labels of the pod; `template` has those that users wrote."""
    annotations: Fields
    rank: int | None = None
    """The rank of the node; None if the pod is not a node, such as a launcher or an initializer."""
    hostname: str = ""
    address: str = ""
    """The DNS name by which pods in the namespace find this one; empty if there is none."""
    main: str = ""
    """The name of the container that trains."""
    processes: str = ""
    """The processes that the operator tells the launcher to start on a node: a number or `auto`; empty if none."""
    restarts: Restarts = _ALWAYS
    count: int = 1
    """The number of pods that this one stands for; the last one of a large role stands for all that follow."""


class CreatedObject(NamedTuple):
    """A Service, ConfigMap, Secret or other object that an operator creates beside the pods."""

    kind: str
    name: str
    ports: Mapping[str, int] = _NONE
    data: Mapping[str, str] = _NONE


class Created(NamedTuple):
    """All that an operator creates from one object."""

    pods: tuple[CreatedPod, ...] = ()
    objects: tuple[CreatedObject, ...] = ()


Creator = Callable[[Fields, Sequence[Fields], Cluster], Created]
"""Computes what an operator creates from an object, with the objects that it may refer to."""


def list_indexes(count: int) -> Iterator[tuple[int, int]]:
    """Yield the indexes of the pods of a role, each with the number of pods that it stands for."""
    for index in range(min(count, MAX_PODS)):
        yield index, count - MAX_PODS + 1 if index == MAX_PODS - 1 else 1
