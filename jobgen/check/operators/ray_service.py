"""What KubeRay does not start: RayServices."""

from __future__ import annotations

from jobgen.check.admission.fields import is_set
from jobgen.check.operators.checks import (
    GATE_OFF,
    NEVER_STARTS,
    Check,
    Checks,
    Violations,
    not_one_of,
    out_of_bounds,
    require_gate,
)
from jobgen.check.operators.ray_cluster import check_name, list_cluster_checks
from jobgen.check.rules import Violation
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import find_key

OPERATOR = "kuberay"

_INCREMENTAL = "NewClusterWithIncrementalUpgrade"
_TIMEOUT = "ray.io/initializing-timeout"
_PERCENT = 100
_duration = lazy_pattern(
    r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h)(?:[0-9.]+(?:ns|us|µs|μs|ms|s|m|h))*"
)
_seconds = lazy_pattern(r"[-+]?[0-9]+")
_nonzero = lazy_pattern(r"[1-9]")


def _check_timeout(manifest: Manifest) -> Violations:
    node = manifest.annotations.get(_TIMEOUT)
    found = as_text(node)
    if not found:
        return
    is_time = _duration.fullmatch(found) or _seconds.fullmatch(found)
    if not is_time or found.startswith("-") or not _nonzero.search(found):
        message = f"annotation `{_TIMEOUT}` has the invalid value `{found}`; write a positive duration such as `5m`"
        yield Violation(node, message)


def _check_head_service(manifest: Manifest) -> Violations:
    name = get_path(manifest.spec, "rayClusterConfig", "headGroupSpec", "headService", "metadata", "name")
    if as_text(name):
        yield Violation(name, f"KubeRay names the Service of the head itself; remove `{as_text(name)}`")


def _check_upgrade_type(manifest: Manifest) -> Violations:
    yield from not_one_of(
        "type",
        get_path(manifest.spec, "upgradeStrategy", "type"),
        ["NewCluster", _INCREMENTAL, "None"],
        allow_empty=False,
    )


def _is_incremental(manifest: Manifest) -> bool:
    return as_text(get_path(manifest.spec, "upgradeStrategy", "type")) == _INCREMENTAL


def _check_incremental_gate(manifest: Manifest) -> Violations:
    if _is_incremental(manifest):
        node = get_path(manifest.spec, "upgradeStrategy", "type")
        yield from require_gate(manifest, "RayServiceIncrementalUpgrade", f"`{_INCREMENTAL}`", node)


def _check_incremental_upgrade(manifest: Manifest) -> Violations:
    if not _is_incremental(manifest):
        return
    strategy = as_mapping(manifest.spec.get("upgradeStrategy"))
    if value_of(get_path(manifest.spec, "rayClusterConfig", "enableInTreeAutoscaling")) is not True:
        message = f"`{_INCREMENTAL}` requires `enableInTreeAutoscaling: true` in `rayClusterConfig`; set it"
        yield Violation(strategy["type"], message)
    if not is_set(strategy.get("clusterUpgradeOptions")):
        yield Violation(strategy["type"], f"`{_INCREMENTAL}` requires `clusterUpgradeOptions`; set it")
        return
    options = as_mapping(strategy["clusterUpgradeOptions"])
    surge, step = (as_integer(options.get(name)) for name in ("maxSurgePercent", "stepSizePercent"))
    yield from out_of_bounds("maxSurgePercent", options.get("maxSurgePercent"), 0, _PERCENT)
    yield from out_of_bounds("stepSizePercent", options.get("stepSizePercent"), 0, _PERCENT)
    yield from out_of_bounds("intervalSeconds", options.get("intervalSeconds"), 1)
    for name in ("stepSizePercent", "intervalSeconds", "gatewayClassName"):
        if not is_set(options.get(name)) or value_of(options[name]) == "":
            node = find_key(options, name) or find_key(strategy, "clusterUpgradeOptions")
            yield Violation(node, f"`{_INCREMENTAL}` requires `{name}`; set it")
    if step is not None and surge is not None and _PERCENT >= step > surge:
        message = f"`stepSizePercent` is `{step}`, but `maxSurgePercent` is `{surge}`; use at most {surge}"
        yield Violation(options["stepSizePercent"], message)


CHECKS: Checks = {
    "RayService": (
        Check(NEVER_STARTS, check_name(47), since="1.4"),
        Check(NEVER_STARTS, _check_head_service, since="1.3"),
        Check(NEVER_STARTS, _check_upgrade_type, since="1.3"),
        Check(NEVER_STARTS, _check_timeout, since="1.5"),
        Check(NEVER_STARTS, _check_incremental_upgrade, since="1.5"),
        Check(GATE_OFF, _check_incremental_gate, since="1.5", until="1.7"),
        *list_cluster_checks("spec", "rayClusterConfig"),
    ),
}
