"""Resources of the pod as a whole, against those of its containers."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.admission.fields import PodCheck, is_set, string
from jobgen.check.admission.resources import requirements
from jobgen.model.data import Data, value_of
from jobgen.model.quantity import to_milli

_RULE = "inconsistent-pod-resources"
_Amounts = dict[str, int]


def pod_resources(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """The requests and limits of the pod."""
    if not isinstance(value, dict):
        return
    if is_set(value.get("claims")):
        pod.report(_RULE, "`claims` belong to containers, not to the pod", value["claims"])
    requirements(key, value, owner, pod)
    for name, node in _fields(value, "limits"):
        _supported(name, pod)
        _limit(name, node, pod)
    for name, node in _fields(value, "requests"):
        _supported(name, pod)
        _request(name, node, pod)


def _fields(value: dict[str, Data], side: str) -> Iterator[tuple[str, Data]]:
    amounts = value.get(side)
    return iter(amounts.items() if isinstance(amounts, dict) else ())


def _supported(name: str, pod: PodCheck) -> None:
    if name not in ("cpu", "memory") and not name.startswith("hugepages-"):
        pod.report("unknown-resource", f"`{name}` cannot be given to a whole pod, only to its containers", name)


def _limit(name: str, node: Data, pod: PodCheck) -> None:
    allowed = to_milli(node)
    for container in pod.containers("containers"):
        own = _asked(container, ("limits",)).get(name, 0)
        if allowed is not None and own > allowed:
            message = f"`{name}` of the pod is limited to `{value_of(node)}`, less than its container's own limit"
            pod.report(_RULE, message, node)
    # What the pod does not request itself, its containers request together.
    own_request = name in dict(_fields(pod.spec["resources"], "requests"))
    if allowed is not None and not own_request and _total(name, pod) > allowed:
        message = f"`{name}` of the pod is limited to `{value_of(node)}`, less than its containers request together"
        pod.report(_RULE, message, node)


def _request(name: str, node: Data, pod: PodCheck) -> None:
    wanted = to_milli(node)
    if wanted is not None and _total(name, pod) > wanted:
        message = f"`{name}` of the pod requests `{value_of(node)}`, less than its containers together"
        pod.report(_RULE, message, node)


def _total(name: str, pod: PodCheck) -> int:
    """What the containers ask for together, or the neediest of those that run before them."""
    sides = ("limits", "requests")
    total = sum(_asked(container, sides).get(name, 0) for container in pod.containers("containers"))
    beside = most = 0
    for container in pod.containers("initContainers"):
        own = _asked(container, sides).get(name, 0)
        if string(container.get("restartPolicy")) == "Always":
            beside += own
            total += own
            most = max(most, beside)
        else:
            most = max(most, beside + own)
    return max(total, most)


def _asked(container: dict[str, Data], sides: tuple[str, ...]) -> _Amounts:
    """A container's amounts, later sides over earlier ones: a request left out is the limit."""
    own = container.get("resources")
    asked: _Amounts = {}
    if isinstance(own, dict):
        for side in sides:
            for name, node in _fields(own, side):
                milli = to_milli(node)
                if milli is not None:
                    asked[name] = milli
    return asked
