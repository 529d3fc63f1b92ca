"""What the documentation of TensorStack rules out. Its operators are not public, so these are warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

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
_AUTOTUNE = ["none", "run", "tune"]
_CLEAN_UP = ["None", "Unfinished", "All"]
_RESTART = ["Always", "OnFailure", "Never"]
_RESTART_WITH_CODES = [*_RESTART, "ExitCode"]
_DEEPSPEED_MOUNTS = ("/root/.ssh", "/t9k/hostfile", "/root/.deepspeed_env")
_DEEPSPEED_ARGS = ("--no_local_rank", "--autotuning", "--module", "--no_python")
_PDSH_ARGS = ("--save_pid", "--enable_each_rank_log", "--bind_cores_to_rank", "--bind_core_list")
_MAX_PRIORITY = 100
# Fields of the shape before March 2025, and where they are now.
_OLD_FIELDS = {
    "MPIJob": {"worker": "replicaSpecs", "mca": "mpiConfig.mca", "mpiHome": "mpiConfig.home"},
    "ColossalAIJob": {"worker": "replicaSpecs", "launcher": "replicaSpecs"},
}


def _warn(find: FindViolations) -> FindViolations:
    """Make warnings of the violations of a check, because only documentation supports them."""

    def find_warnings(manifest: Manifest) -> Violations:
        for violation in find(manifest):
            yield violation._replace(severity=WARNING)

    return find_warnings


def _list_replica_specs(manifest: Manifest) -> list[Mapping[str, Node]]:
    return list(iter_mappings(manifest.spec.get("replicaSpecs")))


def _check_shape(manifest: Manifest) -> Violations:
    """Check that an object has not the old shape of its kind, or parts of both."""
    moved = _OLD_FIELDS.get(manifest.kind_name, {})
    old = [key for key in manifest.spec if key in moved]
    if old and "replicaSpecs" not in manifest.spec:
        verb = "are" if len(old) > 1 else "is"
        message = f"{join_names(old, 'and')} {verb} of the shape that {manifest.kind_name} had before March 2025"
        yield Violation(old[0], f"{message}; a newer platform requires `replicaSpecs`")
        return
    for key in old:
        message = f"`{key}` is a field of {manifest.kind_name} before March 2025; use `{moved[key]}` now"
        yield Violation(key, message)


def _check_replica_specs(manifest: Manifest) -> Violations:
    old = _OLD_FIELDS.get(manifest.kind_name, {})
    specs = _list_replica_specs(manifest)
    if not specs and not any(key in old for key in manifest.spec):
        node = find_key(manifest.spec, "replicaSpecs") or find_key(manifest.object, "spec")
        message = f"{add_article(manifest.kind_name)} requires at least one item in `replicaSpecs`; add one"
        yield Violation(node or manifest.object.get("kind"), message)
    for spec in specs:
        yield from out_of_bounds("replicas", spec.get("replicas"), 0)
        policy = as_mapping(spec.get("restartPolicy"))
        yield from not_one_of("policy", policy.get("policy"), _RESTART)
        yield from out_of_bounds("limit", policy.get("limit"), 0)


def _check_launched_roles(manifest: Manifest) -> Violations:
    """Check the roles of kinds that launch workers over SSH: their types and the container of the workers."""
    for spec in _list_replica_specs(manifest):
        kind = as_text(spec.get("type"))
        yield from not_one_of("type", spec.get("type"), ["launcher", "worker"])
        containers = list(iter_mappings(get_path(spec, "template", "spec", "containers")))
        names = [as_text(container.get("name")) for container in containers]
        if kind == "worker" and "worker" not in names:
            node = containers[0].get("name") if containers else find_key(spec, "template") or spec
            yield Violation(
                node, f"the workers of {add_article(manifest.kind_name)} require a container `worker`; name it so"
            )


def _check_launcher(manifest: Manifest) -> Violations:
    types = {as_text(spec.get("type")) for spec in _list_replica_specs(manifest)}
    # Another type is reported on its own.
    if types == {"worker"}:
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
    yield from not_one_of("autotune", config.get("autotune"), _AUTOTUNE)
    for node in as_list(config.get("otherArgs")):
        argument = as_text(node).partition("=")[0]
        if argument in _DEEPSPEED_ARGS:
            yield Violation(node, f"`{argument}` is set by DeepSpeedJob; use the fields of `config` instead")
        elif argument in _PDSH_ARGS:
            yield Violation(node, f"`{argument}` does not work with pdsh, which DeepSpeedJob uses; remove it")


def _check_deepspeed_worker(manifest: Manifest) -> Violations:
    worker = as_mapping(manifest.spec.get("worker"))
    yield from not_one_of("restartPolicy", worker.get("restartPolicy"), _RESTART_WITH_CODES)
    path = ("template", "spec", "containers", "*", "volumeMounts", "*", "mountPath")
    for node in find_nodes(worker, path):
        if as_text(node) in _DEEPSPEED_MOUNTS:
            yield Violation(
                node, f"DeepSpeedJob writes `{as_text(node)}`, so a mount there breaks it; use another path"
            )


def _check_end_rules(manifest: Manifest) -> Violations:
    """Check that the rules about success and failure name replicas that exist."""
    counts = {as_text(spec.get("type")): _count(spec) for spec in _list_replica_specs(manifest)}
    for field in ("successRules", "failureRules"):
        for rule in iter_mappings(manifest.spec.get(field)):
            for kind, indexes in rule.items():
                if kind not in counts:
                    message = f"there is no replica spec of type `{kind}`{did_you_mean(kind, list(counts))}"
                    yield Violation(kind, message)
                    continue
                for node in as_list(indexes):
                    yield from out_of_bounds(field, node, 0, max(counts[kind] - 1, 0))


def _count(spec: Mapping[str, Node]) -> int:
    found = as_integer(spec.get("replicas"))
    return 1 if found is None else found


def _check_clean_up(manifest: Manifest) -> Violations:
    yield from not_one_of("cleanUpPolicy", manifest.spec.get("cleanUpPolicy"), _CLEAN_UP)


def _check_run_policy(manifest: Manifest) -> Violations:
    policy = manifest.run_policy
    yield from not_one_of("cleanUpPolicy", policy.get("cleanUpPolicy"), _CLEAN_UP)
    yield from out_of_bounds("activeDeadlineSeconds", policy.get("activeDeadlineSeconds"), 1)
    yield from out_of_bounds("backoffLimit", policy.get("backoffLimit"), 0)


def _check_scheduler(manifest: Manifest) -> Violations:
    priority = get_path(manifest.spec, "scheduler", "t9kScheduler", "priority")
    yield from out_of_bounds("priority", priority, 0, _MAX_PRIORITY)


def _check_elastic(manifest: Manifest) -> Violations:
    elastic = as_mapping(manifest.spec.get("elastic"))
    low, wanted, high = (as_integer(elastic.get(f"{name}Replicas")) for name in ("min", "expected", "max"))
    if value_of(elastic.get("enabled")) is not True:
        return
    if low is not None and high is not None and low > high:
        message = f"`minReplicas` is `{low}`, but `maxReplicas` is `{high}`; swap them"
        yield Violation(elastic["minReplicas"], message)
    elif wanted is not None and not (low or 0) <= wanted <= (wanted if high is None else high):
        message = f"`expectedReplicas` is `{wanted}`, but must be between `minReplicas` and `maxReplicas`"
        yield Violation(elastic["expectedReplicas"], message)


def _list_checks(*checks: Callable[[Manifest], Iterator[Violation]]) -> tuple[Check, ...]:
    return tuple(Check(REJECTED, _warn(check)) for check in (*checks, _check_scheduler))


CHECKS: Checks = {
    "GenericJob": _list_checks(_check_replica_specs, _check_end_rules, _check_clean_up),
    "DeepSpeedJob": _list_checks(_check_deepspeed, _check_deepspeed_worker, _check_run_policy, _check_elastic),
    "ColossalAIJob": _list_checks(_check_shape, _check_replica_specs, _check_launched_roles, _check_launcher),
    "MPIJob": _list_checks(_check_shape, _check_replica_specs, _check_launched_roles),
    "BeamJob": _list_checks(),
}
