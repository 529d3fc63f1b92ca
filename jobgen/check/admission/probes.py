"""Validate probes and lifecycle hooks: each has exactly one handler."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    Validator,
    ValidatorTable,
    is_set,
    join_names,
    list_set_keys,
    validate_each,
    validate_enum,
    validate_fields,
    validate_mapping,
    validate_number,
    validate_string,
)
from jobgen.check.admission.names import is_header_name
from jobgen.check.admission.network import validate_port_number, validate_port_reference
from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import Node, locatable, value_of

_RULE = "invalid-probe"
_DEFAULT_GRACE_PERIOD = 30
_LIFECYCLE = ("postStart", "preStop", "stopSignal")

_validate_header_name = validate_string(_RULE, "header name", is_header_name, "use letters, digits and `-`")


_SLEEP_ZERO_SINCE = (1, 33)


def _validate_sleep(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    grace_period = value_of(pod.spec.get("terminationGracePeriodSeconds"))
    if grace_period is None:
        grace_period = _DEFAULT_GRACE_PERIOD
    elif type(grace_period) is int and grace_period < 0:
        # Kubernetes treats a negative period as one second.
        grace_period = 1
    least = 0 if pod.release >= _SLEEP_ZERO_SINCE else 1
    node = value.get("seconds") if isinstance(value, dict) else None
    seconds = value_of(node)
    if type(seconds) is int and type(grace_period) is int and not least <= seconds <= grace_period:
        limit = f"between {least} and `terminationGracePeriodSeconds`, which is {grace_period}"
        pod.report(_RULE, f"`sleep` is `{seconds}` seconds, but must be {limit}", node)


_validate_exec = validate_mapping({}, "command")
_validate_http_get = validate_mapping(
    {
        "port": validate_port_reference,
        "scheme": validate_enum("", "HTTP", "HTTPS"),
        "httpHeaders": validate_each(validate_mapping({"name": _validate_header_name}, "name")),
    },
    "port",
)
_validate_tcp_socket = validate_mapping({"port": validate_port_reference}, "port")
_validate_grpc = validate_mapping({"port": validate_port_number}, "port")

_HANDLERS: ValidatorTable = {
    "exec": _validate_exec,
    "httpGet": _validate_http_get,
    "tcpSocket": _validate_tcp_socket,
}
_PROBE_HANDLERS: ValidatorTable = {**_HANDLERS, "grpc": _validate_grpc}
_HOOK_HANDLERS: ValidatorTable = {**_HANDLERS, "sleep": _validate_sleep}


def _validate_one_handler(key: str, value: Mapping[str, Node], handlers: ValidatorTable, pod: Validation) -> None:
    given = list_set_keys(value, handlers)
    if not given:
        null = next((node for name, node in value.items() if name in handlers), None)
        message = f"`{key}` has no handler; set one of {join_names(list(handlers), 'or')}"
        pod.report(_RULE, message, locatable(null, key))
    elif len(given) > 1:
        message = f"`{key}` has {len(given)} handlers: {join_names(given, 'and')}; keep one of them"
        pod.report(_RULE, message, given[-1])


def _validate_hook(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    if isinstance(value, dict):
        validate_fields(value, _HOOK_HANDLERS, pod)
        _validate_one_handler(key, value, _HOOK_HANDLERS, pod)


def _validate_probe(table: ValidatorTable) -> Validator:
    """Return a validator for a probe: the fields of all probes, and those of the table."""
    fields = {**_PROBE_HANDLERS, **_PROBE, **table}

    def validate(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
        if isinstance(value, dict):
            validate_fields(value, fields, pod)
            _validate_one_handler(key, value, _PROBE_HANDLERS, pod)

    return validate


def _forbid_grace_period(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    if is_set(value):
        pod.report(_RULE, f"`{key}` cannot be set for a readiness probe; delete it", key)


_PROBE: ValidatorTable = {
    "initialDelaySeconds": validate_number(0),
    "timeoutSeconds": validate_number(0),
    "periodSeconds": validate_number(0),
    "failureThreshold": validate_number(0),
}
_validate_restarting_probe = _validate_probe(
    {
        "successThreshold": validate_number(1, 1, allow_zero=True),
        "terminationGracePeriodSeconds": validate_number(1),
    }
)
_validate_readiness_probe = _validate_probe(
    {"successThreshold": validate_number(0), "terminationGracePeriodSeconds": _forbid_grace_period}
)

PROBES: ValidatorTable = {
    "lifecycle": validate_mapping({"postStart": _validate_hook, "preStop": _validate_hook}),
    "livenessProbe": _validate_restarting_probe,
    "readinessProbe": _validate_readiness_probe,
    "startupProbe": _validate_restarting_probe,
}


def _forbid_lifecycle(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Forbid hooks. The API server drops `stopSignal`, and the lifecycle if nothing else is in it."""
    fields = list_set_keys(as_mapping(value), _LIFECYCLE)
    if fields != ["stopSignal"]:
        _forbid_probe(key, value, owner, pod)


def _forbid_probe(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    if is_set(value):
        message = f"an init container cannot have `{key}` without `restartPolicy: Always`; delete it"
        pod.report("probe-of-init-container", message, key)


FORBIDDEN_PROBES: ValidatorTable = {**dict.fromkeys(PROBES, _forbid_probe), "lifecycle": _forbid_lifecycle}
"""The probes and hooks that an init container cannot have unless it is a sidecar."""
