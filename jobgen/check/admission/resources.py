"""What containers ask for and may use at most."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

from jobgen.check.admission.fields import PodCheck, is_set, mappings, missing, string
from jobgen.check.admission.names import DNS_LABEL, is_dns_label, is_label_key
from jobgen.model.data import Data, value_of
from jobgen.model.finding import FixStep
from jobgen.model.quantity import to_milli
from jobgen.model.suggest import did_you_mean, suggest_entry, suggest_quantity, suggest_rename

_STANDARD = ("cpu", "memory", "ephemeral-storage")
_HUGEPAGES = "hugepages-"
_NOTHING: dict[str, Data] = {}


class Sort(Enum):
    """How a resource is counted."""

    SHARED = "may be overcommitted"
    DEVICE = "whole and never overcommitted"
    HUGEPAGES = "in pages and never overcommitted"
    UNKNOWN = "not a resource of containers"


# To look a member up is slower than all that is done with it.
_SHARED, _DEVICE, _PAGED, _UNKNOWN = Sort


@lru_cache(maxsize=1024)
def sort_of(name: str) -> Sort:
    """How Kubernetes counts the resource of this name."""
    if name.startswith(_HUGEPAGES):
        return _PAGED if is_label_key(name) else _UNKNOWN
    if "/" not in name:
        return _SHARED if name in _STANDARD else _UNKNOWN
    if not is_label_key(name):
        return _UNKNOWN
    if "kubernetes.io/" in name:
        return _SHARED
    # In a quota the name gets a prefix, with which it must still be one.
    fits = not name.startswith("requests.") and is_label_key(f"requests.{name}")
    return _DEVICE if fits else _UNKNOWN


def resources(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """The requests, limits and claims of one container."""
    requirements(key, value, owner, pod)
    if isinstance(value, dict) and "claims" in value:
        claims(value["claims"], key, pod)


def requirements(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """Requests and limits, each and against each other."""
    if not isinstance(value, dict):
        return
    limits, requests = value.get("limits"), value.get("requests")
    limits = limits if isinstance(limits, dict) else _NOTHING
    requests = requests if isinstance(requests, dict) else _NOTHING
    huge = _amounts(limits, pod) | _amounts(requests, pod)
    for name, asked in requests.items():
        _request(name, asked, limits.get(name), value, pod)
    if huge and not (limits.keys() | requests.keys()) & {"cpu", "memory"}:
        pod.report("invalid-hugepages", "huge pages need `cpu` or `memory` beside them", value)


def overhead(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """What the pod costs beside its containers."""
    if isinstance(value, dict) and _amounts(value, pod) and not value.keys() & {"cpu", "memory"}:
        pod.report("invalid-hugepages", "huge pages need `cpu` or `memory` beside them", value)


def quantity(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """A quantity of something, which cannot be negative."""
    found = value_of(value)
    milli = to_milli(value)
    if milli is None:
        if type(found) is str:
            message = f"`{key}` is `{found}`, which is not a quantity like `500m` or `4Gi`"
            pod.report("invalid-quantity", message, value, suggest_quantity(value))
    elif milli < 0:
        pod.report("negative-quantity", f"`{key}` is `{found}`, which is less than nothing", value)


def _amounts(amounts: dict[str, Data], pod: PodCheck) -> bool:
    """Check one side; whether it has huge pages."""
    huge = False
    for name, value in amounts.items():
        if not is_set(value):
            continue
        sort = sort_of(name)
        milli = to_milli(value)
        if milli is None or milli < 0:
            quantity(name, value, amounts, pod)
        if sort is _UNKNOWN:
            _unknown(name, amounts, pod)
        elif sort is _DEVICE and milli is not None and milli % 1000:
            message = f"`{name}` is `{value_of(value)}`; it is counted in whole ones"
            pod.report("fractional-device", message, value)
        elif sort is _PAGED:
            huge = True
            _pages(name, value, milli, pod)
    return huge


def _unknown(name: str, amounts: dict[str, Data], pod: PodCheck) -> None:
    known = [*_STANDARD, "hugepages-2Mi", "nvidia.com/gpu"]
    message = f"`{name}` is not a resource of containers{did_you_mean(name, known)}"
    pod.report("unknown-resource", message, name, suggest_rename(name, known, amounts))


def _pages(name: str, value: Data, milli: int | None, pod: PodCheck) -> None:
    size = to_milli(name[len(_HUGEPAGES) :])
    if size is None or size <= 0 or size % 1000:
        pod.report("invalid-hugepages", f"`{name}` does not name a size of pages like `hugepages-2Mi`", name)
    # A part of a byte counts as one.
    elif milli is not None and (-(-milli // 1000)) % (size // 1000):
        pod.report("invalid-hugepages", f"`{name}` is `{value_of(value)}`, which is not a whole number of pages", value)


def _request(name: str, asked: Data, limit: Data, owner: dict[str, Data], pod: PodCheck) -> None:
    sort = sort_of(name)
    shared = sort is _SHARED
    if sort is _UNKNOWN or not is_set(asked):
        return
    if not is_set(limit):
        if not shared:
            message = f"`{name}` is requested without a limit; it cannot be overcommitted, so set the same limit"
            limits = owner.get("limits")
            same = (
                suggest_entry(name, asked, limits)
                if isinstance(limits, dict) and limits
                else suggest_entry("limits", {name: asked}, owner)
            )
            pod.report("missing-resource-limit", message, name, (same, True))
        return
    wanted, allowed = to_milli(asked), to_milli(limit)
    if wanted is None or allowed is None or wanted == allowed:
        return
    if not shared:
        message = f"`{name}` requests `{value_of(asked)}` and is limited to `{value_of(limit)}`; they must be equal"
        if sort is _PAGED:
            pod.report("invalid-hugepages", message, asked)
        else:
            # No pod of the job runs today, so nothing that runs is changed.
            pod.report("gpu-request-limit-mismatch", message, asked, ((FixStep("set", asked, limit),), True))
    elif wanted > allowed:
        message = f"`{name}` requests `{value_of(asked)}`, more than its limit of `{value_of(limit)}`"
        pod.report("request-exceeds-limit", message, asked, ((FixStep("set", asked, limit),), False))


def claims(value: Data, around: str, pod: PodCheck) -> None:
    """The claims of the pod that a container uses."""
    known = {string(claim.get("name")) for claim in mappings(pod.spec.get("resourceClaims"))} - {""}
    seen: set[tuple[str, str]] = set()
    for claim in mappings(value):
        name, request = string(claim.get("name")), string(claim.get("request"))
        if not name:
            missing("a claim", claim, "name", around, pod)
            continue
        if name not in known:
            message = f"`resourceClaims` of the pod has no `{name}`{did_you_mean(name, sorted(known))}"
            pod.report("invalid-resource-claim", message, claim["name"])
        if request and not is_dns_label(request):
            pod.report("invalid-resource-claim", f"`{request}` is not a request's name; {DNS_LABEL}", claim["request"])
        # The whole claim holds each of its requests.
        if (name, request) in seen or (name, "") in seen or (not request and any(name == one for one, _ in seen)):
            pod.report("invalid-resource-claim", f"claim `{name}` is used twice", claim["name"])
        seen.add((name, request))
