"""What KubeRay does not start: RayJobs, alone and inside RayCronJobs, and RayServices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from jobgen.check.admission.fields import is_set, iter_mappings
from jobgen.check.operators.checks import (
    CHILD_REJECTED,
    GATE_OFF,
    NEVER_STARTS,
    Check,
    Checks,
    FindViolations,
    Violations,
    full_name,
    name_node,
    not_one_of,
    out_of_bounds,
    require_gate,
)
from jobgen.check.operators.children import check_job, check_schedule, check_time_zone
from jobgen.check.operators.ray_cluster import check_name, list_cluster_checks
from jobgen.check.rules import Violation
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import find_key
from jobgen.yamlio.read import read

OPERATOR = "kuberay"

_SELECTOR_KEY = "ray.io/cluster"
_MODES = ["K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"]
# What is deleted first has the shortest time to live.
_DELETION_ORDER = ("DeleteWorkers", "DeleteCluster", "DeleteSelf")
_NO_MAPPING = ("yaml-syntax", "not-a-mapping", "unknown-anchor")
_WITHOUT_SELECTOR = ("DeleteCluster", "DeleteWorkers")


class _RayJob(NamedTuple):
    """The spec of a RayJob, with the object that contains it."""

    spec: Mapping[str, Node]
    manifest: Manifest
    parent: Node
    """The key of the spec."""

    @property
    def shuts_down(self) -> bool:
        return value_of(self.spec.get("shutdownAfterJobFinishes")) is True

    @property
    def selector(self) -> Mapping[str, Node]:
        return as_mapping(self.spec.get("clusterSelector"))

    @property
    def mode(self) -> str:
        return as_text(self.spec.get("submissionMode")) or "K8sJobMode"

    @property
    def autoscales(self) -> bool:
        return value_of(get_path(self.spec, "rayClusterSpec", "enableInTreeAutoscaling")) is True


def _check_cluster(job: _RayJob) -> Violations:
    if not job.selector and not is_set(job.spec.get("rayClusterSpec")):
        yield Violation(job.parent, "a RayJob requires `rayClusterSpec` or `clusterSelector`; set one of them")
    elif job.selector and not as_text(job.selector.get(_SELECTOR_KEY)):
        message = f"`clusterSelector` requires the name of a RayCluster as `{_SELECTOR_KEY}`; set it"
        yield Violation(find_key(job.spec, "clusterSelector"), message)


def _check_suspend(job: _RayJob) -> Violations:
    if value_of(job.spec.get("suspend")) is not True:
        return
    if not job.shuts_down:
        message = "`suspend` requires `shutdownAfterJobFinishes: true`, because it deletes the RayCluster; set it"
        yield Violation(job.spec["suspend"], message)
    elif job.selector:
        yield Violation(job.spec["suspend"], "`suspend` is not supported with `clusterSelector`; remove it")


def _check_ttl(job: _RayJob) -> Violations:
    node = job.spec.get("ttlSecondsAfterFinished")
    yield from out_of_bounds("ttlSecondsAfterFinished", node, 0)
    if (as_integer(node) or 0) > 0 and not job.shuts_down:
        message = "`ttlSecondsAfterFinished` requires `shutdownAfterJobFinishes: true`; set it, or remove the time"
        yield Violation(node, message)


def _check_backoff_limit(job: _RayJob) -> Violations:
    yield from out_of_bounds("backoffLimit", job.spec.get("backoffLimit"), 0)


def _check_interactive_retries(job: _RayJob) -> Violations:
    if job.mode == "InteractiveMode" and (as_integer(job.spec.get("backoffLimit")) or 0) > 0:
        message = "`backoffLimit` above 0 is not supported with `InteractiveMode`; remove it"
        yield Violation(job.spec["backoffLimit"], message)


def _check_selector_retries(job: _RayJob) -> Violations:
    if job.selector and (as_integer(job.spec.get("backoffLimit")) or 0) > 0:
        message = "`backoffLimit` above 0 is not supported with `clusterSelector`; remove it"
        yield Violation(job.spec["backoffLimit"], message)


def _check_deadline(job: _RayJob) -> Violations:
    yield from out_of_bounds("activeDeadlineSeconds", job.spec.get("activeDeadlineSeconds"), 1)


def _check_start_deadline(job: _RayJob) -> Violations:
    yield from out_of_bounds("preRunningDeadlineSeconds", job.spec.get("preRunningDeadlineSeconds"), 1)


def _check_mode(job: _RayJob) -> Violations:
    """Check that a submission mode exists: with another one, no job is submitted."""
    yield from not_one_of("submissionMode", job.spec.get("submissionMode"), _MODES)


def _check_sidecar(job: _RayJob) -> Violations:
    if job.mode != "SidecarMode":
        return
    for name in ("submitterPodTemplate", "submitterConfig", "clusterSelector"):
        if is_set(job.spec.get(name)) and (name != "clusterSelector" or job.selector):
            yield Violation(find_key(job.spec, name), f"`{name}` is not supported with `SidecarMode`; remove it")
    policy = get_path(job.spec, "rayClusterSpec", "headGroupSpec", "template", "spec", "restartPolicy")
    if as_text(policy) not in ("", "Never"):
        message = f"`restartPolicy` of the head is `{as_text(policy)}`, but `SidecarMode` requires `Never`; use it"
        yield Violation(policy, message)


def _check_runtime_env(job: _RayJob) -> Violations:
    """Check that the runtime environment is a YAML mapping."""
    node = job.spec.get("runtimeEnvYAML")
    text = as_text(node)
    if not text.strip():
        return
    findings = read(text.encode(errors="replace"), "runtimeEnvYAML").findings
    found = next((finding for finding in findings if finding.rule in _NO_MAPPING), None)
    if found is not None:
        message = f"`runtimeEnvYAML` is not a mapping in YAML: {found.message}; write one such as `pip: [torch]`"
        yield Violation(node, message)


def _check_deletion_gate(job: _RayJob) -> Violations:
    if is_set(job.spec.get("deletionStrategy")):
        node = find_key(job.spec, "deletionStrategy")
        yield from require_gate(job.manifest, "RayJobDeletionPolicy", "`deletionStrategy`", node)


def _check_deletion(job: _RayJob) -> Violations:
    """Check what is deleted after the end, by rules or by the two older fields."""
    strategy = as_mapping(job.spec.get("deletionStrategy"))
    if not is_set(job.spec.get("deletionStrategy")):
        return
    rules = list(iter_mappings(strategy.get("deletionRules")))
    is_legacy = is_set(strategy.get("onSuccess")) or is_set(strategy.get("onFailure"))
    node = find_key(job.spec, "deletionStrategy")
    if rules and job.shuts_down:
        message = "`deletionRules` and `shutdownAfterJobFinishes: true` are mutually exclusive; remove one of them"
        yield Violation(job.spec["shutdownAfterJobFinishes"], message)
    elif is_legacy and not rules:
        yield from _check_legacy_deletion(job, strategy)
    elif not is_legacy and not rules:
        yield Violation(node, "`deletionStrategy` requires `deletionRules`, or `onSuccess` and `onFailure`; set them")
    elif not is_legacy:
        yield from _check_deletion_rules(job, rules)


def _check_legacy_deletion(job: _RayJob, strategy: Mapping[str, Node]) -> Violations:
    for name in ("onSuccess", "onFailure"):
        holder = as_mapping(strategy.get(name))
        node, policy = holder.get("policy"), as_text(holder.get("policy"))
        if not policy:
            node = find_key(strategy, name) or find_key(job.spec, "deletionStrategy")
            yield Violation(node, f"`deletionStrategy` requires `{name}.policy`; set it")
        yield from _check_policy(job, policy, node)
        if policy == "DeleteNone" and job.shuts_down:
            message = f"`{policy}` contradicts `shutdownAfterJobFinishes: true`; remove one of them"
            yield Violation(node, message)


def _check_policy(job: _RayJob, policy: str, node: Node) -> Violations:
    if job.selector and policy in _WITHOUT_SELECTOR:
        yield Violation(node, f"`{policy}` is not supported with `clusterSelector`; use `DeleteSelf` or `DeleteNone`")
    elif policy == "DeleteWorkers" and job.autoscales:
        message = f"`{policy}` is not supported with `enableInTreeAutoscaling`; use `DeleteCluster`"
        yield Violation(node, message)


def _check_deletion_rules(job: _RayJob, rules: list[Mapping[str, Node]]) -> Violations:
    times: dict[tuple[str, str], dict[str, Mapping[str, Node]]] = {}
    for rule in rules:
        condition, policy = as_mapping(rule.get("condition")), as_text(rule.get("policy"))
        field = next((name for name in ("jobStatus", "jobDeploymentStatus") if is_set(condition.get(name))), "")
        if not policy or not field:
            # The schema requires both.
            continue
        yield from _check_policy(job, policy, rule["policy"])
        status = as_text(condition[field])
        known = times.setdefault((field, status), {})
        if policy in known:
            message = f"`{policy}` for `{field}: {status}` is in an earlier rule, too; remove one of them"
            yield Violation(rule["policy"], message)
            continue
        known[policy] = condition
    for (field, status), known in times.items():
        yield from _check_deletion_order(f"{field}: {status}", known)


def _check_deletion_order(status: str, conditions: Mapping[str, Mapping[str, Node]]) -> Violations:
    previous: tuple[str, int] | None = None
    for policy in _DELETION_ORDER:
        if policy not in conditions:
            continue
        ttl = as_integer(conditions[policy].get("ttlSeconds")) or 0
        if previous and ttl < previous[1]:
            message = f"`ttlSeconds` of `{policy}` for `{status}` is `{ttl}`, but that of `{previous[0]}` is"
            node = conditions[policy].get("ttlSeconds") or conditions[policy]
            yield Violation(node, f"{message} `{previous[1]}`; use at least {previous[1]}")
        previous = (policy, ttl)


def _check_submitter(job: _RayJob) -> Violations:
    """Check the Job that submits: KubeRay creates it from a pod template without changing its restart policy."""
    template = job.spec.get("submitterPodTemplate")
    if job.mode == "K8sJobMode" and isinstance(template, dict):
        node = find_key(job.spec, "submitterPodTemplate")
        limit = get_path(job.spec, "submitterConfig", "backoffLimit")
        spec: dict[str, Node] = {"template": template, **({"backoffLimit": limit} if is_set(limit) else {})}
        yield from check_job(job.manifest, {}, spec, node, "the Job that submits")


_CheckJob: TypeAlias = Callable[[_RayJob], Iterator[Violation]]

# The rule, the check, the first version with it, and the first version without it.
_JOB_CHECKS: tuple[tuple[str, _CheckJob, str, str], ...] = (
    (NEVER_STARTS, _check_cluster, "1.1", ""),
    (NEVER_STARTS, _check_suspend, "1.1", ""),
    (NEVER_STARTS, _check_deadline, "1.1", ""),
    (NEVER_STARTS, _check_mode, "1.1", ""),
    (NEVER_STARTS, _check_runtime_env, "1.1", ""),
    (NEVER_STARTS, _check_backoff_limit, "1.2", ""),
    (NEVER_STARTS, _check_ttl, "1.4", ""),
    (NEVER_STARTS, _check_interactive_retries, "1.4", ""),
    (NEVER_STARTS, _check_sidecar, "1.5", ""),
    (NEVER_STARTS, _check_deletion, "1.5", ""),
    (NEVER_STARTS, _check_selector_retries, "1.6", ""),
    (NEVER_STARTS, _check_start_deadline, "1.6", ""),
    (GATE_OFF, _check_deletion_gate, "1.5", "1.6"),
    (CHILD_REJECTED, _check_submitter, "", ""),
)


def list_job_checks(*path: str) -> tuple[Check, ...]:
    """Return the checks of the spec of a RayJob that is at this path of an object."""
    own = (Check(rule, _check_at(path, check), since, until) for rule, check, since, until in _JOB_CHECKS)
    return (*own, *list_cluster_checks(*path, "rayClusterSpec"))


def _check_at(path: tuple[str, ...], check: _CheckJob) -> FindViolations:
    *steps, last = path

    def find(manifest: Manifest) -> Violations:
        holder = as_mapping(get_path(manifest.object, *steps))
        spec = holder.get(last)
        if isinstance(spec, dict):
            yield from check(_RayJob(spec, manifest, find_key(holder, last)))

    return find


_MAX_NAME = 36


def _check_name(manifest: Manifest) -> Violations:
    name, node = full_name(manifest), name_node(manifest)
    if len(name) > _MAX_NAME:
        message = f"`{as_text(node)}` has {len(name)} characters, but KubeRay appends more to it for its RayJobs"
        yield Violation(node, f"{message}; use at most {_MAX_NAME}")


def _check_gate(manifest: Manifest) -> Violations:
    yield from require_gate(manifest, "RayCronJob", "`RayCronJob`", manifest.object.get("kind"))


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
    "RayJob": (Check(NEVER_STARTS, check_name(47), since="1.4"), *list_job_checks("spec")),
    "RayCronJob": (
        Check(NEVER_STARTS, _check_name, since="1.7"),
        Check(NEVER_STARTS, check_schedule),
        Check(NEVER_STARTS, check_time_zone, since="1.7"),
        Check(GATE_OFF, _check_gate),
        *list_job_checks("spec", "jobTemplate"),
    ),
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
