"""Queues of KAI and Volcano, domains of GPUs and groups of pods, against the jobs that name them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.rules import WARNING, Fact, FactViolation, rule
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Plain
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean
from jobgen.spec.overlay import Cluster

_KAI, _VOLCANO, _OTHER = "KAI", "Volcano", ""
# Kinds whose controllers set no scheduler of their own.
_WITHOUT_SCHEDULER = frozenset(("", "apps", "batch", "kubeflow.org"))
_GROUPS = {"scheduling.run.ai": _KAI, "scheduling.volcano.sh": _VOLCANO}
_PARENTS = {_KAI: "parentQueue", _VOLCANO: "parent"}
_LABEL = "kai.scheduler/queue"
_KAI_NAME = "kai-scheduler"
_JOB = ("batch.volcano.sh", "Job")
# The queues that Volcano creates; all others are below its root.
_OWN_QUEUES = frozenset(("default", "root", ""))


def collect_queues(manifest: Manifest) -> Iterator[Fact]:
    """Yield a queue with its scheduler and its parent, or the queue that a job names."""
    scheduler = _GROUPS.get(manifest.group)
    if scheduler and manifest.kind_name == "Queue":
        parent = as_text(manifest.spec.get(_PARENTS[scheduler]))
        has_none = scheduler == _KAI and as_integer(get_path(manifest.spec, "resources", "gpu", "limit")) == 0
        yield Fact((True, scheduler, manifest.name, parent, has_none), ("metadata", "name"))
    elif (manifest.group, manifest.kind_name) == _JOB and (queue := as_text(manifest.spec.get("queue"))):
        yield Fact((False, _VOLCANO, queue, "", False), ("spec", "queue"))
    elif queue := as_text(manifest.labels.get(_LABEL)):
        if _is_scheduled_by_kai(manifest):
            needs_gpus = any(pod.gpus for pod in manifest.pods)
            yield Fact((False, _KAI, queue, "", needs_gpus), ("metadata", "labels", _LABEL))
        elif manifest.group in _WITHOUT_SCHEDULER and manifest.pods:
            yield Fact((False, _OTHER, queue, manifest.kind_name, False), ("metadata", "labels", _LABEL))


def _is_scheduled_by_kai(manifest: Manifest) -> bool:
    specs = [manifest.spec] if manifest.kind_name == "Pod" else [pod.spec for pod in manifest.pods]
    return any(as_text(spec.get("schedulerName")) == _KAI_NAME for spec in specs)


@rule("fleet", WARNING, collect=collect_queues)
def unusable_queue(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A queue of KAI or Volcano that takes no jobs, or that is not among the queues of the repository.

    KAI schedules pods only in a queue that has a parent and no queues below it, and only pods with its `schedulerName`.
    With `limit: 0`, a queue takes no pods with GPUs. Volcano takes no jobs in a queue with
    queues below it, and its webhook refuses a job whose queue does not exist. The rule looks at the queues of a
    scheduler only if the repository has some of them.

    Name a queue at the end of the tree; give a queue at its top a parent.

    When to turn it off: a queue that is closed for maintenance, with `limit: 0`, can be accepted on the line of the
    limit with the date of its end.
    """
    del cluster
    queues = {(fact.value[1], fact.value[2]): fact for fact in facts if fact.value[0]}
    parents = {(fact.value[1], fact.value[3]) for fact in facts if fact.value[0] and fact.value[3]}
    for fact in facts:
        is_queue, scheduler, name, parent, _ = fact.value
        known = [other for at, other in queues if at == scheduler and (other != name or not is_queue)]
        if is_queue:
            if scheduler == _KAI and parent and (scheduler, parent) not in queues:
                message = Sentence(
                    "the parent `{}` of `{}` is not among the queues of the repository, and KAI", parent, name
                )
                message += " schedules nothing in a queue whose parent does not exist"
                yield FactViolation(
                    fact, Sentence("{}{}", message, did_you_mean(parent, known) or "; correct the name")
                )
        elif scheduler == _OTHER:
            if (_KAI, name) in queues:
                message = Sentence(
                    "only pods with `schedulerName: {}` are in a queue of KAI, so this {} starts", _KAI_NAME, parent
                )
                yield FactViolation(fact, Sentence("{} outside of `{}`; set it in the pod template", message, name))
        elif (found := queues.get((scheduler, name))) is not None:
            yield from _check_queue(fact, found, has_queues_below=(scheduler, name) in parents)
        elif known and not (scheduler == _VOLCANO and name in _OWN_QUEUES):
            message = Sentence(
                "the repository has queues of {}, but no `{}`, so the job probably never starts", scheduler, name
            )
            yield FactViolation(fact, Sentence("{}{}", message, did_you_mean(name, known) or "; correct the name"))


def _check_queue(job: Fact, queue: Fact, *, has_queues_below: bool) -> Iterator[FactViolation]:
    """Report a queue that takes no jobs, or not this one."""
    _, scheduler, name, _, needs_gpus = job.value
    related = ((queue, "the queue"),)
    if has_queues_below:
        message = Sentence("`{}` has queues below it, and {} takes jobs only in a queue without any", name, scheduler)
        yield FactViolation(job, Sentence("{}; name one of those below it", message), related)
    elif needs_gpus and queue.value[4]:
        message = Sentence("`{}` has the limit of 0 GPUs, so KAI never schedules pods with GPUs in it", name)
        yield FactViolation(job, Sentence("{}; raise `limit`, or write -1 for none", message), related)
    elif scheduler == _KAI and not queue.value[3]:
        message = Sentence("`{}` is a queue without a parent, and KAI never schedules pods in a queue at the top", name)
        yield FactViolation(job, Sentence("{}; add a queue, and name it as `parentQueue`", message), related)


_DOMAIN = ("resource.nvidia.com", "ComputeDomain")
_NODE_GPUS = 4
"""The GPUs of a node with NVLink to other nodes: a pod with as many has the node to itself."""


def collect_domains(manifest: Manifest) -> Iterator[Fact]:
    """Yield a domain with its number of nodes, or the templates of claims of a job with the pods that use them."""
    if (manifest.group, manifest.kind_name) == _DOMAIN:
        template = as_text(get_path(manifest.spec, "channel", "resourceClaimTemplate", "name"))
        nodes = as_integer(manifest.spec.get("numNodes"))
        if template and nodes:
            yield Fact((True, manifest.namespace, template, nodes, True), ("spec", "numNodes"))
        return
    if manifest.kind is None and not any("resourceClaims" in pod.spec for pod in manifest.pods):
        return
    counts: dict[str, tuple[int, bool]] = {}
    pods = [(role.pod, role.count) for role in manifest.roles] or [(pod, 0) for pod in manifest.pods]
    for pod, count in pods:
        for claim in as_list(pod.spec.get("resourceClaims")):
            name = as_text(as_mapping(claim).get("resourceClaimTemplateName"))
            before, is_whole = counts.get(name, (0, True))
            # The pods of other kinds are not counted.
            counts[name] = (before + count if count else 0), is_whole and pod.gpus >= _NODE_GPUS
    for name, (count, is_whole) in counts.items():
        if name:
            yield Fact((False, manifest.namespace, name, count, is_whole), ("kind",))


@rule("fleet", WARNING, collect=collect_domains)
def compute_domain_size(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A ComputeDomain with another number of nodes than the pods that use it.

    The driver for DRA of NVIDIA prepares the channel of a pod when all `numNodes` nodes have joined the domain. With
    fewer pods, that never happens, and each stays in `ContainerCreating`. Where each pod takes a whole node, pods
    beyond that number cannot join.

    Write the number of nodes that the pods of the job run on.

    When to turn it off: when other jobs, from another repository, join the same domain, suppress it on `numNodes`
    with their number in the reason.
    """
    del cluster
    for fact in facts:
        is_domain, namespace, template, nodes, _ = fact.value
        users = [each for each in facts if not each.value[0] and each.value[1:3] == (namespace, template)]
        if not is_domain or not users or not all(each.value[3] for each in users):
            continue
        count = sum(each.value[3] for each in users)
        shown = "1 pod uses" if count == 1 else f"{count} pods use"
        if count < nodes:
            message = Sentence(
                "`numNodes` is `{}`, and {} the domain, so each waits for nodes that never join", nodes, shown
            )
        elif count > nodes and all(each.value[4] for each in users):
            message = Sentence(
                "`numNodes` is `{}`, and {} the domain, each on a node of its own, so some cannot join", nodes, shown
            )
        else:
            continue
        yield FactViolation(fact, Sentence("{}; write {}", message, count), ((users[0], "uses the domain"),))


_POD_GROUPS = ("scheduling.x-k8s.io", "scheduling.volcano.sh")
# What pods name their group with: the coscheduling plugin by a label, Volcano by an annotation.
_GROUP_KEYS = (
    ("labels", "scheduling.x-k8s.io/pod-group"),
    ("annotations", "scheduling.k8s.io/group-name"),
    ("annotations", "scheduling.volcano.sh/group-name"),
)
_SCALED = frozenset(("Deployment", "ReplicaSet", "StatefulSet"))


def collect_groups(manifest: Manifest) -> Iterator[Fact]:
    """Yield a group of pods with the number that must start together, or the groups of an object's pods."""
    if manifest.kind_name == "PodGroup" and manifest.group in _POD_GROUPS:
        least = as_integer(manifest.spec.get("minMember"))
        if least:
            yield Fact((True, manifest.namespace, manifest.name, least), ("spec", "minMember"))
        return
    counts: dict[str, int] = {}
    for metadata, count in _list_pods(manifest):
        for field, key in _GROUP_KEYS:
            name = as_text(as_mapping(metadata.get(field)).get(key))
            if name:
                counts[name] = counts.get(name, 0) + (count or 0)
    for name, total in counts.items():
        yield Fact((False, manifest.namespace, name, total), ("kind",))


def _list_pods(manifest: Manifest) -> Iterator[tuple[Mapping[str, Plain], int | None]]:
    """Yield the metadata of pods, with how many there are; None if that is not known."""
    if manifest.kind_name == "Pod":
        yield manifest.metadata, 1
    elif manifest.roles:
        yield from ((role.pod.metadata, role.count) for role in manifest.roles)
    else:
        replicas = manifest.spec.get("replicas")
        count = 1 if replicas is None else as_integer(replicas)
        yield from ((pod.metadata, count if manifest.kind_name in _SCALED else None) for pod in manifest.pods)


@rule("fleet", WARNING, collect=collect_groups)
def gang_beyond_pods(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A PodGroup of which more pods must start together than the objects of the repository have.

    The coscheduling plugin and Volcano start no pod of a group before there are `minMember` of them, so all stay
    `Pending`. The rule looks at a group only if the repository has pods that name it, and knows how many there are.

    Lower `minMember` to the number of pods, or add pods.

    When to turn it off: if some of the pods are created by another repository, suppress the finding on `minMember`
    and say where they are.
    """
    del cluster
    for fact in facts:
        is_group, namespace, name, least = fact.value
        users = [each for each in facts if not each.value[0] and each.value[1:3] == (namespace, name)]
        count = sum(each.value[3] for each in users)
        if is_group and users and all(each.value[3] for each in users) and count < least:
            shown = "1 pod names" if count == 1 else f"{count} pods name"
            message = Sentence(
                "`minMember` is `{}`, but {} `{}`, so none of them starts; write {}", least, shown, name, count
            )
            yield FactViolation(fact, message, ((users[0], "names the group"),))
