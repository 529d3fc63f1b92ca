"""What the documentation of TensorStack rules out. Its operators are not public, so these are warnings."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import find_places, is_set, iter_mappings, join_names, list_text_places
from jobgen.check.operators.checks import (
    REJECTED,
    Check,
    Checks,
    FindViolations,
    Violations,
    describe_bounds,
    not_one_of,
    out_of_bounds,
    spec_place,
)
from jobgen.check.rules import WARNING, Violation
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Plain
from jobgen.model.finding import add_article
from jobgen.model.place import At, Place, find_at
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean

OPERATOR = "tensorstack"

_RUN = ("python", "module", "exec")
_RESTART = ["Always", "OnFailure", "Never"]
# Fields of the shape before March 2025, and where they are now.
_OLD_FIELDS = {
    "MPIJob": {"worker": "replicaSpecs", "mca": "mpiConfig.mca", "mpiHome": "mpiConfig.home"},
    "ColossalAIJob": {"worker": "replicaSpecs", "launcher": "replicaSpecs"},
}


def _list_replica_specs(manifest: Manifest) -> list[Mapping[str, Plain]]:
    return list(iter_mappings(manifest.spec.get("replicaSpecs")))


def _check_shape(manifest: Manifest) -> Violations:
    """Check that an object has not the old shape of its kind, or parts of both."""
    moved = _OLD_FIELDS.get(manifest.kind_name, {})
    old = [key for key in manifest.spec if key in moved]
    if old and "replicaSpecs" not in manifest.spec:
        verb = "belong" if len(old) > 1 else "belongs"
        message = Sentence(
            "{} {} to the format that {} had before March 2025", join_names(old, "and"), verb, manifest.kind_name
        )
        yield Violation(
            At(manifest.spec, old[0], is_key=True), Sentence("{}; a newer platform requires `replicaSpecs`", message)
        )
        return
    for key in old:
        yield Violation(
            At(manifest.spec, key, is_key=True),
            Sentence("`{}` was a field of {} before March 2025; use `{}`", key, manifest.kind_name, moved[key]),
        )


def _check_replica_specs(manifest: Manifest) -> Violations:
    old = _OLD_FIELDS.get(manifest.kind_name, {})
    specs = _list_replica_specs(manifest)
    if not specs and not any(key in old for key in manifest.spec):
        message = Sentence("{} requires at least one item in `replicaSpecs`; add one", add_article(manifest.kind_name))
        yield Violation(spec_place(manifest, "replicaSpecs"), message)
    for spec in specs:
        yield from out_of_bounds(spec, "replicas", 0)
        policy = as_mapping(spec.get("restartPolicy"))
        yield from not_one_of(policy, "policy", _RESTART)
        yield from out_of_bounds(policy, "limit", 0)


def _check_launched_roles(manifest: Manifest) -> Violations:
    """Check the roles of kinds that launch workers over SSH: their types and the container of the workers."""
    specs = _list_replica_specs(manifest)
    for spec in specs:
        yield from not_one_of(spec, "type", ["launcher", "worker"])
        containers = list(iter_mappings(get_path(spec, "template", "spec", "containers")))
        names = [as_text(container.get("name")) for container in containers]
        if as_text(spec.get("type")) == "worker" and "worker" not in names:
            key: Place = find_at(spec, "template", is_key=True) or spec
            place = find_at(containers[0], "name") if containers else key
            message = Sentence(
                "the workers of {} need a container named `worker`; rename it", add_article(manifest.kind_name)
            )
            yield Violation(place, message)
    # Another type is reported on its own.
    if manifest.kind_name == "ColossalAIJob" and {as_text(spec.get("type")) for spec in specs} == {"worker"}:
        key = At(manifest.spec, "replicaSpecs", is_key=True)
        yield Violation(key, "a ColossalAIJob requires a replica spec of type `launcher`; add it")


def _check_deepspeed(manifest: Manifest) -> Violations:
    config = as_mapping(manifest.spec.get("config"))
    run = as_mapping(config.get("run"))
    given = [key for key in run if key in _RUN and is_set(run[key])]
    # In debug mode, the command is replaced.
    is_debugged = get_path(manifest.spec, "runMode", "debug", "enabled") is True
    if not as_text(config.get("customCommand")) and len(given) != 1 and not is_debugged:
        parent = find_at(config, "run", is_key=True) or spec_place(manifest, "config")
        place = At(run, given[1], is_key=True) if given else parent
        message = Sentence("`run` requires exactly one of {}; got {}", join_names(list(_RUN), "or"), len(given))
        yield Violation(place, message)
    for key in given:
        if not isinstance(run[key], list):
            yield Violation(At(run, key), Sentence("`{}` must be a list of strings, such as `[train.py]`", key))
    yield from not_one_of(config, "autotune", ["none", "run", "tune"])
    for text, place in list_text_places(config.get("otherArgs")):
        argument = text.partition("=")[0]
        if argument in ("--no_local_rank", "--autotuning", "--module", "--no_python"):
            yield Violation(
                place, Sentence("`{}` is set by DeepSpeedJob; use the fields of `config` instead", argument)
            )
        elif argument in ("--save_pid", "--enable_each_rank_log", "--bind_cores_to_rank", "--bind_core_list"):
            yield Violation(
                place, Sentence("`{}` does not work with pdsh, which DeepSpeedJob uses; remove it", argument)
            )


def _check_deepspeed_worker(manifest: Manifest) -> Violations:
    worker = as_mapping(manifest.spec.get("worker"))
    yield from not_one_of(worker, "restartPolicy", [*_RESTART, "ExitCode"])
    path = ("template", "spec", "containers", "*", "volumeMounts", "*", "mountPath")
    for place in find_places(worker, path):
        written = as_text(place.node)
        if written in ("/root/.ssh", "/t9k/hostfile", "/root/.deepspeed_env"):
            message = Sentence("DeepSpeedJob writes `{}`, so a mount there breaks it; use another path", written)
            yield Violation(place, message)


def _check_end_rules(manifest: Manifest) -> Violations:
    counts = {as_text(spec.get("type")): spec.get("replicas") for spec in _list_replica_specs(manifest)}
    for field in ("successRules", "failureRules"):
        for rule in iter_mappings(manifest.spec.get(field)):
            for kind, indexes in rule.items():
                if kind not in counts:
                    message = Sentence(
                        "there is no replica spec of type `{}`{}", kind, did_you_mean(kind, list(counts))
                    )
                    yield Violation(At(rule, kind, is_key=True), message)
                    continue
                replicas = as_integer(counts[kind])
                last = max((1 if replicas is None else replicas) - 1, 0)
                for at, found in enumerate(map(as_integer, as_list(indexes))):
                    if found is not None and not 0 <= found <= last:
                        yield Violation(At(indexes, at), describe_bounds(field, found, 0, last))


def _check_policies(manifest: Manifest) -> Violations:
    """Check the policies for the whole run, which GenericJob has in its spec."""
    policy = manifest.spec if manifest.kind_name == "GenericJob" else manifest.run_policy
    yield from not_one_of(policy, "cleanUpPolicy", ["None", "Unfinished", "All"])
    if manifest.kind_name == "DeepSpeedJob":
        yield from out_of_bounds(policy, "activeDeadlineSeconds", 1)
        yield from out_of_bounds(policy, "backoffLimit", 0)


def _check_elastic(manifest: Manifest) -> Violations:
    elastic = as_mapping(manifest.spec.get("elastic"))
    low, wanted, high = (as_integer(elastic.get(f"{name}Replicas")) for name in ("min", "expected", "max"))
    if elastic.get("enabled") is not True:
        return
    if low is not None and high is not None and low > high:
        yield Violation(
            At(elastic, "minReplicas"),
            Sentence("`minReplicas` is `{}`, but `maxReplicas` is `{}`; swap them", low, high),
        )
    elif wanted is not None and not (low or 0) <= wanted <= (wanted if high is None else high):
        message = Sentence("`expectedReplicas` is `{}`, but must be between `minReplicas` and `maxReplicas`", wanted)
        yield Violation(At(elastic, "expectedReplicas"), message)


def _warn(*checks: FindViolations) -> tuple[Check, ...]:
    """Return a check that makes warnings of the violations, because only documentation supports them."""

    def find(manifest: Manifest) -> Violations:
        for check in checks:
            yield from (violation._replace(severity=WARNING) for violation in check(manifest))
        scheduler = as_mapping(get_path(manifest.spec, "scheduler", "t9kScheduler"))
        for violation in out_of_bounds(scheduler, "priority", 0, 100):
            yield violation._replace(severity=WARNING)

    return (Check(REJECTED, find),)


CHECKS: Checks = {
    "GenericJob": _warn(_check_replica_specs, _check_end_rules, _check_policies),
    "DeepSpeedJob": _warn(_check_deepspeed, _check_deepspeed_worker, _check_policies, _check_elastic),
    "ColossalAIJob": _warn(_check_shape, _check_replica_specs, _check_launched_roles),
    "MPIJob": _warn(_check_shape, _check_replica_specs, _check_launched_roles),
    "BeamJob": _warn(),
}
