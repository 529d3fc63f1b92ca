"""Objects that say how often the pods of another object run: autoscalers, and users of templates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from jobgen.check.counted_pods import MAX_PODS, read_count
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.workloads import REPLICA_TYPES
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple

Target = tuple[str, str, str]
"""The namespace, kind and name of an object."""


class Scaling(NamedTuple):
    """How often one object lets the pods of another one run."""

    target: Target
    most: int
    user: Target | None = None
    """The object that runs the target as its template, beside what the target runs itself; None for an autoscaler."""
    level: int = 0
    """Which of the parts of the user, that run one after another, this is."""


class Scalable(NamedTuple):
    """What an object requests of one limit, and what it would if another one sets its replicas."""

    target: Target
    amount: int
    base: int
    """Without any of the replicas that can be set."""
    each: int
    """What one of them adds."""


class BudgetedUse(NamedTuple):
    """What an object requests of a line of its team's budget, as a fact has it."""

    team: str
    line: str
    limit: int
    job: str
    target: Target
    amount: int
    base: int
    each: int
    shared: tuple[tuple[object, ...], ...]
    advice: str
    default_in: str
    """The namespace whose LocalQueue `default` starts the object; empty if it starts anyway."""


def name_target(manifest: Manifest) -> Target:
    """Return what identifies an object for another one that scales it."""
    return manifest.namespace, manifest.kind_name, manifest.name


_MOST = ("maxReplicas", "maxReplicaCount")
_LEAST = ("minReplicas", "minReplicaCount")
_OF_KEDA = 100
"""The most replicas that KEDA sets if it is not told."""
_PAUSED = "autoscaling.keda.sh/paused-replicas"


def find_scaling(manifest: Manifest) -> list[Scaling]:
    """Return what an object scales, or runs as its template."""
    spec, own = manifest.spec, name_target(manifest)
    if isinstance(spec.get("scaleTargetRef"), dict):
        return [Scaling(_read_target(manifest, spec["scaleTargetRef"]), _read_most(manifest))]
    match manifest.group, manifest.kind_name:
        case ("argoproj.io", "Rollout") if isinstance(spec.get("workloadRef"), dict):
            replicas = as_integer(spec.get("replicas"))
            most = 1 if replicas is None else max(replicas, 0)
            return [Scaling(_read_target(manifest, spec["workloadRef"]), most, own)]
        case ("argoproj.io", "Workflow" | "CronWorkflow"):
            reference = get_path(spec, "workflowSpec", "workflowTemplateRef") or spec.get("workflowTemplateRef")
            name = as_text(as_mapping(reference).get("name"))
            return [Scaling((manifest.namespace, "WorkflowTemplate", name), 1, own)] if name else []
        case ("flow.volcano.sh", "JobFlow"):
            flows = _read_levels(list(map(as_mapping, as_list(spec.get("flows")))))
            return [Scaling((manifest.namespace, "JobTemplate", name), 1, own, level) for name, level in flows]
    return []


def _read_most(manifest: Manifest) -> int:
    """Return the most replicas that an autoscaler of any kind may set."""
    spec = manifest.spec
    most = [as_integer(spec.get(field)) for field in _MOST] + [as_integer(get_path(spec, "replicas", "max"))]
    if manifest.group.endswith("keda.sh") and all(each is None for each in most):
        most.append(_OF_KEDA)
    others = [as_integer(spec.get(field)) for field in _LEAST]
    paused = read_count(as_text(manifest.annotations.get(_PAUSED)))
    return max((each for each in (*most, *others, paused) if each is not None), default=1)


def _read_target(manifest: Manifest, reference: Plain) -> Target:
    named = as_mapping(reference)
    return manifest.namespace, as_text(named.get("kind")) or "Deployment", as_text(named.get("name"))


def _read_levels(flows: Sequence[Mapping[str, Plain]]) -> Iterator[tuple[str, int]]:
    """Yield the templates of a flow, each with the number of others that must have finished before, in a row."""
    names = {as_text(flow.get("name")) for flow in flows}
    waits: dict[str, set[str]] = {}
    for flow in flows:
        # With a probe, a flow starts while those before it still run.
        depends = as_mapping(flow.get("dependsOn"))
        targets = set(map(as_text, as_list(depends.get("targets")))) if depends.get("probe") is None else set()
        waits[as_text(flow.get("name"))] = targets & names
    after: dict[str, list[str]] = {name: [] for name in names}
    for name, targets in waits.items():
        for target in targets:
            after[target].append(name)
    levels, missing = dict.fromkeys(names, 0), {name: len(targets) for name, targets in waits.items()}
    ready = [name for name, count in missing.items() if not count]
    while ready:
        name = ready.pop()
        for other in after[name]:
            levels[other] = max(levels[other], levels[name] + 1)
            missing[other] -= 1
            if not missing[other]:
                ready.append(other)
    yield from ((as_text(flow.get("name")), levels[as_text(flow.get("name"))]) for flow in flows)


_WORKERS = {key: tuple(each.at for each in pods if each.role == "Worker") for key, pods in REPLICA_TYPES.items()}
_OF_SPEC = frozenset("Deployment LeaderWorkerSet ReplicaSet ReplicationController Rollout StatefulSet".split())


def set_replicas(manifest: Manifest, replicas: int) -> Mapping[str, Plain] | None:
    """Return an object with the replicas that its scale subresource sets; None if its kind has none."""
    paths = _WORKERS.get((manifest.group, manifest.kind_name))
    if paths is not None:
        path = [*paths[0].split("."), "replicas"] if paths else []
    else:
        has_field = "replicas" in manifest.spec or manifest.kind_name in _OF_SPEC
        path = ["spec", "replicas"] if has_field or (manifest.kind is None and "template" in manifest.spec) else []
    if not path or not isinstance(get_path(manifest.object, *path[:-1]), dict):
        return None
    return _replace(manifest.object, path, replicas)


def _replace(node: Mapping[str, Plain], path: Sequence[str], value: Plain) -> dict[str, Plain]:
    below = _replace(as_mapping(node.get(path[0])), path[1:], value) if len(path) > 1 else value
    return {**node, path[0]: below}


_RUN_AS = {
    ("flow.volcano.sh", "JobTemplate"): ("batch.volcano.sh/v1alpha1", "Job"),
    ("argoproj.io", "WorkflowTemplate"): ("argoproj.io/v1alpha1", "Workflow"),
}


def run_template(manifest: Manifest) -> Mapping[str, Plain] | None:
    """Return the object that others create of a template; None if it is no template."""
    run_as = _RUN_AS.get((manifest.group, manifest.kind_name))
    if run_as is not None:
        return {**manifest.object, "apiVersion": run_as[0], "kind": run_as[1]}
    if (manifest.group, manifest.kind_name) == ("", "PodTemplate"):
        template = as_mapping(manifest.object.get("template"))
        return {"apiVersion": "v1", "kind": "Pod", "metadata": manifest.metadata, "spec": template.get("spec")}
    return None


def scale_amounts(scalables: Sequence[Scalable], scalings: Iterable[Scaling]) -> list[int]:
    """Return the most that each object requests of one limit, with what others make of it."""
    most: dict[Target, int] = {}
    users: dict[Target, dict[int, list[Scaling]]] = {}
    for scaling in scalings:
        if scaling.user is None:
            most[scaling.target] = max(most.get(scaling.target, 0), scaling.most)
        else:
            users.setdefault(scaling.user, {}).setdefault(scaling.level, []).append(scaling)
    each = {scalable.target: scalable.each for scalable in scalables}
    added: dict[Target, int] = {}
    for user, levels in users.items():
        # Its parts run one after another, so those that request most together count.
        heaviest = max(levels.values(), key=lambda level: sum(each.get(part.target, 0) * part.most for part in level))
        for part in heaviest:
            count = max(part.most, most.get(user, 0))
            added[part.target] = min(added.get(part.target, 0) + count, MAX_PODS)
    return [
        max(amount, base + one * most.get(target, 0)) + one * added.get(target, 0)
        for target, amount, base, one in scalables
    ]
