"""Where and when pods may run."""

import json
from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.devices import find_meant_device
from jobgen.k8s.kueue import DOMAIN, get_kueue_queue
from jobgen.k8s.label_requirements import REQUIRED, find_contradiction
from jobgen.k8s.node_agents import is_node_agent
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest, Pod
from jobgen.model.data import untraced
from jobgen.model.finding import FixStep
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At, find_at
from jobgen.model.quantity import parse_digits
from jobgen.model.sentence import Sentence

_NAME = lazy_pattern(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_TAINTS = frozenset(
    (
        *(f"node-role.kubernetes.io/{role}" for role in ("control-plane", "master")),
        "node.cloudprovider.kubernetes.io/uninitialized",
        *(
            f"node.kubernetes.io/{state}"
            for state in "disk-pressure memory-pressure network-unavailable not-ready out-of-service pid-pressure "
            "unreachable unschedulable".split()
        ),
    )
)
"""The taints that Kubernetes sets."""
_TAINT_DOMAINS = frozenset(taint.partition("/")[0] for taint in _TAINTS)


@rule("pod", WARNING, fields=("tolerations",))
def toleration_typo(pod: Pod) -> Iterator[Violation]:
    """A toleration whose key resembles the usual taint of GPU nodes, or a taint that Kubernetes sets.

    Kubernetes compares the key letter by letter. A toleration of `nvidia/gpu` does not fit nodes with the taint
    `nvidia.com/gpu`, so the pod stays `Pending` although nodes are free. Kubernetes accepts any key, without a warning.

    Write the key as `kubectl describe node` shows it under `Taints`.

    When to turn it off: if your own nodes have a taint of this spelling, accept the finding for the pods that are
    meant for them, and consider the usual name for the next node pool.
    """
    # Imported late: most names are right.
    from jobgen.model.meant import find_meant

    for toleration in as_list(pod.spec.get("tolerations")):
        key = as_text(as_mapping(toleration).get("key"))
        domain, slash, _ = key.partition("/")
        if not slash or key in _TAINTS:
            continue
        meant = find_meant_device(key)
        if not meant and domain in _TAINT_DOMAINS:
            meant = find_meant(key, [*_TAINTS])
        if meant:
            place = At(toleration, "key")
            message = Sentence(
                "a toleration of `{}` does not fit nodes with the taint `{}`; did you mean `{}`?", key, meant, meant
            )
            fix_steps = (FixStep("set", place, meant),)
            yield Violation(place, message, fix_steps=fix_steps, safe=False, meant=meant)


@rule("pod", ERROR, fields=("affinity",))
def impossible_placement(pod: Pod) -> Iterator[Violation]:
    """Requirements of nodes that no node meets together, such as a `nodeSelector` and an affinity for another zone.

    The scheduler wants both the labels of `nodeSelector` and one of the terms of a required node affinity, and all
    expressions of a term. A node has one value of a label, so a pod with two that differ stays `Pending` in every
    cluster; often an overlay adds one of them, and the job has the other. Pods of which several have to be together
    and apart in the same topology cannot start either.

    Write the same value in both places, or remove one of them. A preference
    (`preferredDuringSchedulingIgnoredDuringExecution`) excludes no node.

    When to turn it off: never needed, because no label of a node has two values at a time.
    """
    if (found := find_contradiction(pod.spec)) is not None:
        first, second = found
        if first.source == second.source:
            both = f"{first.source} requires {first.describe()} and {second.describe()}"
        else:
            both = f"{first.source} requires {first.describe()}, and {second.source} {second.describe()}"
        message = Sentence(
            "no node meets both requirements of `{}`: {}, so that the pods stay Pending", first.label, both
        )
        related = ((first.place, "the other requirement"),)
        yield Violation(second.place, Sentence("{}; make them agree, or remove one", message), related)
    elif pod.role is not None and pod.role.count > 1:
        yield from _check_together_and_apart(pod)


def _check_together_and_apart(pod: Pod) -> Iterator[Violation]:
    """Yield a group of pods that several pods have to be with, and without, in one topology."""
    affinity = as_mapping(pod.spec.get("affinity"))
    wanted, unwanted = (
        [as_mapping(term) for term in as_list(as_mapping(affinity.get(name)).get(REQUIRED))]
        for name in ("podAffinity", "podAntiAffinity")
    )
    known = {json.dumps(untraced(term), sort_keys=True, default=str) for term in wanted}
    for term in unwanted if known else ():
        if term and json.dumps(untraced(term), sort_keys=True, default=str) in known:
            topology = as_text(term.get("topologyKey"))
            message = Sentence(
                "`podAffinity` and `podAntiAffinity` require the same pods in one `{}`, and elsewhere", topology
            )
            yield Violation(
                At(affinity, "podAntiAffinity", is_key=True),
                Sentence("{}, so that all pods but the first stay Pending; remove one", message),
            )
            return


@rule("pod", WARNING, fields=("nodeName",))
def fixed_node(pod: Pod) -> Iterator[Violation]:
    """`nodeName` in a pod of a training job.

    The pod skips the scheduler: nothing waits until the node has free GPUs and memory, and a gang scheduler does not
    see the pod. If the node is full, the kubelet refuses the pod, and it fails. All pods of the role run on that node.

    Use a `nodeSelector` with `kubernetes.io/hostname`.

    When to turn it off: to test a single machine after a repair, a pod on exactly this node is what you want;
    suppress it on `nodeName` with the name of the ticket.
    """
    node = pod.spec["nodeName"]
    name = as_text(node)
    # In the file of a team, it is an error.
    if pod.manifest.team is not None:
        return
    if pod.manifest.kind is None or not _NAME.fullmatch(name) or pod.spec.get("schedulingGates"):
        return
    # A Job that does something on one node is meant to run there.
    if pod.manifest.group == "batch" and (not any(pod.devices.values()) or is_node_agent(pod)):
        return
    message = Sentence("`nodeName: {}` skips the scheduler, so the pod fails if the node has no room", name)
    yield Violation(
        At(pod.spec, "nodeName"),
        Sentence("{}; remove it, and add `nodeSelector: {{kubernetes.io/hostname: {}}}`", message, name),
    )


_SCHEDULERS = (
    *("default-scheduler", "volcano", "kai-scheduler", "yunikorn", "koord-scheduler", "kube-batch", "hami-scheduler"),
    *("scheduler-plugins-scheduler", "t9k-scheduler"),
)


@rule("manifest", WARNING, words=("schedulerName",))
def misspelled_scheduler(manifest: Manifest) -> Iterator[Violation]:
    """A `schedulerName` that is one letter from that of a known scheduler, such as `volcan`.

    Kubernetes accepts any name. Each scheduler starts only the pods that have its own, so the pods stay `Pending`.

    Write the name of the scheduler.

    When to turn it off: for a scheduler that is really named like this, accept the finding in the settings for the
    jobs that use it; anywhere else their pods stay pending.
    """
    # Imported late: few jobs name a scheduler.
    from jobgen.model.meant import find_meant

    holders = [manifest.spec, *(pod.spec for pod in manifest.pods)]
    for name, holder in {as_text(holder.get("schedulerName")): holder for holder in reversed(holders)}.items():
        meant = find_meant(name, _SCHEDULERS) if name and name not in _SCHEDULERS else ""
        if meant:
            message = Sentence(
                "no known scheduler is called `{}`, and without one the pods stay Pending; did you mean `{}`?",
                name,
                meant,
            )
            place = At(holder, "schedulerName")
            yield Violation(place, message, fix_steps=(FixStep("set", place, meant),), safe=False)


# Domains of controllers that remove their own gates.
_REMOVED = ("kueue.x-k8s.io/", "cloud.google.com/", "gke.io/", "networking.gke.io/", "grove.io/", "scheduling.run.ai/")


@rule("pod", WARNING, fields=("schedulingGates",))
def scheduling_gate(pod: Pod) -> Iterator[Violation]:
    """A scheduling gate in a pod template.

    The scheduler ignores a pod until all its gates are removed. Kueue removes only its own: a job with another gate is
    admitted and holds its quota, but its pods stay `SchedulingGated`. Gates of Kueue and of other known controllers are
    not reported.

    Remove the gate, or run the controller that removes it, and disable the rule for the job.

    When to turn it off: while the controller that removes the gate runs in the cluster, suppress it on the gate and
    name this controller, as the text above says.
    """
    gates = [as_text(as_mapping(each).get("name")) for each in as_list(pod.spec["schedulingGates"])]
    own = [name for name in gates if name and not name.startswith(_REMOVED)]
    if not own or pod.partial:
        return
    queued = get_kueue_queue(pod.manifest) is not None
    effect = (
        "holds its quota after Kueue has admitted it, but its pods are never scheduled" if queued else "never starts"
    )
    message = Sentence(
        "until a controller removes the scheduling gate `{}`, the job {}; remove the gate", own[0], effect
    )
    yield Violation(At(pod.spec, "schedulingGates", is_key=True), message, evidence=(own[0],))


_LIMIT = DOMAIN + "max-exec-time-seconds"
_MOST = 2**31 - 1


@rule("manifest", ERROR, fields=("labels",))
def bad_max_exec_time(manifest: Manifest) -> Iterator[Violation]:
    """A `kueue.x-k8s.io/max-exec-time-seconds` that is not a positive integer.

    Kueue stops a job after this time. Its webhook cannot parse `1h` or `-1`, and rejects the job, so that it is
    neither queued nor run.

    Write the seconds as a string: `"3600"`.

    When to turn it off: a Kueue before this label ignores it; then remove the label. Where it is known, the text
    has no second reading.
    """
    labels = manifest.labels
    if _LIMIT not in labels:
        return
    limit = as_text(labels[_LIMIT])
    if not 0 < (parse_digits(limit) or 0) <= _MOST:
        yield Violation(
            At(labels, _LIMIT),
            Sentence("`{}` is not a positive number of seconds, so Kueue rejects the job; write seconds", limit),
        )


_GROUPS = ("batch", "batch.volcano.sh")


@rule("manifest", WARNING, kinds=("CronJob",))
def overlapping_runs(manifest: Manifest) -> Iterator[Violation]:
    """A CronJob with GPUs that does not say whether its runs can overlap.

    The default of `concurrencyPolicy` is `Allow`: if a run takes longer than the schedule, the next one starts
    beside it, and each of them takes as many GPUs again. A CronJob whose runs have a deadline is not reported.

    Set `concurrencyPolicy: Forbid` or `Replace`. To let runs overlap on purpose, write `Allow`.

    When to turn it off: writing `Allow` is the way to say that overlaps are wanted, so a suppression is never
    needed.
    """
    if manifest.group not in _GROUPS or as_text(manifest.spec.get("concurrencyPolicy")):
        return
    deadline = get_path(manifest.spec, "jobTemplate", "spec", "activeDeadlineSeconds")
    devices = {name: count for pod in manifest.pods for name, count in pod.devices.items() if count}
    if not devices or deadline is not None or manifest.spec.get("suspend") is True:
        return
    what = "GPUs" if any(pod.gpus for pod in manifest.pods) else "devices"
    message = "`concurrencyPolicy` is not set, so concurrent runs are allowed: if a run hangs or takes longer than the"
    message += f" schedule, the next one takes as many {what} again"
    place = find_at(manifest.spec, "schedule", is_key=True) or At(manifest.object, "kind")
    yield Violation(place, Sentence("{}; set it to `Forbid`", message))
