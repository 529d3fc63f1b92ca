"""Probes and lifecycle hooks: one handler each."""

from __future__ import annotations

from jobgen.check.admission.fields import (
    Check,
    PodCheck,
    Table,
    each,
    is_set,
    judge,
    mapping_of,
    number,
    text,
    word,
    written,
)
from jobgen.check.admission.names import is_header
from jobgen.check.admission.ports import port_number, port_of_handler
from jobgen.model.data import Data, value_of

_RULE = "invalid-probe"
_DEFAULT_GRACE = 30

_positive = number(1)
_not_negative = number(0)
_once = number(1, 1, zero=True)
_header = mapping_of({"name": text(_RULE, "the name of a header", is_header, "use letters, digits and `-`")}, "name")


def _sleep(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    grace = value_of(pod.spec.get("terminationGracePeriodSeconds"))
    # A negative period counts as one second.
    grace = _DEFAULT_GRACE if grace is None else 1 if type(grace) is int and grace < 0 else grace
    node = value.get("seconds") if isinstance(value, dict) else None
    seconds = value_of(node)
    if type(seconds) is int and type(grace) is int and not 0 <= seconds <= grace:
        message = (
            f"`sleep` lasts `{seconds}` seconds; it must end within the {grace} of `terminationGracePeriodSeconds`"
        )
        pod.report("invalid-probe", message, node)


_EXEC = mapping_of({}, "command")
_HTTP = mapping_of({"port": port_of_handler, "scheme": word("", "HTTP", "HTTPS"), "httpHeaders": each(_header)}, "port")
_TCP = mapping_of({"port": port_of_handler}, "port")
_GRPC = mapping_of({"port": port_number}, "port")

_PROBE_HANDLERS: Table = {"exec": _EXEC, "httpGet": _HTTP, "tcpSocket": _TCP, "grpc": _GRPC}
_HOOK_HANDLERS: Table = {"exec": _EXEC, "httpGet": _HTTP, "tcpSocket": _TCP, "sleep": _sleep}


def _handler(key: str, value: dict[str, Data], handlers: Table, pod: PodCheck) -> None:
    given = written(value, handlers)
    if not given:
        listed = ", ".join(f"`{name}`" for name in handlers)
        pod.report("invalid-probe", f"`{key}` has no handler; give it one of {listed}", key)
    elif len(given) > 1:
        listed = " and ".join(f"`{name}`" for name in given)
        pod.report("invalid-probe", f"`{key}` has {len(given)} handlers, {listed}; keep one of them", given[-1])


def _hook(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    if isinstance(value, dict):
        judge(value, _HOOK_HANDLERS, pod)
        _handler(key, value, _HOOK_HANDLERS, pod)


lifecycle = mapping_of({"postStart": _hook, "preStop": _hook})


def _probe(table: Table) -> Check:
    fields = {**_PROBE_HANDLERS, **_PROBE, **table}

    def check(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
        if isinstance(value, dict):
            judge(value, fields, pod)
            _handler(key, value, _PROBE_HANDLERS, pod)

    return check


def _no_grace(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    if is_set(value):
        pod.report(_RULE, f"`{key}` has no meaning for a readiness probe; delete it", key)


_PROBE: Table = {
    "initialDelaySeconds": _not_negative,
    "timeoutSeconds": _not_negative,
    "periodSeconds": _not_negative,
    "failureThreshold": _not_negative,
}
_deciding = _probe({"successThreshold": _once, "terminationGracePeriodSeconds": _positive})

PROBES: Table = {
    "lifecycle": lifecycle,
    "livenessProbe": _deciding,
    "readinessProbe": _probe({"successThreshold": _not_negative, "terminationGracePeriodSeconds": _no_grace}),
    "startupProbe": _deciding,
}


def forbidden(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """What an init container that ends by itself cannot have."""
    if is_set(value):
        message = f"an init container has no `{key}`; it is for containers that stay, with `restartPolicy: Always`"
        pod.report("probe-of-init-container", message, key)


NO_PROBES: Table = dict.fromkeys(PROBES, forbidden)
