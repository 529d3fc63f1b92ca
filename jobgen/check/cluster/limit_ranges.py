"""What the limit ranges of a namespace refuse: containers, pods and claims outside of a minimum, maximum or ratio."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from jobgen.check.admission.fields import iter_mappings
from jobgen.check.cluster.pod_resources import Amount, Amounts, PodResources
from jobgen.check.cluster.state import show_name
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.resources import format_amount
from jobgen.model.data import Node, value_of
from jobgen.model.quantity import to_milli


class OutOfRange(NamedTuple):
    """An amount that a limit range refuses: its node, a message, and the node of the limit range that it breaks."""

    node: Node
    message: str
    bound: Node


class _Subject(NamedTuple):
    """A container, a pod or a claim: its name in messages, its amounts, and the node for one that is missing."""

    name: str
    requests: Amounts
    limits: Amounts
    place: Node


def check_pod(pod: PodResources, limit_range: Mapping[str, Node], place: Node) -> Iterator[OutOfRange]:
    """Yield what a limit range refuses in a pod."""
    containers = [
        _Subject(f"container `{each.name}`", each.requests, each.limits, each.place) for each in pod.containers
    ]
    subjects = {"Container": containers, "Pod": [_Subject("the pod", pod.requests, pod.limits, place)]}
    owner = show_name(limit_range)
    for item in _list_items(limit_range):
        bounds = _parse_bounds(item)
        for subject in subjects.get(as_text(item.get("type")), ()):
            yield from _check_bounds(subject, bounds, owner)
    for item in _list_items(limit_range):
        if as_text(item.get("type")) == "Container":
            yield from _check_default_limits(containers, _parse_bounds(item), owner)


def check_claim(requests: Node, place: Node, limit_range: Mapping[str, Node]) -> Iterator[OutOfRange]:
    """Yield what a limit range refuses in the requests of a claim for storage."""
    parsed = ((str(name), to_milli(value), value) for name, value in as_mapping(requests).items())
    amounts = {name: Amount(milli, value) for name, milli, value in parsed if milli is not None}
    subject = _Subject("the claim", amounts, {}, place)
    for item in _list_items(limit_range):
        if as_text(item.get("type")) == "PersistentVolumeClaim":
            for name, bound in _list_bounds(item, "min"):
                yield from _check_least(subject, name, bound, show_name(limit_range))
            for name, bound in _list_bounds(item, "max"):
                yield from _check_most(subject, name, bound, show_name(limit_range), "request")


def _list_items(limit_range: Mapping[str, Node]) -> Iterator[Mapping[str, Node]]:
    return iter_mappings(as_mapping(limit_range.get("spec")).get("limits"))


def _list_bounds(item: Mapping[str, Node], field: str) -> Iterator[tuple[str, Amount]]:
    for name, value in as_mapping(item.get(field)).items():
        milli = to_milli(value)
        if milli is not None:
            yield str(name), Amount(milli, value)


def _parse_bounds(item: Mapping[str, Node]) -> dict[str, Amounts]:
    return {field: dict(_list_bounds(item, field)) for field in ("min", "max", "maxLimitRequestRatio", "default")}


def _check_bounds(subject: _Subject, bounds: Mapping[str, Amounts], owner: str) -> Iterator[OutOfRange]:
    for name, bound in bounds["min"].items():
        yield from _check_least(subject, name, bound, owner)
    for name, bound in bounds["max"].items():
        yield from _check_most(subject, name, bound, owner, "limit")
    for name, bound in bounds["maxLimitRequestRatio"].items():
        yield from _check_ratio(subject, name, bound, owner)


def _check_least(subject: _Subject, name: str, bound: Amount, owner: str) -> Iterator[OutOfRange]:
    rule = f"LimitRange `{owner}` requires at least `{value_of(bound.node)}`"
    request, limit = subject.requests.get(name), subject.limits.get(name)
    if request is None:
        yield _report_missing(subject, f"{subject.name} has no request for `{name}`, but {rule}", bound)
    elif request.milli < bound.milli:
        yield _report(subject, "requests", name, request, rule, "request more", bound)
    elif limit is not None and limit.milli < bound.milli:
        yield _report(subject, "limits", name, limit, rule, "raise the limit", bound)


def _check_most(subject: _Subject, name: str, bound: Amount, owner: str, missing: str) -> Iterator[OutOfRange]:
    """Check a maximum. A pod or container needs a limit, a claim a request, to stay below it."""
    rule = f"LimitRange `{owner}` allows at most `{value_of(bound.node)}`"
    request, limit = subject.requests.get(name), subject.limits.get(name)
    if (limit if missing == "limit" else request) is None:
        yield _report_missing(subject, f"{subject.name} has no {missing} for `{name}`, but {rule}", bound)
    elif limit is not None and limit.milli > bound.milli:
        yield _report(subject, "limits", name, limit, rule, "lower the limit", bound)
    elif request is not None and request.milli > bound.milli:
        yield _report(subject, "requests", name, request, rule, "request less", bound)


def _check_ratio(subject: _Subject, name: str, bound: Amount, owner: str) -> Iterator[OutOfRange]:
    allowed = value_of(bound.node)
    rule = f"LimitRange `{owner}` allows a limit of at most `{allowed}` times the request"
    request, limit = subject.requests.get(name), subject.limits.get(name)
    if request is None or limit is None or not request.milli or not limit.milli:
        message = f"{subject.name} has no request or no limit for `{name}`, but {rule}"
        yield _report_missing(subject, message, bound)
    elif limit.milli * 1000 > bound.milli * request.milli:
        message = f"the limit for `{name}` of {subject.name} is too large for its request: {rule}"
        node = limit.node if limit.node is not None else request.node
        yield OutOfRange(
            subject.place if node is None else node, f"{message}; lower the limit or request more", bound.node
        )


def _check_default_limits(
    containers: Sequence[_Subject], bounds: Mapping[str, Amounts], owner: str
) -> Iterator[OutOfRange]:
    """Find requests above the limit that the limit range gives a container without one."""
    most = bounds["max"]
    for subject in containers:
        for name, bound in bounds["default"].items():
            request, limit = subject.requests.get(name), subject.limits.get(name)
            if request is None or request.node is None or limit != Amount(bound.milli):
                continue
            if bound.milli < request.milli <= most.get(name, request).milli:
                message = (
                    f"{subject.name} requests `{value_of(request.node)}` of `{name}` without a limit, but LimitRange"
                )
                message += f" `{owner}` gives it the lower limit `{value_of(bound.node)}`; set a limit"
                yield OutOfRange(request.node, message, bound.node)


def _report(
    subject: _Subject, field: str, name: str, amount: Amount, rule: str, remedy: str, bound: Amount
) -> OutOfRange:
    message = f"`{field}.{name}` of {subject.name} is `{format_amount(name, amount.milli)}`"
    if amount.node is None:
        return OutOfRange(subject.place, f"{message} by default, but {rule}; set it", bound.node)
    return OutOfRange(amount.node, f"{message}, but {rule}; {remedy}", bound.node)


def _report_missing(subject: _Subject, message: str, bound: Amount) -> OutOfRange:
    return OutOfRange(subject.place, f"{message}; set it", bound.node)
