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
    field_place,
    full_name,
    given_name,
    name_place,
    out_of_bounds,
)
from jobgen.check.rules import Violation
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence

OPERATOR = "leaderworkerset"

_EXCLUSIVE = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
_percent = lazy_pattern(r"[0-9]+%")


def _get_template(manifest: Manifest) -> Mapping[str, Plain]:
    return as_mapping(manifest.spec.get("leaderWorkerTemplate"))


def _get_counts(manifest: Manifest) -> tuple[int, int]:
    """Return the number of groups, and of pods in each."""
    replicas, size = as_integer(manifest.spec.get("replicas")), as_integer(_get_template(manifest).get("size"))
    return 1 if replicas is None else replicas, 1 if size is None else size


def _check_name(manifest: Manifest) -> Violations:
    name = full_name(manifest)
    if name and not is_dns_label_1035(name) and is_dns_subdomain(name):
        yield Violation(
            name_place(manifest),
            Sentence("`{}` is also the name of a Service; {}", given_name(manifest), DNS_LABEL_1035),
        )


def _check_label(manifest: Manifest) -> Violations:
    """Check the label with the revision of a StatefulSet, which has the name of a group."""
    name, given = full_name(manifest), given_name(manifest)
    replicas, size = _get_counts(manifest)
    # The hash of a revision has at most ten characters.
    suffix = f"-{max(replicas - 1, 0)}-{'x' * 10}"
    if is_dns_label_1035(name) and len(name) + len(suffix) > 63 and size > 1:
        message = Sentence(
            "`{}` has {} characters, but `…{}` is appended to it for a label of pods", given, len(name), suffix
        )
        yield Violation(name_place(manifest), Sentence("{}; use at most {}", message, 63 - len(suffix)))


def _check_pod_count(manifest: Manifest) -> Violations:
    template = _get_template(manifest)
    yield from out_of_bounds(template, "size", 1)
    replicas, pods = _get_counts(manifest)
    if replicas * pods > MAX_INT32:
        message = Sentence("`replicas` times `size` exceeds {}; use smaller numbers", MAX_INT32)
        yield Violation(field_place(manifest.spec, "replicas") or find_at(template, "size"), message)


def _check_rollout(manifest: Manifest) -> Violations:
    config = as_mapping(get_path(manifest.spec, "rolloutStrategy", "rollingUpdateConfiguration"))
    replicas, _ = _get_counts(manifest)
    counts: dict[str, int | None] = {"maxUnavailable": 1, "maxSurge": 0}
    for name in counts:
        node, found = config.get(name), config.get(name)
        if isinstance(found, str) and _percent.fullmatch(found):
            if int(found[:-1]) > 100:
                yield Violation(At(config, name), Sentence("`{}` must be at most 100%, got `{}`", name, found))
            share = int(found[:-1]) * replicas
            counts[name] = -(-share // 100) if name == "maxSurge" else share // 100
        elif isinstance(found, str):
            yield Violation(
                At(config, name),
                Sentence("`{}` is `{}`, but must be a number or a percentage such as `10%`", name, found),
            )
            counts[name] = None
        elif is_set(node):
            yield from out_of_bounds(config, name, 0)
            counts[name] = as_integer(node)
    yield from out_of_bounds(config, "partition", 0)
    if list(counts.values()) == [0, 0] and replicas:
        message = "`maxUnavailable` and `maxSurge` are both 0, so nothing can be updated; raise one of them"
        yield Violation(field_place(config, "maxUnavailable") or field_place(config, "maxSurge"), message)


def _check_subgroups(manifest: Manifest) -> Violations:
    template = _get_template(manifest)
    policy = as_mapping(template.get("subGroupPolicy"))
    if not is_set(template.get("subGroupPolicy")):
        if _EXCLUSIVE in manifest.annotations:
            message = Sentence(
                "annotation `{}` requires `subGroupPolicy`; set it, or remove the annotation", _EXCLUSIVE
            )
            yield Violation(At(manifest.annotations, _EXCLUSIVE, is_key=True), message)
        return
    _, size = _get_counts(manifest)
    yield from out_of_bounds(policy, "subGroupSize", 1, max(size, 1))
    part = as_integer(policy.get("subGroupSize"))
    if part is None or part < 1 or part > size:
        return
    excludes_leader = as_text(policy.get("subGroupPolicyType")) == "LeaderExcluded"
    if excludes_leader and (size - 1) % part:
        message = Sentence(
            "`subGroupSize` is `{}`, which does not divide {}, the number of workers; use a divisor", part, size - 1
        )
        yield Violation(At(policy, "subGroupSize"), message)
    elif size % part and (size - 1) % part:
        message = Sentence(
            "`subGroupSize` is `{}`, which divides neither {} pods nor {} workers; use a divisor", part, size, size - 1
        )
        yield Violation(At(policy, "subGroupSize"), message)


def _check_pods(manifest: Manifest) -> Violations:
    template = _get_template(manifest)
    for name in ("leaderTemplate", "workerTemplate"):
        pod = as_mapping(get_path(template, name, "spec"))
        policy = as_text(pod.get("restartPolicy"))
        if policy in ("Never", "OnFailure"):
            message = Sentence(
                "the API server rejects its StatefulSets: `restartPolicy` is `{}`, but must be `Always`", policy
            )
            yield Violation(At(pod, "restartPolicy"), Sentence("{}; for training that ends, use a JobSet", message))
        if is_set(pod.get("activeDeadlineSeconds")):
            message = Sentence(
                "the API server rejects its StatefulSets: they do not support `activeDeadlineSeconds`; remove it"
            )
            yield Violation(At(pod, "activeDeadlineSeconds", is_key=True), message)


CHECKS: Checks = {
    "LeaderWorkerSet": (
        Check(REJECTED, _check_name, since="0.5"),
        Check(REJECTED, _check_pod_count),
        Check(REJECTED, _check_rollout),
        Check(REJECTED, _check_subgroups, since="0.3"),
        Check(REJECTED, check_bounds({"spec.replicas": (0, None)}), until="0.10"),
        Check(CHILD_REJECTED, _check_label),
        Check(CHILD_REJECTED, _check_pods),
    )
}
