"""What the webhook of LeaderWorkerSet rejects, and StatefulSets that the API server rejects."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import is_set
from jobgen.check.admission.names import DNS_LABEL_1035, is_dns_label_1035, is_dns_subdomain
from jobgen.check.operators.checks import (
    CHILD_REJECTED,
    MAX_INT32,
    REJECTED,
    Check,
    Checks,
    Violations,
    check_bounds,
    field_node,
    full_name,
    name_node,
    out_of_bounds,
)
from jobgen.check.rules import Violation
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import find_key

OPERATOR = "leaderworkerset"

_EXCLUSIVE = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
_MAX_LABEL = 63
# The hash of a revision has at most ten characters.
_REVISION = 10
_percent = lazy_pattern(r"[0-9]+%")


def _get_replicas(manifest: Manifest) -> int:
    found = as_integer(manifest.spec.get("replicas"))
    return 1 if found is None else found


def _get_template(manifest: Manifest) -> Mapping[str, Node]:
    return as_mapping(manifest.spec.get("leaderWorkerTemplate"))


def _get_size(manifest: Manifest) -> int:
    found = as_integer(_get_template(manifest).get("size"))
    return 1 if found is None else found


def _check_name(manifest: Manifest) -> Violations:
    name, node = full_name(manifest), name_node(manifest)
    if name and not is_dns_label_1035(name) and is_dns_subdomain(name):
        yield Violation(node, f"`{as_text(node)}` is also the name of a Service; {DNS_LABEL_1035}")


def _check_label(manifest: Manifest) -> Violations:
    """Check the label with the revision of a StatefulSet, which has the name of a group."""
    name, node = full_name(manifest), name_node(manifest)
    suffix = f"-{max(_get_replicas(manifest) - 1, 0)}-{'x' * _REVISION}"
    if is_dns_label_1035(name) and len(name) + len(suffix) > _MAX_LABEL and _get_size(manifest) > 1:
        message = f"`{as_text(node)}` has {len(name)} characters, but `…{suffix}` is appended to it for a label of pods"
        yield Violation(node, f"{message}; use at most {_MAX_LABEL - len(suffix)}")


def _check_pod_count(manifest: Manifest) -> Violations:
    if _get_replicas(manifest) * _get_size(manifest) > MAX_INT32:
        message = f"`replicas` times `size` exceeds {MAX_INT32}; use smaller numbers"
        yield Violation(field_node(manifest.spec, "replicas") or _get_template(manifest).get("size"), message)


def _check_size(manifest: Manifest) -> Violations:
    yield from out_of_bounds("size", _get_template(manifest).get("size"), 1)


def _check_rollout(manifest: Manifest) -> Violations:
    config = as_mapping(get_path(manifest.spec, "rolloutStrategy", "rollingUpdateConfiguration"))
    counts: dict[str, int | None] = {"maxUnavailable": 1, "maxSurge": 0}
    for name in counts:
        if is_set(config.get(name)):
            yield from _check_count(name, config[name])
            counts[name] = _scale(config[name], _get_replicas(manifest), rounds_up=name == "maxSurge")
    yield from out_of_bounds("partition", config.get("partition"), 0)
    if list(counts.values()) == [0, 0] and _get_replicas(manifest):
        message = "`maxUnavailable` and `maxSurge` are both 0, so that nothing can be updated; raise one of them"
        yield Violation(field_node(config, "maxUnavailable") or field_node(config, "maxSurge"), message)


def _check_count(name: str, node: Node) -> Violations:
    found = value_of(node)
    if isinstance(found, str):
        if not _percent.fullmatch(found):
            yield Violation(node, f"`{name}` is `{found}`, but must be a number or a percentage such as `10%`")
        elif int(found[:-1]) > 100:
            yield Violation(node, f"`{name}` must be at most 100%, got `{found}`")
    else:
        yield from out_of_bounds(name, node, 0)


def _scale(node: Node, total: int, *, rounds_up: bool) -> int | None:
    """Return a number, or a percentage of all replicas."""
    found = value_of(node)
    if type(found) is int:
        return found
    if isinstance(found, str) and _percent.fullmatch(found):
        share = int(found[:-1]) * total
        return -(-share // 100) if rounds_up else share // 100
    return None


def _check_subgroups(manifest: Manifest) -> Violations:
    template = _get_template(manifest)
    policy = as_mapping(template.get("subGroupPolicy"))
    if not is_set(template.get("subGroupPolicy")):
        if _EXCLUSIVE in manifest.annotations:
            message = f"annotation `{_EXCLUSIVE}` requires `subGroupPolicy`; set it, or remove the annotation"
            yield Violation(find_key(manifest.annotations, _EXCLUSIVE), message)
        return
    size, node = _get_size(manifest), policy.get("subGroupSize")
    yield from out_of_bounds("subGroupSize", node, 1, max(size, 1))
    part = as_integer(node)
    if part is None or part < 1 or part > size:
        return
    excludes_leader = as_text(policy.get("subGroupPolicyType")) == "LeaderExcluded"
    if excludes_leader and (size - 1) % part:
        message = f"`subGroupSize` is `{part}`, which does not divide {size - 1}, the number of workers; use a divisor"
        yield Violation(node, message)
    elif size % part and (size - 1) % part:
        message = f"`subGroupSize` is `{part}`, which divides neither {size} pods nor {size - 1} workers; use a divisor"
        yield Violation(node, message)


def _check_pods(manifest: Manifest) -> Violations:
    """Check what StatefulSets require of pods."""
    template = _get_template(manifest)
    for name in ("leaderTemplate", "workerTemplate"):
        pod = as_mapping(get_path(template, name, "spec"))
        policy = as_text(pod.get("restartPolicy"))
        if policy in ("Never", "OnFailure"):
            message = f"the API server rejects its StatefulSets: `restartPolicy` is `{policy}`, but must be `Always`"
            yield Violation(pod["restartPolicy"], f"{message}; for training that ends, use a JobSet")
        if is_set(pod.get("activeDeadlineSeconds")):
            message = "the API server rejects its StatefulSets: they do not support `activeDeadlineSeconds`; remove it"
            yield Violation(find_key(pod, "activeDeadlineSeconds"), message)


CHECKS: Checks = {
    "LeaderWorkerSet": (
        Check(REJECTED, _check_name, since="0.5"),
        Check(REJECTED, _check_size),
        Check(REJECTED, _check_pod_count),
        Check(REJECTED, _check_rollout),
        Check(REJECTED, _check_subgroups, since="0.3"),
        Check(REJECTED, check_bounds({"spec.replicas": (0, None)}), until="0.10"),
        Check(CHILD_REJECTED, _check_label),
        Check(CHILD_REJECTED, _check_pods),
    ),
}
