"""What the documentation of TensorStack rules out. Its operators are not public, so these are warnings."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import is_set, iter_mappings, join_names
from jobgen.check.operators.checks import REJECTED, Check, Checks, FindViolations, Violations, not_one_of, out_of_bounds
from jobgen.check.rules import WARNING, Violation
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, find_nodes, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node, value_of
from jobgen.model.finding import add_article
from jobgen.model.suggest import did_you_mean, find_key

OPERATOR = "tensorstack"

_RUN = ("python", "module", "exec")
_RESTART = ["Always", "OnFailure", "Never"]
# Fields of the shape before March 2025, and where they are now.
_OLD_FIELDS = {
    "MPIJob": {"worker": "replicaSpecs", "mca": "mpiConfig.mca", "mpiHome": "mpiConfig.home"},
    "ColossalAIJob": {"worker": "replicaSpecs", "launcher": "replicaSpecs"},
}


def _list_replica_specs(manifest: Manifest) -> list[Mapping[str, Node]]:
    return list(iter_mappings(manifest.spec.get("replicaSpecs")))


def _check_shape(manifest: Manifest) -> Violations:
    """Check that an object has not the old shape of its kind, or parts of both."""
    moved = _OLD_FIELDS.get(manifest.kind_name, {})
    old = [key for key in manifest.spec if key in moved]
    if old and "replicaSpecs" not in manifest.spec:
        verb = "belong" if len(old) > 1 else "belongs"
        message = f"{join_names(old, 'and')} {verb} to the format that {manifest.kind_name} had before March 2025"
        yield Violation(old[0], f"{message}; a newer platform requires `replicaSpecs`")
        return
    for key in old:
        yield Violation(key, f"`{key}` was a field of {manifest.kind_name} before March 2025; use `{moved[key]}`")


def _check_replica_specs(manifest: Manifest) -> Violations:
    old = _OLD_FIELDS.get(manifest.kind_name, {})
    specs = _list_replica_specs(manifest)
    if not specs and not any(key in old for key in manifest.spec):
        message = f"{add_article(manifest.kind_name)} requires at least one item in `replicaSpecs`; add one"
        node = find_key(manifest.spec, "replicaSpecs") or find_key(manifest.object, "spec")
        yield Violation(node or manifest.object.get("kind"), message)
    for spec in specs:
        yield from out_of_bounds("replicas", spec.get("replicas"), 0)
        policy = as_mapping(spec.get("restartPolicy"))
        yield from not_one_of("policy", policy.get("policy"), _RESTART)
        yield from out_of_bounds("limit", policy.get("limit"), 0)


def _check_launched_roles(manifest: Manifest) -> Violations:
    """Check the roles of kinds that launch workers over SSH: their types and the container of the workers."""
    specs = _list_replica_specs(manifest)
    for spec in specs:
        yield from not_one_of("type", spec.get("type"), ["launcher", "worker"])
        containers = list(iter_mappings(get_path(spec, "template", "spec", "containers")))
        names = [as_text(container.get("name")) for container in containers]
        if as_text(spec.get("type")) == "worker" and "worker" not in names:
            node = containers[0].get("name") if containers else find_key(spec, "template") or spec
            message = f"the workers of {add_article(manifest.kind_name)} need a container named `worker`; rename it"
            yield Violation(node, message)
    # Another type is reported on its own.
    if manifest.kind_name == "ColossalAIJob" and {as_text(spec.get("type")) for spec in specs} == {"worker"}:
        node = find_key(manifest.spec, "replicaSpecs")
        yield Violation(node, "a ColossalAIJob requires a replica spec of type `launcher`; add it")


def _check_deepspeed(manifest: Manifest) -> Violations:
    config = as_mapping(manifest.spec.get("config"))
    run = as_mapping(config.get("run"))
    given = [key for key in run if key in _RUN and is_set(run[key])]
    # In debug mode, the command is replaced.
    is_debugged = value_of(get_path(manifest.spec, "runMode", "debug", "enabled")) is True
    if not as_text(config.get("customCommand")) and len(given) != 1 and not is_debugged:
        node: Node = given[1] if given else find_key(config, "run") or find_key(manifest.spec, "config")
        message = f"`run` requires exactly one of {join_names(list(_RUN), 'or')}; got {len(given)}"
        yield Violation(node or find_key(manifest.object, "spec"), message)
    for key in given:
        if not isinstance(run[key], list):
            yield Violation(run[key], f"`{key}` must be a list of strings, such as `[train.py]`")
    yield from not_one_of("autotune", config.get("autotune"), ["none", "run", "tune"])
    for node in as_list(config.get("otherArgs")):
        argument = as_text(node).partition("=")[0]
        if argument in ("--no_local_rank", "--autotuning", "--module", "--no_python"):
            yield Violation(node, f"`{argument}` is set by DeepSpeedJob; use the fields of `config` instead")
        elif argument in ("--save_pid", "--enable_each_rank_log", "--bind_cores_to_rank", "--bind_core_list"):
            yield Violation(node, f"`{argument}` does not work with pdsh, which DeepSpeedJob uses; remove it")


def _check_deepspeed_worker(manifest: Manifest) -> Violations:
    worker = as_mapping(manifest.spec.get("worker"))
    yield from not_one_of("restartPolicy", worker.get("restartPolicy"), [*_RESTART, "ExitCode"])
    path = ("template", "spec", "containers", "*", "volumeMounts", "*", "mountPath")
    for node in find_nodes(worker, path):
        if as_text(node) in ("/root/.ssh", "/t9k/hostfile", "/root/.deepspeed_env"):
            message = f"DeepSpeedJob writes `{as_text(node)}`, so a mount there breaks it; use another path"
            yield Violation(node, message)


def _check_end_rules(manifest: Manifest) -> Violations:
    counts = {as_text(spec.get("type")): spec.get("replicas") for spec in _list_replica_specs(manifest)}
    for field in ("successRules", "failureRules"):
        for rule in iter_mappings(manifest.spec.get(field)):
            for kind, indexes in rule.items():
                if kind not in counts:
                    message = f"there is no replica spec of type `{kind}`{did_you_mean(kind, list(counts))}"
                    yield Violation(kind, message)
                    continue
                replicas = as_integer(counts[kind])
                for node in as_list(indexes):
                    yield from out_of_bounds(field, node, 0, max((1 if replicas is None else replicas) - 1, 0))


def _check_policies(manifest: Manifest) -> Violations:
    """Check the policies for the whole run, which GenericJob has in its spec."""
    policy = manifest.spec if manifest.kind_name == "GenericJob" else manifest.run_policy
    yield from not_one_of("cleanUpPolicy", policy.get("cleanUpPolicy"), ["None", "Unfinished", "All"])
    if manifest.kind_name == "DeepSpeedJob":
        yield from out_of_bounds("activeDeadlineSeconds", policy.get("activeDeadlineSeconds"), 1)
        yield from out_of_bounds("backoffLimit", policy.get("backoffLimit"), 0)


def _check_elastic(manifest: Manifest) -> Violations:
    elastic = as_mapping(manifest.spec.get("elastic"))
    low, wanted, high = (as_integer(elastic.get(f"{name}Replicas")) for name in ("min", "expected", "max"))
    if value_of(elastic.get("enabled")) is not True:
        return
    if low is not None and high is not None and low > high:
        yield Violation(elastic["minReplicas"], f"`minReplicas` is `{low}`, but `maxReplicas` is `{high}`; swap them")
    elif wanted is not None and not (low or 0) <= wanted <= (wanted if high is None else high):
        message = f"`expectedReplicas` is `{wanted}`, but must be between `minReplicas` and `maxReplicas`"
        yield Violation(elastic["expectedReplicas"], message)


def _warn(*checks: FindViolations) -> tuple[Check, ...]:
    """Return a check that makes warnings of the violations, because only documentation supports them."""

    def find(manifest: Manifest) -> Violations:
        for check in checks:
            yield from (violation._replace(severity=WARNING) for violation in check(manifest))
        priority = get_path(manifest.spec, "scheduler", "t9kScheduler", "priority")
        for violation in out_of_bounds("priority", priority, 0, 100):
            yield violation._replace(severity=WARNING)

    return (Check(REJECTED, find),)


CHECKS: Checks = {
    "GenericJob": _warn(_check_replica_specs, _check_end_rules, _check_policies),
    "DeepSpeedJob": _warn(_check_deepspeed, _check_deepspeed_worker, _check_policies, _check_elastic),
    "ColossalAIJob": _warn(_check_shape, _check_replica_specs, _check_launched_roles),
    "MPIJob": _warn(_check_shape, _check_replica_specs, _check_launched_roles),
    "BeamJob": _warn(),
}
