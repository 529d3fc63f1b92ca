"""The names of resources outside of containers: in quotas, in limit ranges, and on nodes."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation
from jobgen.check.admission.names import LABEL_KEY, is_label_key
from jobgen.check.admission.resources import validate_quantity
from jobgen.model.data import Node, value_of
from jobgen.model.quantity import decode_milli, to_int64
from jobgen.model.suggest import did_you_mean, suggest_rename

COUNTED = frozenset(
    """pods resourcequotas services replicationcontrollers secrets configmaps persistentvolumeclaims
    services.nodeports services.loadbalancers""".split()
)
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
QUOTA_RESOURCES = COUNTED.union(
    _COMPUTE,
    (f"requests.{name}" for name in _COMPUTE),
    (f"limits.{name}" for name in _COMPUTE),
    ("requests.storage",),
)
"""The resources without a domain that a quota can limit, besides huge pages."""

_STANDARD = QUOTA_RESOURCES | {"storage"}
_HUGEPAGES = ("hugepages-", "requests.hugepages-")
_NATIVE_DOMAIN = "kubernetes.io/"


def is_native(name: str) -> bool:
    """Return whether a resource is one of Kubernetes itself."""
    return "/" not in name or _NATIVE_DOMAIN in name


def may_overcommit(name: str) -> bool:
    """Return whether requests of a resource may be lower than limits."""
    return is_native(name) and not name.startswith("hugepages-")


def is_extended(name: str) -> bool:
    """Return whether a name is that of a device or another resource that is counted in whole numbers."""
    return not is_native(name) and not name.startswith("requests.") and is_label_key(f"requests.{name}")


def is_quota_resource(name: str) -> bool:
    """Return whether a name without a domain is that of a resource that a quota can limit."""
    return name in QUOTA_RESOURCES or name.startswith(_HUGEPAGES)


def validate_quota_resource(name: str, resources: Mapping[str, Node], run: Validation) -> None:
    """Validate the name of a resource that a quota limits."""
    if not is_label_key(name):
        run.report("unknown-resource", f"`{name}` is not a valid name of a resource; {LABEL_KEY}", name)
    elif "/" not in name and not is_quota_resource(name):
        known = sorted(QUOTA_RESOURCES)
        hint = did_you_mean(name, known) or "; write a resource such as `requests.cpu`, `pods` or `count/jobs.batch`"
        message = f"a quota cannot limit the resource `{name}`{hint}"
        run.report("unknown-resource", message, name, suggest_rename(name, known, resources))


def validate_standard_resource(name: str, run: Validation) -> None:
    """Validate the name of any resource that Kubernetes knows, or of one with a domain."""
    if not is_label_key(name):
        run.report("unknown-resource", f"`{name}` is not a valid name of a resource; {LABEL_KEY}", name)
    elif "/" not in name and name not in _STANDARD and not name.startswith(_HUGEPAGES):
        hint = did_you_mean(name, sorted(_STANDARD)) or "; write a standard resource, or one with a domain"
        run.report("unknown-resource", f"`{name}` is not a resource of Kubernetes{hint}", name)


def validate_amount(name: str, value: Node, resources: Mapping[str, Node], run: Validation) -> None:
    """Validate an amount of a resource: not negative, and whole if the resource is counted."""
    milli = decode_milli(value)
    if milli is None:
        validate_quantity(name, value, resources, run)
    elif milli < 0:
        run.report("negative-quantity", f"`{name}` must be at least 0, got `{value_of(value)}`", value)
    elif (name in COUNTED or is_extended(name)) and (to_int64(value, -3) or 0) % 1000:
        rule = "invalid-value" if name in COUNTED else "fractional-device"
        run.report(rule, f"`{name}` must be an integer, got `{value_of(value)}`", value)
