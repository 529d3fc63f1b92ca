"""What the webhooks of Volcano reject: Jobs, CronJobs, Queues, PodGroups and HyperNodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import enumerate_mappings, is_empty, is_set, iter_mappings, list_text_places
from jobgen.check.admission.names import DNS_LABEL, DNS_SUBDOMAIN, is_dns_label, is_dns_subdomain
from jobgen.check.operators.checks import (
    CHILD_REJECTED,
    NEVER_STARTS,
    REJECTED,
    Check,
    Checks,
    FindViolations,
    Violations,
    check_bounds,
    check_schedule,
    check_time_zone,
    field_place,
    find_written,
    full_name,
    given_name,
    is_since,
    name_place,
    not_one_of,
    out_of_bounds,
    spec_place,
)
from jobgen.check.rules import WARNING, Violation
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, find_nodes, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Derived, Gathered, Place, find_at
from jobgen.model.quantity import to_milli
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean

OPERATOR = "volcano"
_MAX_NAME = 63
_EVENTS = ["*", "PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed", "JobUpdated"]
_ACTIONS = "AbortJob RestartJob RestartTask RestartPod RestartPartition TerminateJob CompleteJob ResumeJob".split()
_MEANT_ACTIONS = {"Restart": "RestartJob", "Abort": "AbortJob", "Terminate": "TerminateJob", "Complete": "CompleteJob"}
# The first version with an action or a plugin, if that is not the first of all.
_ADDED = {"RestartPod": "1.11", "RestartPartition": "1.14", "hcclrank": "1.13", "ray": "1.13"}
# The webhook adds the plugin `svc` for these.
_NEED_SERVICE = ("tensorflow", "mpi", "pytorch", "ray")
# The arguments of plugins that name tasks.
_ROLES = frozenset(("chief", "evaluator", "master", "ps", "worker"))
_MAX_CRON_JOB_NAME = 52
# The name of a Job ends in a time of this length.
_TIME = "-" + "0" * 10
_HIERARCHY, _WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
# Resources of nodes and pods that are not counted in whole numbers.
_DIVISIBLE = ("cpu", "memory", "ephemeral-storage", "storage")


def _check_tiers(topology: Plain) -> Violations:
    """Yield a violation if a network topology names its highest tier twice."""
    found = as_mapping(topology)
    if is_set(found.get("highestTierAllowed")) and as_text(found.get("highestTierName")):
        message = "`highestTierAllowed` and `highestTierName` are mutually exclusive; remove one of them"
        yield Violation(At(found, "highestTierName", is_key=True), message)


def _check_topologies(manifest: Manifest) -> Violations:
    for path in (("networkTopology",), ("subGroupPolicy", "*", "networkTopology")):
        for topology in find_nodes(manifest.spec, path):
            yield from _check_tiers(topology)


def _check_network_topology(manifest: Manifest) -> Violations:
    return _check_tiers(manifest.spec.get("networkTopology"))


def _check_members(manifest: Manifest) -> Violations:
    """Check the members of a HyperNode as the schema of later versions does."""
    if is_empty(manifest.spec.get("members")):
        yield Violation(spec_place(manifest, "members"), "a HyperNode requires `members`; add one")
    for index, member in enumerate_mappings(manifest.spec.get("members")):
        selector = as_mapping(member.get("selector"))
        names = [name for name in ("exactMatch", "regexMatch", "labelMatch") if is_set(selector.get(name))]
        if len(names) != 1:
            key = find_at(member, "selector", is_key=True) or At(manifest.spec["members"], index)
            place = At(selector, names[1], is_key=True) if names else key
            yield Violation(place, "`selector` requires one of `exactMatch`, `regexMatch` and `labelMatch`; set one")


def _check_absent_members(manifest: Manifest) -> Violations:
    if not is_set(manifest.spec.get("members")):
        yield Violation(spec_place(manifest, "members"), "a HyperNode requires `members`; add one")


def _check_patterns(manifest: Manifest) -> Violations:
    # Imported late, because few repositories have HyperNodes.
    from jobgen.check.cel import available
    from jobgen.check.cel.text_format import fault

    for member in iter_mappings(manifest.spec.get("members")):
        pattern = as_text(get_path(member, "selector", "regexMatch", "pattern"))
        reason = fault(pattern) if pattern and not available() else ""
        if reason:
            place = find_at(member, "selector", "regexMatch", "pattern")
            yield Violation(place, Sentence("`{}` is not a regular expression: {}; write a valid one", pattern, reason))


class _Task(NamedTuple):
    """A task with the defaults that the webhook sets."""

    data: Mapping[str, Plain]
    name: str
    replicas: int
    pod: Mapping[str, Plain]
    """The spec of its pods."""
    place: At
    """The place of the whole task."""


def _list_tasks(manifest: Manifest) -> list[_Task]:
    return [
        _Task(
            item,
            as_text(item.get("name")) or f"default{index}",
            as_integer(item.get("replicas")) or 0,
            as_mapping(as_mapping(item.get("template")).get("spec")),
            At(manifest.spec["tasks"], place),
        )
        for index, (place, item) in enumerate(enumerate_mappings(manifest.spec.get("tasks")))
    ]


def _since(manifest: Manifest, known: list[str]) -> list[str]:
    return [name for name in known if is_since(manifest, OPERATOR, _ADDED.get(name, ""))]


def _check_tasks(manifest: Manifest) -> Violations:
    if not is_set(manifest.spec.get("tasks")):
        yield Violation(spec_place(manifest, "tasks"), "a Job of Volcano requires `tasks`; add one")
    seen: set[str] = set()
    for task in _list_tasks(manifest):
        if is_empty(task.data.get("template")):
            place = find_at(task.data, "template", is_key=True) or task.place
            yield Violation(
                place, Sentence("task `{}` requires `template` with the containers of its pods; set it", task.name)
            )
        if task.name in seen:
            place = field_place(task.data, "name") or task.place
            yield Violation(place, Sentence("two tasks are named `{}`; rename one of them", task.name))
        seen.add(task.name)


def _check_templates(manifest: Manifest) -> Violations:
    """Check that tasks have pods; what is in their templates is validated as pods are."""
    for task in _list_tasks(manifest):
        if not isinstance(task.data.get("template"), dict):
            place = find_at(task.data, "template", is_key=True) or task.place
            yield Violation(
                place, Sentence("task `{}` requires `template` with the containers of its pods; set it", task.name)
            )


def _check_old_tasks(manifest: Manifest) -> Violations:
    """Check what the schema checks in later versions."""
    if manifest.spec.get("tasks") == []:
        yield Violation(
            At(manifest.spec, "tasks", is_key=True), "a Job of Volcano requires at least one item in `tasks`"
        )
    for task in _list_tasks(manifest):
        for name in ("replicas", "minAvailable"):
            yield from out_of_bounds(task.data, name, 0)
        if not is_dns_label(task.name):
            yield Violation(
                At(task.data, "name"), Sentence("`{}` is not a valid name of a task; {}", task.name, DNS_LABEL)
            )
    for name in ("minAvailable", "maxRetry", "ttlSecondsAfterFinished"):
        yield from out_of_bounds(manifest.spec, name, 0)


def _check_min_available(manifest: Manifest) -> Violations:
    tasks = _list_tasks(manifest)
    for task in tasks:
        least = as_integer(task.data.get("minAvailable"))
        if least is not None and least > task.replicas:
            message = Sentence(
                "`minAvailable` of task `{}` is `{}`, but it has `replicas: {}`", task.name, least, task.replicas
            )
            yield Violation(At(task.data, "minAvailable"), Sentence("{}; use at most {}", message, task.replicas))
    total, least = sum(task.replicas for task in tasks), as_integer(manifest.spec.get("minAvailable"))
    if least is not None and tasks and least > total:
        message = Sentence(
            "`minAvailable` is `{}`, but all tasks together have {} replicas; use at most {}", least, total, total
        )
        yield Violation(At(manifest.spec, "minAvailable"), message)


def _check_policies(manifest: Manifest) -> Violations:
    for holder in (manifest.spec, *(task.data for task in _list_tasks(manifest))):
        events: dict[str, At] = {}
        codes: set[int] = set()
        for index, policy in enumerate_mappings(holder.get("policies")):
            yield from _check_policy(manifest, At(holder["policies"], index), policy, events, codes)
        if "*" in events and len(events) > 1:
            yield Violation(events["*"], "`*` stands for all events, and another policy names one; remove one of them")


def _check_policy(
    manifest: Manifest, place: At, policy: Mapping[str, Plain], seen: dict[str, At], codes: set[int]
) -> Violations:
    """Check one policy; `seen` and `codes` are the events and exit codes of earlier ones."""
    events = dict(list_text_places(policy.get("events")))
    if event := as_text(policy.get("event")):
        events[event] = At(policy, "event")
    code = as_integer(policy.get("exitCode"))
    if events and code is not None:
        yield Violation(At(policy, "exitCode"), "`event` and `exitCode` are mutually exclusive; write two policies")
    elif code is not None:
        if not code:
            yield Violation(At(policy, "exitCode"), "`exitCode` is `0`, which means success; use another code")
        elif code in codes:
            yield Violation(
                At(policy, "exitCode"),
                Sentence("`exitCode: {}` is also in an earlier policy; remove one of them", code),
            )
        codes.add(code)
    elif not events:
        yield Violation(place, "a policy requires `event` or `exitCode`; set one")
    else:
        yield from _check_events(manifest, policy, events, seen)
        seen.update(events)


def _check_events(
    manifest: Manifest, policy: Mapping[str, Plain], events: Mapping[str, At], seen: Mapping[str, At]
) -> Violations:
    # The schema of later versions lists all events, and those that are not for users, too.
    has_schema = is_since(manifest, OPERATOR, "1.11")
    for event, place in events.items():
        if event in ("PodRunning", "OutOfSync", "CommandIssued") or not has_schema:
            yield from not_one_of(place.holder, place.key, _EVENTS, name="event")
        if event in seen:
            yield Violation(place, Sentence("event `{}` is also in an earlier policy; remove one of them", event))
    known = _since(manifest, _ACTIONS)
    if is_set(policy.get("action")):
        # The pods of a distributed job start again together: `Restart` is none of the others.
        yield from not_one_of(policy, "action", known, allow_empty=False, meant=_MEANT_ACTIONS)
    else:
        yield Violation(
            policy, Sentence("a policy for an event requires `action`; set it to one such as `{}`", known[1])
        )


def _check_plugins(manifest: Manifest) -> Violations:
    known = _since(manifest, "env ssh svc tensorflow mpi pytorch hcclrank ray".split())
    plugins = as_mapping(manifest.spec.get("plugins"))
    for name in plugins:
        if name not in known:
            yield Violation(
                At(plugins, name, is_key=True),
                Sentence("Volcano has no plugin `{}`{}", name, did_you_mean(name, known)),
            )


def _check_mpi_task(role: str) -> FindViolations:
    """Return a check that there is a task for a role of the plugin `mpi`."""

    def find(manifest: Manifest) -> Violations:
        plugins = as_mapping(manifest.spec.get("plugins"))
        names = [task.name for task in _list_tasks(manifest)]
        if "mpi" in plugins and names and (wanted := find_argument(plugins["mpi"], role)) not in names:
            message = f"the plugin `mpi` requires a task `{wanted}`; add it, or name one with `--{role}=`"
            yield Violation(At(plugins, "mpi", is_key=True), message + did_you_mean(wanted, names))

    return find


def _check_named_tasks(manifest: Manifest) -> Violations:
    """Check that there are tasks with the names that arguments of the plugin `pytorch` or `tensorflow` say."""
    plugins = as_mapping(manifest.spec.get("plugins"))
    names = [task.name for task in _list_tasks(manifest)]
    for plugin in ("pytorch", "tensorflow"):
        for text, place in list_text_places(plugins.get(plugin)):
            flag, _, wanted = text.lstrip("-").partition("=")
            if flag in _ROLES and wanted and names and wanted not in names:
                message = f"no task is called `{wanted}`, which the plugin `{plugin}` sets the ranks of"
                advice = did_you_mean(wanted, names) or f"; write the name of a task in `--{flag}=`"
                yield Violation(place, message + advice, severity=WARNING)


def find_argument(arguments: Plain, name: str) -> str:
    """Return the value of a flag, or its default, which is its name."""
    texts = [as_text(node) for node in as_list(arguments)]
    for index, text in enumerate(texts):
        flag, equals, value = text.lstrip("-").partition("=")
        if text.startswith("-") and flag == name:
            return value if equals else "".join(texts[index + 1 : index + 2])
    return name


def _check_volumes(manifest: Manifest) -> Violations:
    seen: set[str] = set()
    for index, volume in enumerate_mappings(manifest.spec.get("volumes")):
        path, claim = as_text(volume.get("mountPath")), as_text(volume.get("volumeClaimName"))
        if path and path in seen:
            yield Violation(
                At(volume, "mountPath"), Sentence("two volumes are mounted at `{}`; change one of the paths", path)
            )
        seen.add(path)
        if not claim and not is_set(volume.get("volumeClaim")):
            place = At(manifest.spec["volumes"], index)
            yield Violation(
                place, Sentence("the volume at `{}` requires `volumeClaim` or `volumeClaimName`; set one", path)
            )
        elif claim and is_set(volume.get("volumeClaim")):
            message = Sentence(
                "`volumeClaimName: {}` and `volumeClaim` are mutually exclusive; remove one of them", claim
            )
            yield Violation(At(volume, "volumeClaimName"), message)
        elif claim and not is_dns_subdomain(claim):
            yield Violation(
                At(volume, "volumeClaimName"), Sentence("`{}` is not a valid name of a claim; {}", claim, DNS_SUBDOMAIN)
            )


def _check_queue(manifest: Manifest) -> Violations:
    if as_text(manifest.spec.get("queue")) == "root":
        yield Violation(At(manifest.spec, "queue"), "no job can be submitted to the queue `root`; use a queue below it")


def _check_depends_on(manifest: Manifest) -> Violations:
    """Check that the dependencies of tasks name tasks and have no cycle."""
    tasks = _list_tasks(manifest)
    names = [task.name for task in tasks]
    waiting: dict[str, set[str]] = {}
    places: dict[str, Place] = {}
    for task in tasks:
        wanted = dict(list_text_places(as_mapping(task.data.get("dependsOn")).get("name")))
        for name, place in wanted.items():
            if name not in names:
                yield Violation(place, Sentence("there is no task `{}`{}", name, did_you_mean(name, names)))
        waiting[task.name] = set(wanted).intersection(names)
        places[task.name] = next(iter(wanted.values()), None)
    while ready := [name for name, wanted in waiting.items() if not wanted]:
        for name in ready:
            del waiting[name]
        for others in waiting.values():
            others.difference_update(ready)
    if waiting:
        first = next(iter(waiting))
        cycle = ", ".join(f"`{name}`" for name in waiting)
        yield Violation(
            places[first], Sentence("tasks depend on each other in a cycle: {}; remove a dependency", cycle)
        )


def _check_dependent_gang(manifest: Manifest) -> Violations:
    """Check that the gang can be complete before tasks that wait for others have pods."""
    tasks = _list_tasks(manifest)
    names = {task.name: dict(list_text_places(get_path(task.data, "dependsOn", "name"))) for task in tasks}
    # Other checks report cycles, and tasks that do not exist.
    is_valid = all(name in names and task != name for task, several in names.items() for name in several)
    waiting = [task for task in tasks if names[task.name]] if is_valid else []
    least = as_integer(manifest.spec.get("minAvailable")) or sum(
        task.replicas if (own := as_integer(task.data.get("minAvailable"))) is None else own for task in tasks
    )
    ready = sum(task.replicas for task in tasks if task not in waiting)
    if waiting and 0 < ready < least:
        message = Sentence(
            "task `{}` waits for the tasks that it depends on, but the gang needs {}", waiting[0].name, least
        )
        message += f" pods, and the others are {ready}: all stay Pending; set `minAvailable` to at most {ready}"
        place = find_at(manifest.spec, "minAvailable") or At(waiting[0].data, "dependsOn", is_key=True)
        # Without its plugin `gang`, Volcano starts pods one by one.
        yield Violation(place, message, severity=WARNING)


def _check_topology_policy(manifest: Manifest) -> Violations:
    """Check that containers that are bound to NUMA nodes request whole CPUs."""
    for task in _list_tasks(manifest):
        policy = as_text(task.data.get("topologyPolicy"))
        if policy in ("", "none"):
            continue
        for container in (*iter_mappings(task.pod.get("containers")), *iter_mappings(task.pod.get("initContainers"))):
            resources = as_mapping(container.get("resources"))
            requests = as_mapping(resources.get("requests")) or as_mapping(resources.get("limits"))
            milli = to_milli(requests.get("cpu"))
            if not milli or milli % 1000:
                name = as_text(container.get("name"))
                message = Sentence(
                    "`topologyPolicy: {}` requires whole CPUs, which container `{}` does not request", policy, name
                )
                place = find_at(requests, "cpu") or At(task.data, "topologyPolicy")
                yield Violation(place, Sentence("{}; set `cpu`", message))


def _check_partitions(manifest: Manifest) -> Violations:
    for task in _list_tasks(manifest):
        policy = as_mapping(task.data.get("partitionPolicy"))
        names = ("totalPartitions", "partitionSize", "minPartitions")
        total, size, least = (as_integer(policy.get(name)) or 0 for name in names)
        available = as_integer(task.data.get("minAvailable"))
        if total <= 0 or size <= 0:
            # The schema reports these.
            continue
        if task.replicas != total * size:
            message = Sentence("`replicas` of task `{}` is `{}`, but `totalPartitions` times", task.name, task.replicas)
            place = field_place(task.data, "replicas") or At(task.data, "partitionPolicy", is_key=True)
            yield Violation(place, Sentence("{} `partitionSize` is {}; make them equal", message, total * size))
        elif available is not None and least > 0 and least * size != available:
            message = Sentence("`minAvailable` of task `{}` is `{}`, but `minPartitions` times", task.name, available)
            yield Violation(
                At(task.data, "minAvailable"),
                Sentence("{} `partitionSize` is {}; make them equal", message, least * size),
            )
        yield from _check_tiers(policy.get("networkTopology"))


def _check_names(manifest: Manifest) -> Violations:
    """Check the names that the webhook checks; it appends the index of a task, not that of a pod."""
    name = full_name(manifest)
    suffixes = [f"-{task.name}-{index}" for index, task in enumerate(_list_tasks(manifest))]
    longest = max(suffixes, key=len, default="")
    if len(name) + len(longest) > _MAX_NAME:
        given = given_name(manifest)
        message = Sentence("`{}` has {} characters, but `…{}` is appended to it for pods", given, len(name), longest)
        yield Violation(name_place(manifest), Sentence("{}; use at most {}", message, max(_MAX_NAME - len(longest), 1)))


def _check_host_names(manifest: Manifest) -> Violations:
    """Check the host names that the plugin `svc` sets: the names of the pods, below the name of the job."""
    name, place = full_name(manifest), name_place(manifest)
    plugins = as_mapping(manifest.spec.get("plugins"))
    if not name or not any(plugin in plugins for plugin in ("svc", *_NEED_SERVICE)):
        return
    if "." in name:
        message = Sentence("`{}` is the name of a Service and part of host names, because of the plugin `svc`", name)
        yield Violation(place, Sentence("{}; {}", message, DNS_LABEL))
        return
    for index, task in enumerate(_list_tasks(manifest)):
        suffix = f"-{task.name}-{max(task.replicas - 1, 0)}"
        is_long = len(name) + len(suffix) > _MAX_NAME
        # The webhook reports what is too long already with the index of the task.
        if is_long and len(f"{name}-{task.name}-{index}") <= _MAX_NAME and not as_text(task.pod.get("hostname")):
            given = given_name(manifest)
            message = Sentence(
                "`{}` has {} characters, but `…{}` is appended to it for host names", given, len(name), suffix
            )
            yield Violation(place, Sentence("{}; use at most {}", message, max(_MAX_NAME - len(suffix), 1)))
            return


def _check_name(manifest: Manifest) -> Violations:
    name = full_name(manifest)
    if len(name) > _MAX_CRON_JOB_NAME:
        message = Sentence(
            "`{}` has {} characters; its Jobs append a time, so use at most", given_name(manifest), len(name)
        )
        yield Violation(name_place(manifest), Sentence("{} {}", message, _MAX_CRON_JOB_NAME))


def _check_jobs(manifest: Manifest) -> Violations:
    """Check the Jobs that will be created: nothing checks their template before."""
    template = as_mapping(manifest.spec.get("jobTemplate"))
    name = full_name(manifest)
    if not template or len(name) > _MAX_CRON_JOB_NAME:
        return
    job_name = f"{name}{_TIME}" if name else ""
    metadata = as_mapping(template.get("metadata"))
    places = {key: At(metadata, key) for key in metadata} | {"name": name_place(manifest)}
    spec: dict[str, Plain] = {key: value for key, value in template.items() if key == "spec"}
    job = Derived(
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": Gathered({**metadata, "name": job_name}, places),
            **spec,
        },
        template,
    )
    version = str(manifest.cluster.operators.get(OPERATOR, ""))
    child = Manifest(job, None, manifest.cluster)
    for check in CHECKS["Job"]:
        for violation in check.find(child) if check.applies_to(version) and check.rule != NEVER_STARTS else ():
            place = find_written(manifest, violation.node, At(manifest.spec, "jobTemplate", is_key=True))
            message = Sentence("Volcano rejects its Jobs: {}", violation.sentence)
            yield violation._replace(node=place, sentence=message)


def _list_resources(manifest: Manifest) -> dict[str, Mapping[str, Plain]]:
    paths = {"capability": ("capability",), "deserved": ("deserved",), "guarantee": ("guarantee", "resource")}
    return {field: as_mapping(get_path(manifest.spec, *path)) for field, path in paths.items()}


def _check_quantities(manifest: Manifest) -> Violations:
    for field, resources in _list_resources(manifest).items():
        for name, node in resources.items():
            # The schema reports what is no quantity.
            milli = to_milli(node) or 0
            is_divisible = name in _DIVISIBLE or name.startswith("hugepages-") or "kubernetes.io/" in name
            if milli < 0:
                yield Violation(
                    At(resources, name),
                    Sentence("`{}` of `{}` must not be negative, got `{}`", name, field, node),
                )
            elif milli % 1000 and not is_divisible:
                yield Violation(
                    At(resources, name),
                    Sentence("`{}` of `{}` must be a whole number, got `{}`", name, field, node),
                )


def _check_amounts(manifest: Manifest) -> Violations:
    """Check that a queue deserves what it is guaranteed, and no more than it can have."""
    capability, deserved, guarantee = _list_resources(manifest).values()
    for name, node in guarantee.items():
        if name not in deserved:
            message = Sentence("`guarantee` has `{}`, but `deserved` does not; set it to `{}` or more", name, node)
            yield Violation(At(guarantee, name), message)
        else:
            yield from _compare(name, guarantee, "guarantee", deserved, "deserved")
    for name in deserved:
        if name in capability:
            yield from _compare(name, deserved, "deserved", capability, "capability")


def _compare(
    name: str, low: Mapping[str, Plain], low_field: str, high: Mapping[str, Plain], high_field: str
) -> Iterator[Violation]:
    less, more = to_milli(low[name]), to_milli(high[name])
    if less is not None and more is not None and less > more:
        low_value, high_value = low[name], high[name]
        message = Sentence(
            "`{}` of `{}` is `{}`, but that of `{}` is `{}`", name, low_field, low_value, high_field, high_value
        )
        yield Violation(At(low, name), Sentence("{}; use at most that", message))


def _check_parent(manifest: Manifest) -> Violations:
    parent = as_text(manifest.spec.get("parent"))
    if parent and parent != "root" and parent == manifest.name:
        yield Violation(
            At(manifest.spec, "parent"), Sentence("queue `{}` cannot be its own parent; use another queue", parent)
        )


def _check_state(manifest: Manifest) -> Violations:
    return not_one_of(as_mapping(manifest.object.get("status")), "state", ["Open", "Closed"])


def _check_hierarchy(manifest: Manifest) -> Violations:
    path, weights = (as_text(manifest.annotations.get(name)) for name in (_HIERARCHY, _WEIGHTS))
    if not path and not weights:
        return
    place = find_at(manifest.annotations, _WEIGHTS) or At(manifest.annotations, _HIERARCHY)
    if len(path.split("/")) != len(weights.split("/")):
        message = Sentence("annotation `{}` is `{}`, and `{}` is `{}`", _HIERARCHY, path, _WEIGHTS, weights)
        yield Violation(place, Sentence("{}; write a weight for each step", message))
        return
    for weight in weights.split("/"):
        try:
            is_positive = weight == weight.strip() and float(weight) > 0
        except ValueError:
            is_positive = False
        if not is_positive:
            yield Violation(
                place, Sentence("`{}` in annotation `{}` is not a positive number; write one", weight, _WEIGHTS)
            )


CHECKS: Checks = {
    "JobTemplate": (Check(CHILD_REJECTED, _check_templates),),
    "PodGroup": (Check(REJECTED, _check_topologies, since="1.14"),),
    "HyperNode": (
        Check(REJECTED, _check_patterns),
        Check(REJECTED, _check_absent_members, since="1.14"),
        Check(REJECTED, _check_members, until="1.14"),
    ),
    "Job": (
        Check(REJECTED, _check_tasks),
        Check(REJECTED, _check_min_available),
        Check(REJECTED, _check_policies),
        Check(REJECTED, _check_plugins),
        Check(REJECTED, _check_volumes),
        Check(REJECTED, _check_names),
        Check(REJECTED, _check_topology_policy),
        Check(REJECTED, _check_mpi_task("master"), since="1.6"),
        Check(REJECTED, _check_mpi_task("worker"), since="1.6", until="1.15"),
        Check(REJECTED, _check_depends_on, since="1.6"),
        Check(REJECTED, _check_queue, since="1.11"),
        Check(REJECTED, _check_partitions, since="1.14"),
        Check(REJECTED, _check_network_topology, since="1.14"),
        Check(REJECTED, _check_old_tasks, until="1.14"),
        Check(CHILD_REJECTED, _check_host_names),
        Check(NEVER_STARTS, _check_dependent_gang),
        Check(NEVER_STARTS, _check_named_tasks),
    ),
    "CronJob": (
        Check(REJECTED, _check_name),
        Check(REJECTED, check_schedule),
        Check(REJECTED, check_time_zone),
        Check(CHILD_REJECTED, _check_jobs),
    ),
    "Queue": (
        Check(REJECTED, _check_state),
        Check(REJECTED, _check_hierarchy),
        Check(REJECTED, check_bounds({"spec.weight": (1, None)}), until="1.12"),
        Check(REJECTED, _check_quantities, since="1.14"),
        Check(REJECTED, _check_parent, since="1.14"),
        Check(REJECTED, _check_amounts, since="1.15"),
    ),
}
