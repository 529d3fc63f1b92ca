"""What the webhook of JobSet rejects, and the Jobs of a JobSet that the API server rejects."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import find_places, is_set, iter_mappings, list_text_places
from jobgen.check.admission.names import (
    DNS_LABEL_1035,
    DNS_SUBDOMAIN,
    is_dns_label_1035,
    is_dns_subdomain,
    is_domain_prefixed_path,
    is_label_value,
)
from jobgen.check.operators.checks import (
    CHILD_REJECTED,
    GATE_OFF,
    MAX_INT32,
    REJECTED,
    Check,
    Checks,
    Violations,
    check_gate,
    check_job,
    field_place,
    full_name,
    given_name,
    is_since,
    name_place,
    not_one_of,
    out_of_bounds,
    require_gate,
)
from jobgen.check.rules import Violation
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, find_nodes, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Derived, find_at
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean, list_alternatives, suggest_entry

OPERATOR = "jobset"

_MAX_NAME = 63
_RESTARTS = ("spec", "failurePolicy", "restartStrategy")
_REASONS = "BackoffLimitExceeded DeadlineExceeded FailedIndexes MaxFailedIndexesExceeded PodFailurePolicy".split()
_rule_name = lazy_pattern(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")


class _ReplicatedJob(NamedTuple):
    """An item of `replicatedJobs` with the defaults that the webhook sets."""

    data: Mapping[str, Plain]
    name: str
    replicas: int
    job: Mapping[str, Plain]
    """The spec of its Jobs."""

    @property
    def is_indexed(self) -> bool:
        mode = self.job.get("completionMode")
        return not is_set(mode) or mode == "Indexed"

    @property
    def completions(self) -> int | None:
        return as_integer(self.job.get("completions"))

    @property
    def suffixes(self) -> list[str]:
        """What follows the name of the JobSet in the longest names of a Job and of its pods, if that is known."""
        of_job = f"-{self.name}-{self.replicas - 1}"
        of_pods = [f"{of_job}-{self.completions - 1}-abcde"] if self.is_indexed and self.completions is not None else []
        return [of_job, *of_pods]


def _list_jobs(manifest: Manifest) -> list[_ReplicatedJob]:
    """Return the replicated jobs of a JobSet, or of the one that a runtime describes."""
    is_runtime = manifest.kind_name != "JobSet"
    spec = as_mapping(get_path(manifest.spec, "template", "spec")) if is_runtime else manifest.spec
    return [
        _ReplicatedJob(
            item,
            as_text(item.get("name")),
            replicas if (replicas := as_integer(item.get("replicas"))) is not None else 1,
            as_mapping(get_path(item, "template", "spec")),
        )
        for item in iter_mappings(spec.get("replicatedJobs"))
    ]


def _check_names(manifest: Manifest) -> Violations:
    """Check that the names of Jobs, and of the pods of Indexed Jobs, are DNS labels."""
    name, given = full_name(manifest), given_name(manifest)
    if not name:
        return
    if not is_dns_label_1035(name[:_MAX_NAME].rstrip("-.")):
        if is_dns_subdomain(name):
            message = Sentence("`{}` is the start of the names of Jobs and pods; {}", given, DNS_LABEL_1035)
            yield Violation(name_place(manifest), message)
        return
    jobs = _list_jobs(manifest)
    for job in jobs:
        if job.name and not is_dns_label_1035(f"a-{job.name[: _MAX_NAME - 4]}-0"):
            yield Violation(
                At(job.data, "name"),
                Sentence("`{}` is part of the names of Jobs and pods; {}", job.name, DNS_LABEL_1035),
            )
    # Before 0.3.2, the webhook checks the names of Jobs, not those of their pods.
    count = None if is_since(manifest, OPERATOR, "0.3.2") else 1
    longest = max((suffix for job in jobs for suffix in job.suffixes[:count]), key=len, default="")
    if len(name) + len(longest) > _MAX_NAME:
        room = _MAX_NAME - len(longest)
        message = Sentence(
            "`{}` has {} characters, but `…{}` is appended to it for Jobs and pods", given, len(name), longest
        )
        advice = Sentence("use at most {}", room) if room > 0 else Sentence("shorten both names")
        yield Violation(name_place(manifest), Sentence("{}; {}", message, advice))


def _check_depends_on(manifest: Manifest) -> Violations:
    seen: list[str] = []
    jobs = _list_jobs(manifest)
    names = {job.name for job in jobs}
    for index, job in enumerate(jobs):
        seen.append(job.name)
        if not index and is_set(job.data.get("dependsOn")):
            items = iter_mappings(job.data.get("dependsOn"))
            later = [name for item in items if (name := as_text(item.get("name"))) in names and name != job.name]
            advice = (
                Sentence("put {} before it", " and ".join(f"`{name}`" for name in later))
                if later
                else Sentence("remove it")
            )
            message = Sentence(
                "`{}` is the first of `replicatedJobs` and cannot have `dependsOn`; {}", job.name, advice
            )
            yield Violation(At(job.data, "dependsOn", is_key=True), message)
            continue
        for item in iter_mappings(job.data.get("dependsOn")):
            wanted = as_text(item.get("name"))
            if wanted and wanted not in seen:
                message = Sentence("`{}` does not come before `{}` in `replicatedJobs`", wanted, job.name)
                is_later = wanted in names and wanted != job.name
                hint = f"; put `{wanted}` before `{job.name}`" if is_later else did_you_mean(wanted, seen)
                yield Violation(At(item, "name"), message + (hint or "; move it up"))


def _check_group_names(manifest: Manifest) -> Violations:
    for job in _list_jobs(manifest):
        found = as_text(job.data.get("groupName"))
        if found and not is_dns_label_1035(found):
            yield Violation(
                At(job.data, "groupName"), Sentence("`{}` is not a valid group name; {}", found, DNS_LABEL_1035)
            )


def _check_pod_count(manifest: Manifest) -> Violations:
    for job in _list_jobs(manifest):
        parallelism = as_integer(job.job.get("parallelism"))
        if job.replicas * (1 if parallelism is None else parallelism) > MAX_INT32:
            message = Sentence(
                "`replicas` times `parallelism` of `{}` exceeds {}; use smaller numbers", job.name, MAX_INT32
            )
            yield Violation(field_place(job.data, "replicas") or field_place(job.job, "parallelism"), message)


def _check_subdomain(manifest: Manifest) -> Violations:
    found = as_text(get_path(manifest.spec, "network", "subdomain"))
    if found and not is_dns_label_1035(found):
        place = find_at(manifest.spec, "network", "subdomain")
        yield Violation(place, Sentence("`{}` is also the name of a Service; {}", found, DNS_LABEL_1035))


def _check_managed_by(manifest: Manifest) -> Violations:
    node = manifest.spec.get("managedBy")
    if not isinstance(node, str):
        return
    if not is_domain_prefixed_path(node):
        yield Violation(
            At(manifest.spec, "managedBy"),
            Sentence("`{}` is not a domain and a path; write one such as `example.com/controller`", node),
        )
    elif len(node) > _MAX_NAME:
        yield Violation(
            At(manifest.spec, "managedBy"),
            Sentence("`{}` has {} characters; use at most {}", node, len(node), _MAX_NAME),
        )
    elif len(node) > _MAX_NAME:
        yield Violation(At(manifest.spec, "managedBy"), f"`{node}` has {len(node)} characters; use at most {_MAX_NAME}")


def _describe_unknown(wanted: str, names: list[str]) -> str:
    names = [name for name in names if name]
    hint = did_you_mean(wanted, names)
    if not hint and names:
        hint = f"; write {list_alternatives(f'`{name}`' for name in names[:_MOST_NAMED])}"
    return f"there is no replicated job `{wanted}`{hint}"


_MOST_NAMED = 4


def _check_targets(manifest: Manifest, *path: str) -> Violations:
    names = [job.name for job in _list_jobs(manifest)]
    for targets in find_nodes(manifest.spec, (*path, "targetReplicatedJobs")):
        for found, place in list_text_places(targets):
            if found not in names:
                yield Violation(place, _describe_unknown(found, names))


def _check_success_policy(manifest: Manifest) -> Violations:
    return _check_targets(manifest, "successPolicy")


def _list_rules(manifest: Manifest) -> list[Mapping[str, Plain]]:
    return list(iter_mappings(get_path(manifest.spec, "failurePolicy", "rules")))


def _check_failure_rules(manifest: Manifest) -> Violations:
    yield from _check_targets(manifest, "failurePolicy", "rules", "*")
    seen: set[str] = set()
    for rule in _list_rules(manifest):
        name = as_text(rule.get("name"))
        if name and (len(name) > 128 or not _rule_name.fullmatch(name)):
            message = Sentence(
                "`{}` is not a valid name of a rule; use at most {} letters, digits, `_`, `,`", name, 128
            )
            yield Violation(
                At(rule, "name"), Sentence("{} and `:`, starting with a letter and ending with none of `,:`", message)
            )
        if name in seen:
            yield Violation(At(rule, "name"), Sentence("two rules are named `{}`; rename one of them", name))
        seen.update([name] if name else [])
        for _, place in list_text_places(rule.get("onJobFailureReasons")):
            yield from not_one_of(place.holder, place.key, _REASONS, name="onJobFailureReasons", allow_empty=False)


def _list_restart_rules(manifest: Manifest) -> list[Mapping[str, Plain]]:
    actions = ("RestartJob", "RestartJobAndIgnoreMaxRestarts")
    return [rule for rule in _list_rules(manifest) if as_text(rule.get("action")) in actions]


def _check_restart_gate(manifest: Manifest) -> Violations:
    for rule in _list_restart_rules(manifest)[:1]:
        yield from require_gate(manifest, "RestartJob", f"`{as_text(rule['action'])}`", At(rule, "action"))


def _check_restarted_replicas(manifest: Manifest) -> Violations:
    for job in _list_jobs(manifest) if _list_restart_rules(manifest) else ():
        if job.replicas > 1024:
            message = "`replicas` must be at most 1024 where a rule restarts single Jobs"
            yield Violation(At(job.data, "replicas"), Sentence("{}, got `{}`", message, job.replicas))


def _check_in_place_jobs(manifest: Manifest) -> Violations:
    if as_text(get_path(manifest.object, *_RESTARTS)) != "InPlaceRestart":
        return
    for item in _list_jobs(manifest):
        job = item.job
        place = find_at(item.data, "template", "spec", is_key=True)
        if as_integer(job.get("backoffLimit")) != MAX_INT32:
            message = Sentence("`InPlaceRestart` requires `backoffLimit: {}` in `{}`; set it", MAX_INT32, item.name)
            yield Violation(field_place(job, "backoffLimit") or place, message)
        if as_text(job.get("podReplacementPolicy")) != "Failed":
            message = Sentence("`InPlaceRestart` requires `podReplacementPolicy: Failed` in `{}`; set it", item.name)
            yield Violation(field_place(job, "podReplacementPolicy") or place, message)
        if item.completions is None or item.completions != as_integer(job.get("parallelism")):
            message = Sentence(
                "`InPlaceRestart` requires equal `completions` and `parallelism` in `{}`; set both", item.name
            )
            yield Violation(field_place(job, "completions") or place, message)


def _check_coordinator(manifest: Manifest) -> Violations:
    coordinator = as_mapping(manifest.spec.get("coordinator"))
    wanted = as_text(coordinator.get("replicatedJob"))
    if not wanted:
        return
    jobs = {job.name: job for job in _list_jobs(manifest)}
    job = jobs.get(wanted)
    if job is None:
        yield Violation(At(coordinator, "replicatedJob"), _describe_unknown(wanted, list(jobs)))
        return
    yield from out_of_bounds(coordinator, "jobIndex", 0, max(job.replicas - 1, 0))
    if not job.is_indexed or job.completions is None:
        message = Sentence(
            "the Jobs of `{}` must be Indexed and have `completions`, because they have the coordinator", wanted
        )
        place = field_place(job.job, "completionMode") or At(coordinator, "replicatedJob")
        yield Violation(place, Sentence("{}; set both", message))
        return
    yield from out_of_bounds(coordinator, "podIndex", 0, max(job.completions - 1, 0))


def _check_coordinator_label(manifest: Manifest) -> Violations:
    """Check the address of the coordinator, which is also the value of a label."""
    coordinator = as_mapping(manifest.spec.get("coordinator"))
    job, name = as_text(coordinator.get("replicatedJob")), full_name(manifest)
    if not job or not name:
        return
    indexes = [as_integer(coordinator.get(key)) or 0 for key in ("jobIndex", "podIndex")]
    subdomain = as_text(get_path(manifest.spec, "network", "subdomain")) or name
    address = f"{name}-{job}-{indexes[0]}-{indexes[1]}.{subdomain}"
    if not is_label_value(address):
        message = Sentence(
            "`{}` is the value of a label and has {} characters; use names that leave", address, len(address)
        )
        yield Violation(At(coordinator, "replicatedJob"), Sentence("{} at most {}", message, _MAX_NAME))


def _check_volume_claims(manifest: Manifest) -> Violations:
    """Check the names of volume claims, that a container mounts each, and that no volume has its name."""
    pods = [get_path(job.job, "template", "spec") for job in _list_jobs(manifest)]
    paths = [("*", field, "*", "volumeMounts", "*", "name") for field in ("containers", "initContainers")]
    mounted = {as_text(node) for path in paths for node in find_nodes(pods, path)}
    seen: set[str] = set()
    for template in find_nodes(manifest.spec, ("volumeClaimPolicies", "*", "templates", "*")):
        name = as_text(get_path(template, "metadata", "name"))
        if not name:
            continue
        place = find_at(template, "metadata", "name")
        if name in seen:
            yield Violation(place, Sentence("two volume claims are named `{}`; rename one of them", name))
        seen.add(name)
        claim = f"{name}-{full_name(manifest)}"
        if not is_dns_subdomain(name):
            yield Violation(place, Sentence("`{}` is not a valid name of a volume claim; {}", name, DNS_SUBDOMAIN))
        elif len(claim) > _MAX_NAME:
            message = Sentence(
                "`{}` is the name of a volume claim and has {} characters; use at most", claim, len(claim)
            )
            yield Violation(place, Sentence("{} {}", message, _MAX_NAME))
        for volume in find_places(pods, ("*", "volumes", "*", "name")):
            if as_text(volume.node) == name:
                yield Violation(volume, Sentence("`{}` is also the name of a volume claim; rename the volume", name))
        if name not in mounted:
            yield Violation(place, Sentence("no container mounts the volume claim `{}`; mount it, or remove it", name))


def _check_jobs(manifest: Manifest) -> Violations:
    """Check the Jobs that the controller creates, with the defaults that the webhook sets."""

    def set_default(owner: Mapping[str, Plain], name: str, default: str) -> dict[str, Plain]:
        # The default applies if the field is null or empty.
        given = bool(owner.get(name))
        return Derived({name: default, **{key: value for key, value in owner.items() if given or key != name}}, owner)

    for item in _list_jobs(manifest):
        template, place = as_mapping(item.data.get("template")), find_at(item.data, "template", is_key=True)
        if not item.job:
            message = "the API server rejects its Job: it has no pod template; write one in `template.spec.template`"
            yield Violation(find_at(template, "spec", is_key=True) or place or item.data, message)
            continue
        pod = as_mapping(item.job.get("template"))
        pod_spec = set_default(as_mapping(pod.get("spec")), "restartPolicy", "OnFailure")
        spec = set_default(item.job, "completionMode", "Indexed")
        if violation := _check_completions(item, spec):
            yield violation
            spec["completions"] = item.job["parallelism"]
        spec["template"] = Derived({**pod, "spec": pod_spec}, pod)
        yield from check_job(manifest, as_mapping(template.get("metadata")), spec, place)


def _check_completions(item: _ReplicatedJob, spec: Mapping[str, Plain]) -> Violation | None:
    """Check that Jobs with a number of pods have one of completions, if their index is the webhook's default."""
    number = as_integer(item.job.get("parallelism"))
    is_default = spec["completionMode"] == "Indexed" and not is_set(item.job.get("completionMode"))
    if not is_default or number is None or number < 1 or is_set(item.job.get("completions")):
        return None
    message = "the API server rejects its Job: JobSet sets `completionMode: Indexed`, which requires `completions`"
    place = At(item.job, "parallelism")
    steps = suggest_entry("completions", item.job["parallelism"], item.job)
    return Violation(place, Sentence("{}; write `completions: {}`", message, number), fix_steps=steps)


def _check_names_in_runtime(manifest: Manifest) -> Violations:
    for job in _list_jobs(manifest):
        # A pod of an indexed Job has its name as its host name.
        if job.name and not (is_dns_label_1035 if job.is_indexed else is_dns_subdomain)(f"a-{job.name}-0"):
            yield Violation(
                At(job.data, "name"),
                Sentence("`{}` is part of the names of Jobs and pods; {}", job.name, DNS_LABEL_1035),
            )


_RUNTIME = (Check(CHILD_REJECTED, _check_jobs), Check(CHILD_REJECTED, _check_names_in_runtime))
CHECKS: Checks = {
    "ClusterTrainingRuntime": _RUNTIME,
    "TrainingRuntime": _RUNTIME,
    "JobSet": (
        Check(REJECTED, _check_pod_count, since="0.2"),
        Check(REJECTED, _check_success_policy),
        Check(REJECTED, _check_names, since="0.3"),
        Check(REJECTED, _check_subdomain, since="0.4"),
        Check(REJECTED, _check_managed_by, since="0.5"),
        Check(REJECTED, _check_failure_rules, since="0.6"),
        Check(REJECTED, _check_coordinator, since="0.6"),
        Check(REJECTED, _check_depends_on, since="0.8"),
        Check(REJECTED, _check_group_names, since="0.9"),
        Check(REJECTED, _check_coordinator_label, since="0.11"),
        Check(REJECTED, _check_volume_claims, since="0.11"),
        Check(REJECTED, _check_in_place_jobs, since="0.11"),
        Check(REJECTED, _check_restarted_replicas, since="0.12"),
        Check(GATE_OFF, check_gate("InPlaceRestart", *_RESTARTS, value="InPlaceRestart"), since="0.11"),
        Check(GATE_OFF, _check_restart_gate, since="0.12"),
        Check(CHILD_REJECTED, _check_jobs),
    ),
}
