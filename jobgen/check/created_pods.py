"""The pods that an object creates, also of kinds without a description: of Workflows, Spark, KEDA and others.

What is counted is certain: the most that can run together, as far as the object says. What it does not say is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from jobgen.k8s.devices import is_device
from jobgen.k8s.embedded import MAX_DEPTH, TEMPLATE_TEXT, Parameters, fill, list_parameters, read_embedded
from jobgen.k8s.kueue import find_suspend_path, is_suspended, stays_suspended
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.object_paths import is_app_wrapper
from jobgen.k8s.objects import Manifest, Pod
from jobgen.k8s.resources import list_counted_pods
from jobgen.k8s.workloads import RAY_CLUSTERS, count_job_pods
from jobgen.model.data import Node, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

MAX_PODS = 2**31 - 1
"""The most that a number of pods can be, and the default of KubeRay and Spark where they scale without a limit."""
CountedPod = tuple[Pod, int]
Unknown = tuple[Node, str]
"""A node, and what is not known about the accelerators there."""


class CreatedPods(NamedTuple):
    """The pods of an object, each with the number of times that it runs."""

    manifest: Manifest
    """The object as it may be later: started by its queue, with all workers that Ray may add."""
    described: Sequence[CountedPod]
    """Those in the places where its kind has pods."""
    hidden: Sequence[CountedPod] = ()
    """Pods with accelerators in other places, and those of objects that it creates."""
    unknown: Sequence[Unknown] = ()

    @property
    def pods(self) -> list[CountedPod]:
        """All of them."""
        return [*self.described, *self.hidden]


def find_created_pods(manifest: Manifest, depth: int = 0) -> CreatedPods:
    """Return the pods of an object that are not kept from running, and what is not known about them."""
    if stays_suspended(manifest):
        return CreatedPods(manifest, ())
    started = _start(manifest)
    described = list_counted_pods(started)
    if started.team is None or _CREATES_NOTHING.match(started.kind_name) or is_app_wrapper(started.object):
        return CreatedPods(started, described)
    find = _FINDERS.get((started.group, started.kind_name))
    if find is not None:
        return find(started, depth)._replace(described=described)
    known = [each for pod in started.pods for each in (*pod.containers, *pod.init_containers)]
    seen = {id(each.data.get("resources")) for each in known}
    labels = started.labels if (started.group, started.kind_name) in _COPIES_LABELS else {}
    return CreatedPods(started, described, list(_search(started, started.spec, labels, 1, seen)))


def _start(manifest: Manifest) -> Manifest:
    obj = manifest.object
    path = find_suspend_path(manifest)
    if path and is_suspended(manifest):
        obj = _set_at(obj, path, value=False)
    clusters = RAY_CLUSTERS.get(manifest.kind_name, ()) if manifest.group == "ray.io" else ()
    cluster = as_mapping(get_path(obj, *clusters)) if clusters else {}
    if value_of(cluster.get("enableInTreeAutoscaling")) is True:
        groups = [
            {**group, "replicas": group.get("maxReplicas", MAX_PODS)}
            for group in map(as_mapping, as_list(cluster.get("workerGroupSpecs")))
        ]
        obj = _set_at(obj, (*clusters, "workerGroupSpecs"), value=groups)
    if obj is manifest.object:
        return manifest
    return Manifest(obj, manifest.kind, manifest.cluster, manifest.read_catalog, manifest.team, manifest.find_config)


def _set_at(node: Mapping[str, Node], path: Sequence[str], *, value: Node) -> dict[str, Node]:
    below = _set_at(as_mapping(node.get(path[0])), path[1:], value=value) if len(path) > 1 else value
    return {**node, path[0]: below}


# Any kind.

_CREATES_NOTHING = lazy_pattern(
    r".*(?:Template|Runtime|Policy|Profile|Class|Quota)\Z|(?:Application|ApplicationSet|HelmRelease|Workload)\Z"
)
"""Kinds that have containers for the objects of others, or values for text that jobgen does not render."""
_COPIES_LABELS = frozenset(
    (("keda.sh", "ScaledJob"), ("kubeflow.org", "Notebook"), ("serving.kserve.io", "InferenceService"))
)
"""Kinds without a description whose controller gives their labels to what they create."""
_AMOUNTS = ("replicas", "minReplicas", "maxReplicas")
_SCALED_JOBS = 100
"""How many Jobs a ScaledJob of KEDA may have if it does not say."""


def _search(
    manifest: Manifest, top: Node, labels: Mapping[str, Node], times: int, seen: Iterable[int] = ()
) -> Iterator[CountedPod]:
    """Yield what requests devices in `resources`: a container, wherever it is. Fields above it say how many it has."""
    labels = {**labels, **as_mapping(get_path(top, "podMetadata", "labels"))}
    below: list[tuple[Node, Mapping[str, Node], Mapping[str, Node], int]] = [(top, {}, labels, times)]
    while below:
        node, spec, labels, count = below.pop()
        if isinstance(node, list):
            below += ((item, spec, labels, count) for item in reversed(node))
        if not isinstance(node, dict):
            continue
        labels = {**labels, **as_mapping(get_path(node, "metadata", "labels"))}
        count = min(count * _count(node), MAX_PODS)
        spec = node if "containers" in node or "nodeSelector" in node else spec
        resources = as_mapping(node.get("resources"))
        if id(resources) not in seen and "resources" in node:
            claims = spec.get("resourceClaims") if "claims" in resources else None
            alone = {**spec, "containers": [node], "initContainers": [], "resourceClaims": claims}
            pod = Pod({"metadata": {"labels": labels}, "spec": alone}, manifest)
            if any(pod.devices.values()):
                yield pod, count
        below += ((child, spec, labels, count) for key, child in reversed(node.items()) if key != "resources")


def _count(node: Mapping[str, Node]) -> int:
    """Return how many times what is below a node exists."""
    if "jobTargetRef" in node:
        most = as_integer(node.get("maxReplicaCount"))
        return _SCALED_JOBS if most is None else max(most, 0)
    if "template" in node and "parallelism" in node:
        return count_job_pods(node)
    amounts = [as_integer(node.get(name)) for name in _AMOUNTS]
    return max((max(each, 0) for each in amounts if each is not None), default=1)


# Spark: https://spark.apache.org/docs/latest/running-on-kubernetes.html

_SPARK_PLACES = ("nodeSelector", "affinity", "tolerations", "schedulerName")


def _find_spark_pods(manifest: Manifest, _depth: int) -> CreatedPods:
    """Return the driver and the executors. The operator lets fields of the object override `sparkConf`."""
    spec = manifest.spec if manifest.kind_name == "SparkApplication" else as_mapping(manifest.spec.get("template"))
    settings = {str(name): as_text(value) for name, value in as_mapping(spec.get("sparkConf")).items()}
    found: list[CountedPod] = []
    for role, count in (("driver", 1), ("executor", _count_executors(spec, settings))):
        given = as_mapping(spec.get(role))
        prefix = f"spark.{role}.resource."
        # A device has the name of a vendor, as in `nvidia.com/gpu`.
        limits: dict[str, Node] = {
            f"{settings.get(f'{prefix}{name}.vendor') or 'nvidia.com'}/{name}": amount
            for name, amount in (
                (key[len(prefix) : -7], value)
                for key, value in settings.items()
                if key.startswith(prefix) and key.endswith(".amount")
            )
        }
        gpu = as_mapping(given.get("gpu"))
        if as_text(gpu.get("name")):
            limits[as_text(gpu.get("name"))] = gpu.get("quantity")
        template = as_mapping(given.get("template"))
        start = f"spark.kubernetes.{role}.label."
        labels = {
            **as_mapping(get_path(template, "metadata", "labels")),
            **{key[len(start) :]: value for key, value in settings.items() if key.startswith(start)},
            **manifest.labels,
            **as_mapping(given.get("labels")),
        }
        main: Node = {"name": f"spark-kubernetes-{role}", "resources": {"limits": limits}}
        places = {name: given.get(name, spec.get(name)) for name in _SPARK_PLACES}
        pod: dict[str, Node] = {**places, "containers": [main]}
        others = {key: value for key, value in given.items() if key not in ("gpu", "labels")}
        found += _search(manifest, [pod, others], labels, count)
    return CreatedPods(manifest, (), found)


def _count_executors(spec: Mapping[str, Node], settings: Mapping[str, str]) -> int:
    given = as_integer(get_path(spec, "executor", "instances"))
    instances = given if given is not None else _to_number(settings.get("spark.executor.instances", ""))
    scaling = as_mapping(spec.get("dynamicAllocation"))
    enabled = value_of(scaling.get("enabled"))
    if enabled is True or (enabled is None and settings.get("spark.dynamicAllocation.enabled", "").lower() == "true"):
        most = as_integer(scaling.get("maxExecutors"))
        most = _to_number(settings.get("spark.dynamicAllocation.maxExecutors", "")) if most is None else most
        return MAX_PODS if most is None else max(most, instances or 0)
    return 1 if instances is None else max(instances, 0)


def _to_number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 10 else MAX_PODS if text.isdecimal() else None


# Workflows of Argo: https://argo-workflows.readthedocs.io/en/latest/fields/


class _Call(NamedTuple):
    """A step or task that runs a template."""

    target: str
    times: int | None
    """None if it is known only when it runs."""
    is_conditional: bool
    node: Node


class _Step(NamedTuple):
    """A group of parallel steps, or a task with those that it waits for."""

    name: str
    waits_for: frozenset[str]
    calls: Sequence[_Call]


_POD_FIELDS = ("nodeSelector", "affinity", "tolerations", "schedulerName", "volumes")
_CREATING = ("create", "apply", "replace", "patch")
_name = lazy_pattern(r"[A-Za-z0-9_-]+")


class _Workflow:
    """The templates of a Workflow, and which of them run together."""

    def __init__(self, manifest: Manifest, depth: int) -> None:
        self.manifest = manifest
        self.depth = depth
        self.spec = as_mapping(get_path(manifest.spec, "workflowSpec")) or manifest.spec
        self.parameters: Parameters = list_parameters(manifest.object)
        self.unknown: list[Unknown] = []
        defaults = as_mapping(self.spec.get("templateDefaults"))
        named = (_merge(defaults, as_mapping(each)) for each in as_list(self.spec.get("templates")))
        self.templates = {as_text(each.get("name")): each for each in named}
        self.limit = self._read_number(self.spec.get("parallelism"))

    def find_pods(self) -> CreatedPods:
        """Count the pods of each template that is reached, from those that call others to those that are called."""
        if as_text(self.spec.get("entrypoint")) not in self.templates:
            # What starts is not known, so every template counts once.
            steps: dict[str, list[_Step]] = {name: [] for name in self.templates}
            steps[""] = [_Step("", frozenset(), [_Call(name, 1, False, None) for name in self.templates])]
        else:
            steps = self._follow_calls()
        order = self._sort(steps)
        own: dict[str, CountedPod] = {}
        made: dict[str, list[CountedPod]] = {}
        weights: dict[str, int] = {}
        chosen: dict[str, list[tuple[str, int]]] = {}
        creating: set[str] = set()
        for name in order:
            if name and not steps[name]:
                own[name], made[name] = self._build_pods(self.templates[name])
                weights[name] = sum(sum(pod.devices.values()) * count for pod, count in (own[name], *made[name]))
            else:
                chosen[name] = self._choose(name, steps[name], weights, creating)
                weight = sum(count * weights[target] for target, count in chosen[name])
                weights[name] = min(weight, MAX_PODS)
            # `parallelism` limits the pods of a Workflow, not the objects that they create.
            if made.get(name) or any(target in creating for target, _ in chosen.get(name, ())):
                creating.add(name)
        counts = {"": 1}
        found: list[CountedPod] = []
        others: list[CountedPod] = []
        for name in reversed(order):
            count = self._share(name, counts.get(name, 0), weights[name])
            for target, times in chosen.get(name, ()):
                counts[target] = min(counts.get(target, 0) + count * times, MAX_PODS)
            if name in own and count:
                found.append((own[name][0], count))
                others += ((pod, min(times * count, MAX_PODS)) for pod, times in made[name])
        return CreatedPods(self.manifest, (), [*self._limit(found), *others], self.unknown)

    def _follow_calls(self) -> dict[str, list[_Step]]:
        """Return the steps of each template that is reached; the empty name is the Workflow itself."""
        hooks = [as_mapping(each).get("template") for each in as_mapping(self.spec.get("hooks")).values()]
        roots = ([self.spec.get("entrypoint"), *hooks], [self.spec.get("onExit")])
        steps = {
            "": [
                _Step("", frozenset(), [_Call(as_text(each), 1, False, each) for each in several if as_text(each)])
                for several in roots
            ]
        }
        left = [""]
        while left:
            for call in (call for step in steps[left.pop()] for call in step.calls):
                if call.target in self.templates and call.target not in steps:
                    steps[call.target] = list(self._read_steps(self.templates[call.target]))
                    left.append(call.target)
        return steps

    def _read_steps(self, template: Mapping[str, Node]) -> Iterator[_Step]:
        for group in as_list(template.get("steps")):
            several = as_list(group) or [group]
            yield _Step("", frozenset(), [call for each in several for call in self._read_calls(as_mapping(each))])
        tasks = [as_mapping(each) for each in as_list(get_path(template, "dag", "tasks"))]
        names = {as_text(each.get("name")) for each in tasks}
        for each in tasks:
            waits = {*map(as_text, as_list(each.get("dependencies"))), *_name.findall(as_text(each.get("depends")))}
            yield _Step(as_text(each.get("name")), frozenset(waits & names), list(self._read_calls(each)))

    def _read_calls(self, step: Mapping[str, Node]) -> Iterator[_Call]:
        target = as_text(step.get("template"))
        if isinstance(step.get("inline"), dict):
            target = f"\0{len(self.templates)}"
            self.templates[target] = as_mapping(step.get("inline"))
        when = fill(as_text(step.get("when")), self.parameters)
        node = next((step[name] for name in ("withParam", "name", "template") if step.get(name) is not None), None)
        count = self._count_items(step)
        if when != "false":
            yield _Call(target, count, TEMPLATE_TEXT in when, node)
        hooks = [as_mapping(each).get("template") for each in as_mapping(step.get("hooks")).values()]
        for hook in (*hooks, step.get("onExit")):
            if as_text(hook):
                yield _Call(as_text(hook), count, True, hook)

    def _count_items(self, step: Mapping[str, Node]) -> int | None:
        """Return how many times a step runs; None if that is known only later."""
        if isinstance(step.get("withItems"), list):
            return len(as_list(step.get("withItems")))
        if isinstance(step.get("withSequence"), dict):
            sequence = as_mapping(step.get("withSequence"))
            if sequence.get("count") is not None:
                return self._read_number(sequence.get("count"))
            first = self._read_number(sequence.get("start", 0))
            last = self._read_number(sequence.get("end"))
            return None if first is None or last is None else min(abs(last - first) + 1, MAX_PODS)
        if step.get("withParam") is not None:
            text = fill(as_text(step.get("withParam")), self.parameters)
            found = read_embedded(f"items: {text}") if text.lstrip().startswith("[") else None
            items = found[0].get("items") if found else None
            return len(items) if isinstance(items, list) else None
        return 1

    def _read_number(self, node: Node) -> int | None:
        number = as_integer(node)
        return max(number, 0) if number is not None else _to_number(fill(as_text(node), self.parameters).strip())

    def _sort(self, steps: dict[str, list[_Step]]) -> list[str]:
        """Return the names of templates after those that they call; a call that leads back is left out."""
        order: list[str] = []
        state = {"": 1}
        path = [("", iter([call for step in steps[""] for call in step.calls]))]
        while path:
            name, calls = path[-1]
            for call in calls:
                if call.target in steps and call.target not in state:
                    state[call.target] = 1
                    path.append((call.target, iter([each for step in steps[call.target] for each in step.calls])))
                    break
                if state.get(call.target) == 1:
                    self.unknown.append((call.node, f"template `{call.target}` calls itself"))
            else:
                state[name] = 2
                order.append(name)
                path.pop()
        return order

    def _choose(
        self, name: str, steps: Sequence[_Step], weights: Mapping[str, int], creating: set[str]
    ) -> list[tuple[str, int]]:
        """Return the calls that run together and request most."""
        template = self.templates.get(name, {})
        limits = (self.limit, self._read_number(template.get("parallelism")))
        limit = min((each for each in limits if each), default=None)
        best: list[tuple[str, int]] = []
        most = 0
        for calls in _group(steps, weights) if "dag" in template else [step.calls for step in steps]:
            heavy = sorted((call for call in calls if weights.get(call.target)), key=lambda each: -weights[each.target])
            conditional = [call for call in heavy if call.is_conditional]
            if len(conditional) > 1:
                self.unknown.append((conditional[1].node, "it is not known which of the steps with conditions run"))
            left, group = limit, []
            for call in (each for each in heavy if not each.is_conditional or each is conditional[0]):
                bound = None if call.target in creating else left
                if call.times is None and bound is None:
                    self.unknown.append((call.node, "it is not known how many times the step runs"))
                count = min(each for each in (call.times, bound, MAX_PODS) if each is not None)
                count = 1 if call.times is None and bound is None else count
                left = None if left is None else max(left - count, 0)
                group.append((call.target, count))
            weight = sum(count * weights[target] for target, count in group)
            if weight > most:
                best, most = group, weight
        return best

    def _share(self, name: str, count: int, weight: int) -> int:
        """Return how many times a template runs at the same time if it waits for a lock."""
        lock = as_mapping(self.templates.get(name, {}).get("synchronization"))
        if count > 1 and weight and ("semaphore" in lock or "semaphores" in lock):
            node = self.templates[name].get("name")
            self.unknown.append((node, "it is not known how many pods the semaphore lets run"))
        return min(count, 1) if lock else count

    def _limit(self, pods: Sequence[CountedPod]) -> Iterator[CountedPod]:
        left = self.limit or MAX_PODS
        for pod, count in sorted(pods, key=lambda each: -sum(each[0].devices.values())):
            if any(pod.devices.values()) and left:
                yield pod, min(count, left)
                left -= min(count, left)

    def _build_pods(self, template: Mapping[str, Node]) -> tuple[CountedPod, list[CountedPod]]:
        """Return the pod of a template, and the pods of the object that it creates."""
        main = {**as_mapping(template.get("container")), **as_mapping(template.get("script")), "name": "main"}
        several = as_list(get_path(template, "containerSet", "containers"))
        spec: Mapping[str, Node] = {
            **{name: template.get(name, self.spec.get(name)) for name in _POD_FIELDS},
            "containers": [*(several or [main]), *as_list(template.get("sidecars"))],
            "initContainers": list(as_list(template.get("initContainers"))),
        }
        for node in (self.spec.get("podSpecPatch"), template.get("podSpecPatch")):
            documents = read_embedded(fill(as_text(node), self.parameters)) if as_text(node) else []
            if documents is None:
                self.unknown.append((node, "`podSpecPatch` is text that is known only when it runs"))
            for document in documents or ():
                spec = _merge(spec, document)
        for field in ("containers", "initContainers"):
            spec = {**spec, field: [self._fill_amounts(each, template) for each in as_list(spec.get(field))]}
        labels = {
            **as_mapping(get_path(self.spec, "podMetadata", "labels")),
            **as_mapping(get_path(template, "metadata", "labels")),
        }
        pod = Pod({"metadata": {"labels": labels}, "spec": spec}, self.manifest)
        return (pod, 1), list(self._find_created(as_mapping(template.get("resource"))))

    def _fill_amounts(self, container: Node, template: Mapping[str, Node]) -> Node:
        resources = as_mapping(as_mapping(container).get("resources"))
        filled: dict[str, Node] = {}
        for field in ("limits", "requests"):
            amounts = {
                name: fill(as_text(each), self.parameters) or each
                for name, each in as_mapping(resources.get(field)).items()
            }
            for name, amount in amounts.items():
                if is_device(str(name)) and TEMPLATE_TEXT in as_text(amount):
                    self.unknown.append(
                        (template.get("name"), f"`{name}: {as_text(amount)}` is known only when it runs")
                    )
            filled[field] = amounts
        return {**as_mapping(container), "resources": {**resources, **filled}}

    def _find_created(self, resource: Mapping[str, Node]) -> Iterator[CountedPod]:
        node = resource.get("manifest")
        if as_text(resource.get("action")) not in _CREATING or not as_text(node):
            return
        documents = read_embedded(fill(as_text(node), self.parameters)) if self.depth < MAX_DEPTH else None
        if documents is None:
            self.unknown.append((node, "`manifest` is text that is known only when it runs"))
        for document in documents or ():
            same = self.manifest
            inner = Manifest(document, None, same.cluster, same.read_catalog, same.team, same.find_config)
            created = find_created_pods(inner, self.depth + 1)
            self.unknown += ((node, text) for _, text in created.unknown)
            yield from created.pods


def _group(steps: Sequence[_Step], weights: Mapping[str, int]) -> Iterator[list[_Call]]:
    """Yield tasks of which none waits for another: they have as many accelerated tasks before them, or after them."""
    after: dict[str, set[str]] = {step.name: set() for step in steps}
    for step in steps:
        for name in step.waits_for:
            after[name].add(step.name)
    before = {step.name: set(step.waits_for) for step in steps}
    heavy = {step.name for step in steps if any(weights.get(call.target) for call in step.calls)}
    for edges, back in ((before, after), (after, before)):
        levels = dict.fromkeys(edges, 0)
        missing = {name: len(several) for name, several in edges.items()}
        ready = [name for name, count in missing.items() if not count]
        while ready:
            name = ready.pop()
            for other in back[name]:
                levels[other] = max(levels[other], levels[name] + (name in heavy))
                missing[other] -= 1
                if not missing[other]:
                    ready.append(other)
        grouped: dict[int, list[_Call]] = {}
        for step in steps:
            grouped.setdefault(levels[step.name], []).extend(step.calls)
        yield from grouped.values()


def _merge(base: Mapping[str, Node], patch: Mapping[str, Node]) -> Mapping[str, Node]:
    """Return a part of a pod with a patch: mappings are merged, and containers by their names."""
    merged = dict(base)
    for key, value in patch.items():
        old = merged.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            merged[key] = dict(_merge(old, value))
        elif key in ("containers", "initContainers") and isinstance(value, list) and isinstance(old, list):
            named = {as_text(as_mapping(each).get("name")): as_mapping(each) for each in old}
            for each in map(as_mapping, value):
                name = as_text(each.get("name"))
                named[name] = _merge(named.get(name, {}), each)
            merged[key] = [dict(each) for each in named.values()]
        else:
            merged[key] = value
    return merged


def _find_workflow_pods(manifest: Manifest, depth: int) -> CreatedPods:
    return _Workflow(manifest, depth).find_pods()


_FINDERS: Mapping[tuple[str, str], Callable[[Manifest, int], CreatedPods]] = {
    ("argoproj.io", "CronWorkflow"): _find_workflow_pods,
    ("argoproj.io", "Workflow"): _find_workflow_pods,
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"): _find_spark_pods,
    ("sparkoperator.k8s.io", "SparkApplication"): _find_spark_pods,
}
