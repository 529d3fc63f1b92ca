"""The pods of a Workflow of Argo that may run together: its steps, tasks, hooks, and the objects that they create."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from jobgen.check.counted_pods import MAX_PODS, CountedPod, CountObject, CreatedPods, Unknown, read_count
from jobgen.k8s.devices import is_device
from jobgen.k8s.embedded import (
    TEMPLATE_TEXT,
    Parameters,
    fill,
    find_resource_text,
    is_creating,
    list_parameters,
    read_embedded,
)
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest, Pod
from jobgen.model.budget import Work, charge
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Derived, Place, find_at

# Workflows of Argo: https://argo-workflows.readthedocs.io/en/latest/fields/


class _Call(NamedTuple):
    """A step or task that runs a template."""

    target: str
    times: int | None
    """None if it is known only when it runs."""
    is_conditional: bool
    place: Place


class _Step(NamedTuple):
    """A group of parallel steps, or a task with those that it waits for."""

    name: str
    waits_for: frozenset[str]
    calls: Sequence[_Call]


_POD_FIELDS = ("nodeSelector", "affinity", "tolerations", "schedulerName", "volumes")
_name = lazy_pattern(r"[A-Za-z0-9_-]+")
_END = lazy_pattern(r"(?i)succe|compl|fail|error|finish|done|stopped|terminat")
"""What a condition looks for that an object has only when its pods have ended."""
_RUNNING = lazy_pattern(r"(?i)active|running|ready|start")


class Workflow:
    """The templates of a Workflow, and which of them run together."""

    def __init__(self, manifest: Manifest, count_object: CountObject | None) -> None:
        self.manifest = manifest
        self.count_object = count_object
        """Counts the pods of the objects that it creates; None if too many are inside of each other."""
        self.spec = as_mapping(get_path(manifest.spec, "workflowSpec")) or manifest.spec
        self.parameters: Parameters = list_parameters(manifest.object)
        self.unknown: list[Unknown] = []
        self.refused: list[Unknown] = []
        self.lasting: set[str] = set()
        """The templates that end while the objects that they have created go on."""
        self.daemons: set[str] = set()
        """The templates whose pods go on until the template that calls them ends."""
        self.outlives_runs = False
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
            self._note_lasting(name, steps[name], creates=bool(made.get(name)))
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
        return CreatedPods(
            self.manifest,
            (),
            [*self._limit(found), *others],
            self.unknown,
            refused=self.refused,
            outlives_runs=self.outlives_runs,
        )

    def _note_lasting(self, name: str, steps: Sequence[_Step], *, creates: bool) -> None:
        """Note what goes on when a template has ended."""
        template = self.templates.get(name, {})
        is_lasting = any(call.target in self.lasting for step in steps for call in step.calls)
        if is_lasting or (creates and not _waits_for_end(template)):
            self.lasting.add(name)
        elif template.get("daemon") is True:
            self.daemons.add(name)

    def _follow_calls(self) -> dict[str, list[_Step]]:
        """Return the steps of each template that is reached; the empty name is the Workflow itself."""
        hooks = [find_at(each, "template") for each in as_mapping(self.spec.get("hooks")).values()]
        roots = ([find_at(self.spec, "entrypoint"), *hooks], [find_at(self.spec, "onExit")])
        calls = [[_Call(as_text(each.node), 1, False, each) for each in several if each] for several in roots]
        steps = {"": [_Step("", frozenset(), [call for call in several if call.target]) for several in calls]}
        left = [""]
        while left:
            for call in (call for step in steps[left.pop()] for call in step.calls):
                if call.target in self.templates and call.target not in steps:
                    steps[call.target] = list(self._read_steps(self.templates[call.target]))
                    left.append(call.target)
        return steps

    def _read_steps(self, template: Mapping[str, Plain]) -> Iterator[_Step]:
        for group in as_list(template.get("steps")):
            several = as_list(group) or [group]
            yield _Step("", frozenset(), [call for each in several for call in self._read_calls(as_mapping(each))])
        tasks = [as_mapping(each) for each in as_list(get_path(template, "dag", "tasks"))]
        names = {as_text(each.get("name")) for each in tasks}
        for each in tasks:
            waits = {*map(as_text, as_list(each.get("dependencies"))), *_name.findall(as_text(each.get("depends")))}
            yield _Step(as_text(each.get("name")), frozenset(waits & names), list(self._read_calls(each)))

    def _read_calls(self, step: Mapping[str, Plain]) -> Iterator[_Call]:
        target = as_text(step.get("template"))
        if isinstance(step.get("inline"), dict):
            target = f"\0{len(self.templates)}"
            self.templates[target] = as_mapping(step.get("inline"))
        when = fill(as_text(step.get("when")), self.parameters)
        named = next((name for name in ("withParam", "name", "template") if step.get(name) is not None), None)
        place = None if named is None else At(step, named)
        count = self._count_items(step)
        if when != "false":
            yield _Call(target, count, TEMPLATE_TEXT in when, place)
        hooks = [find_at(each, "template") for each in as_mapping(step.get("hooks")).values()]
        for hook in (*hooks, find_at(step, "onExit")):
            if hook and as_text(hook.node):
                yield _Call(as_text(hook.node), count, True, hook)

    def _count_items(self, step: Mapping[str, Plain]) -> int | None:
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

    def _read_number(self, node: Plain) -> int | None:
        number = as_integer(node)
        return max(number, 0) if number is not None else read_count(fill(as_text(node), self.parameters).strip())

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
                    self.unknown.append((call.place, f"template `{call.target}` calls itself"))
            else:
                state[name] = 2
                order.append(name)
                path.pop()
        return order

    def _choose(
        self, name: str, steps: Sequence[_Step], weights: Mapping[str, int], creating: set[str]
    ) -> list[tuple[str, int]]:
        """Return the calls that run together and request most, also those that go on when their step has ended."""
        kept = self.lasting | self.daemons
        template = self.templates.get(name, {})
        limits = (self.limit, self._read_number(template.get("parallelism")))
        limit = min((each for each in limits if each), default=None)
        best: list[tuple[str, int]] = []
        most = 0
        orders: Iterable[Sequence[Sequence[_Call]]]
        orders = _group(steps, weights) if "dag" in template else [[step.calls for step in steps]]
        for calls in (calls for groups in orders for calls in _add_kept(groups, kept)):
            heavy = sorted((call for call in calls if weights.get(call.target)), key=lambda each: -weights[each.target])
            conditional = [call for call in heavy if call.is_conditional]
            if len(conditional) > 1:
                self.unknown.append((conditional[1].place, "it is not known which of the steps with conditions run"))
            left, group = limit, []
            for call in (each for each in heavy if not each.is_conditional or each is conditional[0]):
                bound = None if call.target in creating else left
                if call.times is None and bound is None:
                    self.unknown.append((call.place, "it is not known how many times the step runs"))
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
        if "semaphore" in lock or "semaphores" in lock:
            limit = self._read_semaphore(lock)
            if limit is not None:
                return min(count, limit)
            if count > 1 and weight:
                place = find_at(self.templates[name], "name")
                self.unknown.append((place, "it is not known how many pods the semaphore lets run"))
            return min(count, 1)
        # A mutex whose name is a parameter of the template may be another one each time.
        mutexes = [as_mapping(each) for each in (lock.get("mutex"), *as_list(lock.get("mutexes")))]
        names = [fill(as_text(each.get("name")), self.parameters) for each in mutexes]
        return min(count, 1) if any(each and TEMPLATE_TEXT not in each for each in names) else count

    def _read_semaphore(self, lock: Mapping[str, Plain]) -> int | None:
        """Return the limit of a semaphore whose ConfigMap is in the repository; the least of several."""
        limits: list[int] = []
        for each in (lock.get("semaphore"), *as_list(lock.get("semaphores"))):
            reference = as_mapping(get_path(each, "configMapKeyRef"))
            namespace = as_text(as_mapping(each).get("namespace")) or self.manifest.namespace
            data = self.manifest.find_config(namespace, as_text(reference.get("name"))) if reference else None
            limit = read_count(as_text(as_mapping(data).get(as_text(reference.get("key")))))
            limits += [] if limit is None else [limit]
        return min(limits, default=None)

    def _limit(self, pods: Sequence[CountedPod]) -> Iterator[CountedPod]:
        left = self.limit or MAX_PODS
        for pod, count in sorted(pods, key=lambda each: -sum(each[0].devices.values())):
            if any(pod.devices.values()) and left:
                yield pod, min(count, left)
                left -= min(count, left)

    def _build_pods(self, template: Mapping[str, Plain]) -> tuple[CountedPod, list[CountedPod]]:
        """Return the pod of a template, and the pods of the object that it creates."""
        main = {**as_mapping(template.get("container")), **as_mapping(template.get("script")), "name": "main"}
        several = as_list(get_path(template, "containerSet", "containers"))
        spec: Mapping[str, Plain] = {
            **{name: template.get(name, self.spec.get(name)) for name in _POD_FIELDS},
            "containers": [*(several or [main]), *as_list(template.get("sidecars"))],
            "initContainers": list(as_list(template.get("initContainers"))),
        }
        for holder in (self.spec, template):
            patch = as_text(holder.get("podSpecPatch"))
            documents = read_embedded(fill(patch, self.parameters)) if patch else []
            if documents is None:
                message = "`podSpecPatch` is text that is known only when it runs"
                self.unknown.append((At(holder, "podSpecPatch"), message))
            for document in documents or ():
                spec = _merge(spec, document)
        for field in ("containers", "initContainers"):
            spec = {**spec, field: [self._fill_amounts(each, template) for each in as_list(spec.get(field))]}
        labels = {
            **as_mapping(get_path(self.spec, "podMetadata", "labels")),
            **as_mapping(get_path(template, "metadata", "labels")),
        }
        pod = Pod({"metadata": {"labels": labels}, "spec": spec}, self.manifest)
        return (pod, 1), list(self._find_created(template))

    def _fill_amounts(self, container: Plain, template: Mapping[str, Plain]) -> Plain:
        resources = as_mapping(as_mapping(container).get("resources"))
        filled: dict[str, Plain] = {}
        for field in ("limits", "requests"):
            amounts = {
                name: fill(as_text(each), self.parameters) or each
                for name, each in as_mapping(resources.get(field)).items()
            }
            for name, amount in amounts.items():
                if is_device(str(name)) and TEMPLATE_TEXT in as_text(amount):
                    self.unknown.append(
                        (find_at(template, "name"), f"`{name}: {as_text(amount)}` is known only when it runs")
                    )
            filled[field] = Derived(amounts, as_mapping(resources.get(field)))
        return {**as_mapping(container), "resources": {**resources, **filled}}

    def _find_created(self, template: Mapping[str, Plain]) -> Iterator[CountedPod]:
        resource = as_mapping(template.get("resource"))
        if not is_creating(resource, self.parameters):
            return
        field, place = find_resource_text(resource)
        node = place.node
        if node is None:
            return
        text = fill(as_text(node), self.parameters)
        documents = read_embedded(text) if text and self.count_object is not None else None
        if documents is None:
            self.unknown.append((place, f"`{field}` is text that is known only when it runs"))
        for document in documents or ():
            assert self.count_object is not None
            created = self.count_object(document)
            self.unknown += ((place, text) for _, text in created.unknown)
            self.refused += ((place, text) for _, text in created.refused)
            # With the same name each time, there is one object.
            is_new = "generateName" in as_mapping(document.get("metadata")) or TEMPLATE_TEXT in as_text(
                get_path(document, "metadata", "name")
            )
            self.outlives_runs |= is_new and bool(created.pods) and not _waits_for_end(template)
            times = self._count_attempts(template) if is_new else 1
            yield from ((pod, min(count * times, MAX_PODS)) for pod, count in created.pods)

    def _count_attempts(self, template: Mapping[str, Plain]) -> int:
        """Return how many objects a template creates that go on while it tries again."""
        failure = get_path(template, "resource", "failureCondition")
        if not isinstance(template.get("retryStrategy"), dict) or not as_text(failure) or _names_end(failure):
            return 1
        limit = self._read_number(get_path(template, "retryStrategy", "limit"))
        return MAX_PODS if limit is None else min(limit + 1, MAX_PODS)


def _group(steps: Sequence[_Step], weights: Mapping[str, int]) -> Iterator[list[list[_Call]]]:
    """Yield groups of tasks of which none waits for another, in the order in which they run, in two ways.

    They have as many accelerated tasks before them, or after them.
    """
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
        yield [grouped[level] for level in sorted(grouped, reverse=edges is after)]


def _add_kept(groups: Sequence[Sequence[_Call]], kept: set[str]) -> Iterator[list[_Call]]:
    """Yield each group with the calls of those before it that go on."""
    before: list[_Call] = []
    for group in groups:
        charge(Work.WORKFLOW, len(before))
        yield [*group, *before]
        before += (call for call in group if call.target in kept)
    yield before


def _waits_for_end(template: Mapping[str, Plain]) -> bool:
    """Return True if a template that creates an object ends when the object does."""
    success, failure = (get_path(template, "resource", f"{name}Condition") for name in ("success", "failure"))
    return _names_end(success) and (not as_text(failure) or _names_end(failure))


def _names_end(condition: Plain) -> bool:
    text = as_text(condition)
    return _END.search(text) is not None and _RUNNING.search(text) is None


def _merge(base: Mapping[str, Plain], patch: Mapping[str, Plain]) -> Mapping[str, Plain]:
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
