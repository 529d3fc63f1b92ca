"""What KubeRay does not start: RayJobs, alone and inside RayCronJobs, and RayServices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from jobgen.check.admission.fields import is_set, iter_mappings
from jobgen.check.operators.checks import (
    CHILD_REJECTED,
    GATE_OFF,
    NEVER_STARTS,
    Check,
    Checks,
    PartCheck,
    Violations,
    check_gate,
    check_job,
    check_schedule,
    check_time_zone,
    full_name,
    given_name,
    list_checks_at,
    name_place,
    not_one_of,
    out_of_bounds,
)
from jobgen.check.operators.ray_cluster import check_dashboard, check_name, list_cluster_checks
from jobgen.check.operators.ray_runtime_env import find_faults
from jobgen.check.rules import WARNING, Violation
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest, Pod
from jobgen.model.data import Plain, TracedScalar, list_scalars
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.origins import Origins
from jobgen.model.place import At, Derived, Place, find_at
from jobgen.model.sentence import Sentence
from jobgen.yamlio.read import read

OPERATOR = "kuberay"

_SELECTOR_KEY = "ray.io/cluster"
_MODES = ["K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"]
_INCREMENTAL = "NewClusterWithIncrementalUpgrade"
_TIMEOUT = "ray.io/initializing-timeout"
_duration = lazy_pattern(
    r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h)(?:[0-9.]+(?:ns|us|µs|μs|ms|s|m|h))*"
)
_seconds = lazy_pattern(r"[-+]?[0-9]+")
_nonzero = lazy_pattern(r"[1-9]")


class _RayJob(NamedTuple):
    """The spec of a RayJob, with the object that contains it."""

    spec: Mapping[str, Plain]
    manifest: Manifest
    parent: Place
    """The place of the key of the spec."""

    @property
    def shuts_down(self) -> bool:
        return self.spec.get("shutdownAfterJobFinishes") is True

    @property
    def selector(self) -> Mapping[str, Plain]:
        return as_mapping(self.spec.get("clusterSelector"))

    @property
    def mode(self) -> str:
        return as_text(self.spec.get("submissionMode")) or "K8sJobMode"

    @property
    def autoscales(self) -> bool:
        return get_path(self.spec, "rayClusterSpec", "enableInTreeAutoscaling") is True


def _check_cluster(job: _RayJob) -> Violations:
    if not job.selector and not is_set(job.spec.get("rayClusterSpec")):
        yield Violation(job.parent, "a RayJob requires `rayClusterSpec` or `clusterSelector`; set one of them")
    elif job.selector and not as_text(job.selector.get(_SELECTOR_KEY)):
        message = Sentence("`clusterSelector` requires the name of a RayCluster as `{}`; set it", _SELECTOR_KEY)
        yield Violation(At(job.spec, "clusterSelector", is_key=True), message)


def _check_suspend(job: _RayJob) -> Violations:
    if job.spec.get("suspend") is not True:
        return
    if not job.shuts_down:
        message = "`suspend` requires `shutdownAfterJobFinishes: true`, because it deletes the RayCluster; set it"
        yield Violation(At(job.spec, "suspend"), message)
    elif job.selector:
        yield Violation(At(job.spec, "suspend"), "`suspend` is not supported with `clusterSelector`; remove it")


def _check_ttl(job: _RayJob) -> Violations:
    yield from out_of_bounds(job.spec, "ttlSecondsAfterFinished", 0)
    if (as_integer(job.spec.get("ttlSecondsAfterFinished")) or 0) > 0 and not job.shuts_down:
        message = "`ttlSecondsAfterFinished` requires `shutdownAfterJobFinishes: true`; set it, or remove the time"
        yield Violation(At(job.spec, "ttlSecondsAfterFinished"), message)


def _at_least(field: str, low: int) -> Callable[[_RayJob], Violations]:
    return lambda job: out_of_bounds(job.spec, field, low)


def _check_mode(job: _RayJob) -> Violations:
    """Check that a submission mode exists: with another one, no job is submitted."""
    return not_one_of(job.spec, "submissionMode", _MODES)


def _check_interactive_retries(job: _RayJob) -> Violations:
    if job.mode == "InteractiveMode":
        yield from _forbid_retries(job, "InteractiveMode")


def _check_selector_retries(job: _RayJob) -> Violations:
    if job.selector:
        yield from _forbid_retries(job, "clusterSelector")


def _forbid_retries(job: _RayJob, feature: str) -> Violations:
    if (as_integer(job.spec.get("backoffLimit")) or 0) > 0:
        message = Sentence("`backoffLimit` above 0 is not supported with `{}`; remove it", feature)
        yield Violation(At(job.spec, "backoffLimit"), message)


def _check_sidecar(job: _RayJob) -> Violations:
    if job.mode != "SidecarMode":
        return
    for name in ("submitterPodTemplate", "submitterConfig", "clusterSelector"):
        if is_set(job.spec.get(name)) and (name != "clusterSelector" or job.selector):
            yield Violation(
                At(job.spec, name, is_key=True), Sentence("`{}` is not supported with `SidecarMode`; remove it", name)
            )
    place = find_at(job.spec, "rayClusterSpec", "headGroupSpec", "template", "spec", "restartPolicy")
    policy = as_text(place.node) if place else ""
    if policy not in ("", "Never"):
        message = Sentence("`restartPolicy` of the head is `{}`, but `SidecarMode` requires `Never`; use it", policy)
        yield Violation(place, message)


def _check_runtime_env(job: _RayJob) -> Violations:
    text = as_text(job.spec.get("runtimeEnvYAML"))
    if not text.strip():
        return
    place = At(job.spec, "runtimeEnvYAML")
    source = read(text.encode(errors="replace"), "runtimeEnvYAML", traced=True)
    found = next(
        (found for found in source.findings if found.rule in ("yaml-syntax", "not-a-mapping", "unknown-anchor")), None
    )
    if found is not None:
        message = Sentence(
            "`runtimeEnvYAML` is not a mapping in YAML: {}; write one such as `pip: [torch]`", found.message
        )
        yield Violation(place, message)
        return
    for document in source.documents[:1]:
        origins = Origins([document.data])
        for fault, text, is_certain in find_faults(origins.objects[0], origins):
            severity, finish = (
                None if is_certain else WARNING,
                partial(_find_written, document.data, origins.follow(fault)),
            )
            inside = origins.find_location(fault)
            yield Violation(place, text, severity=severity, inside=inside, finish=finish)


def _find_written(data: Any, node: Any, problem: Problem, is_spec: bool) -> Problem:
    """Show a problem at the value of a job that a value of its rendered text is, unless it was written as text."""
    text = problem.node
    if type(text) is not TracedScalar or not text.parts:
        return problem
    written, values, first = (text, *text.parts), list(list_scalars(data)), next(list_scalars(node), None)
    at = next((at for at, each in enumerate(values) if each is first), None)
    is_value = at is not None and len(values) == len(written)
    return problem._replace(at=written[at or 0], inside=None) if is_value else problem


def _check_deletion(job: _RayJob) -> Violations:
    """Check what is deleted after the end, by rules or by the two older fields."""
    strategy = as_mapping(job.spec.get("deletionStrategy"))
    rules = list(iter_mappings(strategy.get("deletionRules")))
    is_legacy = is_set(strategy.get("onSuccess")) or is_set(strategy.get("onFailure"))
    if rules and job.shuts_down:
        message = "`deletionRules` and `shutdownAfterJobFinishes: true` are mutually exclusive; remove one of them"
        yield Violation(At(job.spec, "shutdownAfterJobFinishes"), message)
    elif is_legacy and not rules:
        for name in ("onSuccess", "onFailure"):
            holder = as_mapping(strategy.get(name))
            policy = as_text(holder.get("policy"))
            if not policy:
                key = find_at(strategy, name, is_key=True) or At(job.spec, "deletionStrategy", is_key=True)
                yield Violation(key, Sentence("`deletionStrategy` requires `{}.policy`; set it", name))
            yield from _check_policy(job, policy, holder)
            if policy == "DeleteNone" and job.shuts_down:
                yield Violation(
                    At(holder, "policy"),
                    Sentence("`{}` contradicts `shutdownAfterJobFinishes: true`; remove one of them", policy),
                )
    elif rules and not is_legacy:
        yield from _check_deletion_rules(job, rules)
    elif not rules and is_set(job.spec.get("deletionStrategy")):
        message = "`deletionStrategy` requires `deletionRules`, or `onSuccess` and `onFailure`; set them"
        yield Violation(At(job.spec, "deletionStrategy", is_key=True), message)


def _check_policy(job: _RayJob, policy: str, holder: Mapping[str, Plain]) -> Violations:
    if job.selector and policy in ("DeleteCluster", "DeleteWorkers"):
        message = Sentence("`{}` is not supported with `clusterSelector`; use `DeleteSelf` or `DeleteNone`", policy)
        yield Violation(At(holder, "policy"), message)
    elif policy == "DeleteWorkers" and job.autoscales:
        message = Sentence("`{}` is not supported with `enableInTreeAutoscaling`; use `DeleteCluster`", policy)
        yield Violation(At(holder, "policy"), message)


def _check_deletion_rules(job: _RayJob, rules: list[Mapping[str, Plain]]) -> Violations:
    times: dict[str, dict[str, Mapping[str, Plain]]] = {}
    for rule in rules:
        condition, policy = as_mapping(rule.get("condition")), as_text(rule.get("policy"))
        field = next((name for name in ("jobStatus", "jobDeploymentStatus") if is_set(condition.get(name))), "")
        if not policy or not field:
            # The schema requires both.
            continue
        yield from _check_policy(job, policy, rule)
        status = f"{field}: {as_text(condition[field])}"
        known = times.setdefault(status, {})
        if policy in known:
            yield Violation(
                At(rule, "policy"),
                Sentence("`{}` for `{}` is also in an earlier rule; remove one of them", policy, status),
            )
        else:
            known[policy] = condition
    for status, known in times.items():
        before, least = "", 0
        # What is deleted first has the shortest time to live.
        for policy in (name for name in ("DeleteWorkers", "DeleteCluster", "DeleteSelf") if name in known):
            ttl = as_integer(known[policy].get("ttlSeconds")) or 0
            if before and ttl < least:
                message = Sentence(
                    "`ttlSeconds` of `{}` for `{}` is `{}`, but that of `{}` is", policy, status, ttl, before
                )
                place: Place = find_at(known[policy], "ttlSeconds") or known[policy]
                yield Violation(place, Sentence("{} `{}`; use at least {}", message, least, least))
            before, least = policy, ttl


def _check_dashboard(job: _RayJob) -> Violations:
    """Check that KubeRay reaches the dashboard, to which it submits the job."""
    return check_dashboard(as_mapping(job.spec.get("rayClusterSpec")), is_local=job.mode == "SidecarMode")


def _check_entrypoint_gpus(job: _RayJob) -> Violations:
    """Check that a node of the cluster has the GPUs that the command reserves."""
    wanted = job.spec.get("entrypointNumGpus")
    cluster = as_mapping(job.spec.get("rayClusterSpec"))
    groups = [as_mapping(cluster.get("headGroupSpec")), *iter_mappings(cluster.get("workerGroupSpecs"))]
    pods = [Pod(as_mapping(group.get("template")), job.manifest) for group in groups]
    declared = any("num-gpus" in as_mapping(group.get("rayStartParams")) or "resources" in group for group in groups)
    most = max((pod.containers[0].gpus for pod in pods if pod.containers), default=0)
    has_claims = any(pod.spec.get("resourceClaims") for pod in pods)
    if isinstance(wanted, (int, float)) and wanted > most and cluster and not declared and not has_claims:
        message = Sentence(
            "`entrypointNumGpus` is `{}`, but no pod of the cluster has more than {} GPUs, so Ray never", wanted, most
        )
        yield Violation(
            At(job.spec, "entrypointNumGpus"), Sentence("{} starts the command; use at most {}", message, most)
        )


def _check_submitter(job: _RayJob) -> Violations:
    """Check the Job that submits: KubeRay creates it from a pod template without changing its restart policy."""
    template = job.spec.get("submitterPodTemplate")
    if job.mode == "K8sJobMode" and isinstance(template, dict):
        key = At(job.spec, "submitterPodTemplate", is_key=True)
        config = as_mapping(job.spec.get("submitterConfig"))
        limit = {"backoffLimit": config["backoffLimit"]} if is_set(config.get("backoffLimit")) else {}
        spec = Derived({"template": template, **limit}, config)
        yield from check_job(job.manifest, {}, spec, key, "the Job that submits")


def _list_job_checks(*path: str) -> tuple[Check, ...]:
    def read(spec: Mapping[str, Plain], manifest: Manifest) -> _RayJob:
        return _RayJob(spec, manifest, find_at(manifest.object, *path, is_key=True))

    gate = Check(GATE_OFF, check_gate("RayJobDeletionPolicy", *path, "deletionStrategy"), "1.5", "1.6")
    return (*list_checks_at(path, _JOB_CHECKS, read), gate, *list_cluster_checks(*path, "rayClusterSpec"))


def _check_name(manifest: Manifest) -> Violations:
    name = full_name(manifest)
    if len(name) > 36:
        message = Sentence(
            "`{}` has {} characters, but KubeRay appends more to it for its RayJobs", given_name(manifest), len(name)
        )
        yield Violation(name_place(manifest), Sentence("{}; use at most 36", message))


def _check_timeout(manifest: Manifest) -> Violations:
    node = manifest.annotations.get(_TIMEOUT)
    found = as_text(node)
    if not found:
        return
    is_time = _duration.fullmatch(found) or _seconds.fullmatch(found)
    if not is_time or found.startswith("-") or not _nonzero.search(found):
        message = Sentence(
            "annotation `{}` has the invalid value `{}`; write a positive duration such as `5m`", _TIMEOUT, found
        )
        yield Violation(At(manifest.annotations, _TIMEOUT), message)


def _check_head_service(manifest: Manifest) -> Violations:
    place = find_at(manifest.spec, "rayClusterConfig", "headGroupSpec", "headService", "metadata", "name")
    if place and as_text(place.node):
        yield Violation(
            place, Sentence("KubeRay names the Service of the head itself; remove `{}`", as_text(place.node))
        )


def _check_service_dashboard(manifest: Manifest) -> Violations:
    return check_dashboard(as_mapping(manifest.spec.get("rayClusterConfig")))


def _check_upgrade_type(manifest: Manifest) -> Violations:
    known = ["NewCluster", _INCREMENTAL, "None"]
    return not_one_of(as_mapping(manifest.spec.get("upgradeStrategy")), "type", known, allow_empty=False)


def _check_incremental_upgrade(manifest: Manifest) -> Violations:
    strategy = as_mapping(manifest.spec.get("upgradeStrategy"))
    if as_text(strategy.get("type")) != _INCREMENTAL:
        return
    if get_path(manifest.spec, "rayClusterConfig", "enableInTreeAutoscaling") is not True:
        message = Sentence("`{}` requires `enableInTreeAutoscaling: true` in `rayClusterConfig`; set it", _INCREMENTAL)
        yield Violation(At(strategy, "type"), message)
    if not is_set(strategy.get("clusterUpgradeOptions")):
        yield Violation(At(strategy, "type"), Sentence("`{}` requires `clusterUpgradeOptions`; set it", _INCREMENTAL))
        return
    options = as_mapping(strategy["clusterUpgradeOptions"])
    surge, step = (as_integer(options.get(name)) for name in ("maxSurgePercent", "stepSizePercent"))
    yield from out_of_bounds(options, "maxSurgePercent", 0, 100)
    yield from out_of_bounds(options, "stepSizePercent", 0, 100)
    yield from out_of_bounds(options, "intervalSeconds", 1)
    for name in ("stepSizePercent", "intervalSeconds", "gatewayClassName"):
        if not is_set(options.get(name)) or options[name] == "":
            key = find_at(options, name, is_key=True) or At(strategy, "clusterUpgradeOptions", is_key=True)
            yield Violation(key, Sentence("`{}` requires `{}`; set it", _INCREMENTAL, name))
    if step is not None and surge is not None and 100 >= step > surge:
        message = Sentence(
            "`stepSizePercent` is `{}`, but `maxSurgePercent` is `{}`; use at most {}", step, surge, surge
        )
        yield Violation(At(options, "stepSizePercent"), message)


_JOB_CHECKS: tuple[PartCheck[_RayJob], ...] = (
    (NEVER_STARTS, _check_cluster, "1.1", ""),
    (NEVER_STARTS, _check_suspend, "1.1", ""),
    (NEVER_STARTS, _at_least("activeDeadlineSeconds", 1), "1.1", ""),
    (NEVER_STARTS, _check_mode, "1.1", ""),
    (NEVER_STARTS, _check_runtime_env, "1.1", ""),
    (NEVER_STARTS, _at_least("backoffLimit", 0), "1.2", ""),
    (NEVER_STARTS, _check_ttl, "1.4", ""),
    (NEVER_STARTS, _check_interactive_retries, "1.4", ""),
    (NEVER_STARTS, _check_sidecar, "1.5", ""),
    (NEVER_STARTS, _check_deletion, "1.5", ""),
    (NEVER_STARTS, _check_selector_retries, "1.6", ""),
    (NEVER_STARTS, _at_least("preRunningDeadlineSeconds", 1), "1.6", ""),
    (NEVER_STARTS, _check_dashboard, "", ""),
    (NEVER_STARTS, _check_entrypoint_gpus, "", ""),
    (CHILD_REJECTED, _check_submitter, "", ""),
)

_incremental_gate = check_gate("RayServiceIncrementalUpgrade", "spec", "upgradeStrategy", "type", value=_INCREMENTAL)
CHECKS: Checks = {
    "RayJob": (Check(NEVER_STARTS, check_name(47), since="1.4"), *_list_job_checks("spec")),
    "RayCronJob": (
        Check(NEVER_STARTS, _check_name, since="1.7"),
        Check(NEVER_STARTS, check_schedule),
        Check(NEVER_STARTS, check_time_zone, since="1.7"),
        Check(GATE_OFF, check_gate("RayCronJob", "kind", value="RayCronJob")),
        *_list_job_checks("spec", "jobTemplate"),
    ),
    "RayService": (
        Check(NEVER_STARTS, check_name(47), since="1.4"),
        Check(NEVER_STARTS, _check_head_service, since="1.3"),
        Check(NEVER_STARTS, _check_service_dashboard),
        Check(NEVER_STARTS, _check_upgrade_type, since="1.3"),
        Check(NEVER_STARTS, _check_timeout, since="1.5"),
        Check(NEVER_STARTS, _check_incremental_upgrade, since="1.5"),
        Check(GATE_OFF, _incremental_gate, since="1.5", until="1.7"),
        *list_cluster_checks("spec", "rayClusterConfig"),
    ),
}
