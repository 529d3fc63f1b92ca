"""Queues of Kueue and Volcano, and the labels that name them."""

import re
from collections.abc import Iterator, Mapping

from jobgen.check.rules import ERROR, INFO, WARNING, Fact, FactViolation, Violation, rule
from jobgen.check.team_limits import find_accelerated_pods, requires_queue
from jobgen.k8s.kueue import (
    DOMAIN,
    QUEUE_LABEL,
    QueueAdvice,
    advise_queue,
    can_be_queued,
    find_queue,
    get_kueue_queue,
    get_queue,
    is_managed_by_kueue,
    is_mpi_v1,
)
from jobgen.k8s.kueue_integrations import explain_conflict, explain_declared
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest, Pod
from jobgen.k8s.resources import count_gpus
from jobgen.model.data import Plain
from jobgen.model.finding import FixStep
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import ask_for, find_closest, list_alternatives, suggest_move, suggest_value
from jobgen.model.times import DEADLINE_ANNOTATION, EXPECTED_ANNOTATION, find_time_fault
from jobgen.spec.kinds import parse_version
from jobgen.spec.overlay import Cluster


@rule("manifest", WARNING)
def missing_queue(manifest: Manifest) -> Iterator[Violation]:
    """An object with GPUs that names no queue, in a cluster that declares queues.

    Its GPUs count against no quota: the job takes GPUs that queued jobs were promised, or it is never admitted where
    every job must be in a queue. Kueue also manages Pods, Deployments, StatefulSets, LeaderWorkerSets and RayClusters.

    Set `queue`, or the label `kueue.x-k8s.io/queue-name`. For a CronJob, set the label in its `jobTemplate`. For kinds
    that Kueue does not manage, such as a ReplicaSet, set it in the pod template, or use another kind. `queue` of
    `schedulingPolicy` is one of Volcano: Kueue does not read it.

    When to turn it off: a pod for debugging that uses free GPUs outside of all queues needs the consent of the
    others: accept it with an owner and a date in the settings.
    """
    queues = manifest.cluster.queues
    if not queues or (manifest.team is not None and requires_queue(manifest.team)):
        return
    other = get_path(manifest.run_policy, "schedulingPolicy", "queue")
    if as_text(other) in queues and get_kueue_queue(manifest) is None and _has_only_kueue(manifest.cluster):
        message = Sentence("`queue` of `schedulingPolicy` is one of Volcano, and Kueue does not read it; write")
        place = find_at(manifest.run_policy, "schedulingPolicy", "queue")
        yield Violation(place, Sentence("{} `queue: {}` directly below `spec`", message, as_text(other)))
        return
    pods = next((pods for _, pods in find_accelerated_pods(manifest)), [])
    advice, cause = advise_queue(manifest, pods) if pods else QueueAdvice()
    # KAI, Run:ai and similar schedulers use a label.
    if advice and not any("queue" in key for key in manifest.labels):
        gpus = count_gpus(manifest)
        fitting = [name for name, budget in queues.items() if budget.get("gpus", gpus) >= gpus]
        known = list_alternatives(f"`{name}`" for name in sorted(fitting or queues)[:5])
        wanted = "GPUs" if any(pod.gpus for pod in pods) else "accelerators"
        what = "job" if manifest.kind else "object"
        use = f"use queue {known}" if can_be_queued(manifest) else f"{advice} to {known}"
        message = Sentence("the {} requests {} but names no queue; {}", what, wanted, use)
        yield Violation(manifest.name_place, message, cause=cause)


def _has_only_kueue(cluster: Cluster) -> bool:
    """Return True if a cluster declares Kueue, and not Volcano."""
    return bool(cluster.find_version("kueue") or cluster.kueue) and not cluster.find_version("volcano")


@rule("manifest", ERROR)
def unknown_queue(manifest: Manifest) -> Iterator[Violation]:
    """A queue that the cluster does not have.

    The job stays suspended until its queue admits it, and a missing queue never does. In folders without `jobgen.yaml`,
    a name that is one slip of the keyboard away from a LocalQueue of Kueue or a Queue of Volcano in the same file or
    build is a warning, because the cluster can have others.

    Use one of the queues that the overlay declares under `cluster.queues`, or declare the queue there.

    When to turn it off: never while `cluster.queues` lists the queues of the environment; a queue that was
    created by hand belongs on this list.
    """
    queues = manifest.cluster.queues
    if not queues or not can_be_queued(manifest):
        return
    queue = get_queue(manifest)
    if queue is not None and as_text(queue) not in queues:
        meant = find_closest(as_text(queue), list(queues))
        message = Sentence(
            "the cluster declares no queue `{}`, so the job never starts{}", as_text(queue), ask_for(meant)
        )
        place = find_queue(manifest)
        fix_steps, safe = suggest_value(place, list(queues))
        yield Violation(place, message, fix_steps=fix_steps, safe=safe, meant=meant)


_LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = lazy_pattern(rf"{_LABEL}(?:\.{_LABEL})*\Z")


@rule("manifest", ERROR, fields=("labels",))
def bad_queue_name(manifest: Manifest) -> Iterator[Violation]:
    """A queue name in the label `kueue.x-k8s.io/queue-name` that no queue can have.

    The webhook of Kueue refuses the job, as no LocalQueue can have this name: it follows the rules of object names,
    with lower case only.

    Use lower-case letters, digits, `-` and `.`.

    When to turn it off: a LocalQueue of that name cannot be created in any release, so the label can only be wrong.
    A readable title for people belongs in an annotation.
    """
    queue = get_kueue_queue(manifest)
    if queue is not None and not _SUBDOMAIN.match(as_text(queue)):
        message = Sentence(
            "`{}` is not a valid queue name; use lower-case letters, digits, `-` and `.`", as_text(queue)
        )
        yield Violation(At(manifest.labels, QUEUE_LABEL), message)


# Common misspellings of the domain, then `queue`, optionally with `local` before or `name` after it.
_MISSPELLED = lazy_pattern(
    r"(?:kueue\.(?:x-k8s\.io|k8s\.io|x\.k8s\.io|x-k8s|sigs\.k8s\.io|io)|x-k8s\.io)/(?:local[-_]?)?queue(?:[-_.]?name)?\Z",
    re.IGNORECASE,
)
# The label itself, and one that Kueue sets on pods.
_OTHERS = frozenset(("kueue.x-k8s.io/local-queue-name", QUEUE_LABEL))


@rule("manifest", WARNING, fields=("labels",))
def queue_label_typo(manifest: Manifest) -> Iterator[Violation]:
    """A label that resembles Kueue's `kueue.x-k8s.io/queue-name`.

    Kueue ignores it, so the job starts at once, without quota.

    Write `kueue.x-k8s.io/queue-name`.

    When to turn it off: a label of your own that resembles Kueue's, for instance of a fork, can be accepted for its
    paths in the settings; a rename is the safer way.
    """
    for key in manifest.labels:
        if (
            "queue" in key.lower()
            and key not in _OTHERS
            and _MISSPELLED.match(key)
            and get_kueue_queue(manifest) is None
        ):
            message = Sentence("Kueue does not read the label `{}`; use `{}`", key, QUEUE_LABEL)
            yield Violation(
                At(manifest.labels, key, is_key=True),
                message,
                fix_steps=(FixStep("rename", At(manifest.labels, key, is_key=True), QUEUE_LABEL),),
            )


@rule("pod", WARNING, words=(QUEUE_LABEL,))
def queue_label_on_pods(pod: Pod) -> Iterator[Violation]:
    """The label `kueue.x-k8s.io/queue-name` on a pod template.

    Kueue reads the label of the job and ignores that of its pods. If the job has none, it is not queued as a whole:
    where Kueue also manages pods, it admits each pod separately, so a job can get some of its workers and wait forever
    for the others. A label that repeats the queue of the job is an info.

    Set the label only in the `metadata` of the job; for a CronJob, in that of its `jobTemplate`.

    When to turn it off: where pods are queued one by one on purpose, as for a plain Pod integration with groups,
    keep the label on the pods and none on the job, and accept it there.
    """
    manifest = pod.manifest
    if manifest.kind is None and not is_managed_by_kueue(manifest) and manifest.kind_name != "CronJob":
        # A pod or a Deployment is no job whose pods have to start together.
        return
    labels = as_mapping(pod.metadata.get("labels")) if pod.metadata else {}
    if QUEUE_LABEL in labels:
        place = At(labels, QUEUE_LABEL, is_key=True)
        effect, remedy, is_redundant = _describe(pod)
        fix_steps = (FixStep("remove", place),) if is_redundant else ()
        is_same = is_redundant and as_text(labels[QUEUE_LABEL]) == as_text(get_kueue_queue(manifest))
        severity = INFO if is_same else WARNING
        yield Violation(place, Sentence("{}; {}", effect, remedy), fix_steps=fix_steps, safe=False, severity=severity)


def _describe(pod: Pod) -> tuple[str, str, bool]:
    """Return what Kueue does with the label, what to write instead, and whether the label can just be removed."""
    manifest = pod.manifest
    kind = manifest.kind
    separately = f"label `{QUEUE_LABEL}` on pods does not queue the job; at most, Kueue admits each pod separately"
    if kind is not None and kind.completed_by:
        return separately, f"set it in the `metadata` of each {kind.completed_by}", False
    if kind is None and manifest.kind_name == "CronJob":
        return separately, "move it to the labels of `jobTemplate`", False
    if not is_managed_by_kueue(manifest):
        return separately, f"remove it, because Kueue does not manage {manifest.kind_name}", False
    if get_kueue_queue(manifest) is not None:
        return f"Kueue ignores label `{QUEUE_LABEL}` on the pods of a queued job", "remove it, the job has it", True
    return separately, "move it to the job", False


_LABELS = frozenset(DOMAIN + name for name in ("queue-name", "priority-class", "max-exec-time-seconds"))


@rule("manifest", WARNING, fields=("annotations",))
def kueue_label_as_annotation(manifest: Manifest) -> Iterator[Violation]:
    """An annotation that Kueue reads only as a label, such as `kueue.x-k8s.io/queue-name`.

    Kueue ignores the annotation, so the job has no queue, priority or time limit.

    Move it to `metadata.labels`.

    When to turn it off: if a tool of yours reads this annotation, give it a key in your own domain, so that it is
    not taken for one of Kueue.
    """
    annotations = manifest.annotations
    for key in annotations:
        if key in _LABELS and key not in manifest.labels:
            message = Sentence("Kueue reads `{}` only as a label; move it to the labels", key)
            fix_steps, safe = suggest_move(key, annotations, "labels", manifest.metadata)
            yield Violation(At(annotations, key, is_key=True), message, fix_steps=fix_steps, safe=safe)


class _Values(NamedTuple):
    """The values that a controller knows, and what it does with any other."""

    known: tuple[str, ...]
    otherwise: str


_SWITCH = ("true", "false")
_KUEUE, _RAY = "kueue.x-k8s.io/", "ray.io/"
# Controllers compare these texts exactly, and say nothing about others.
_ANNOTATIONS: Mapping[str, _Values] = {
    f"{_KUEUE}elastic-job": _Values(_SWITCH, "Kueue takes it for `false`, so the job cannot be resized"),
    f"{_KUEUE}elastic-job-scale-up-strategy": _Values(
        ("atomic", "partial"), "Kueue takes it for `atomic`, so the job never grows by parts"
    ),
    f"{_KUEUE}pod-group-fast-admission": _Values(_SWITCH, "Kueue takes it for `false` and waits for all pods"),
    f"{_KUEUE}pod-group-serving": _Values(_SWITCH, "Kueue takes it for `false`, so the group ends with its pods"),
    f"{_KUEUE}retriable-in-group": _Values(_SWITCH, "Kueue takes it for `true` and waits for another pod"),
    f"{_KUEUE}safe-to-forcefully-delete": _Values(_SWITCH, "Kueue takes it for `false` and does not delete the pod"),
    f"{_RAY}disable-provisioned-head-restart": _Values(_SWITCH, "KubeRay takes it for `false`"),
    f"{_RAY}enable-serve-service": _Values(_SWITCH, "KubeRay takes it for `false` and creates no Service"),
    "cluster-autoscaler.kubernetes.io/safe-to-evict": _Values(
        _SWITCH, "the cluster autoscaler ignores it, so it can evict the pod"
    ),
    "karpenter.sh/do-not-disrupt": _Values(_SWITCH, "Karpenter ignores it, so it can evict the pod"),
}
# Autoscalers of nodes read these annotations of pods only.
_OF_PODS: Mapping[str, str] = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "the cluster autoscaler",
    "karpenter.sh/do-not-disrupt": "Karpenter",
}
_RENAMED = {"karpenter.sh/do-not-evict": "karpenter.sh/do-not-disrupt"}
# Operators that give their pods the annotations of the pod template alone.
_COPIES_TEMPLATE = frozenset(("apps", "batch", "jobset.x-k8s.io", "kubeflow.org", "leaderworkerset.x-k8s.io", "ray.io"))
# The value does not count, so `false` turns it on.
_PRESENT = {
    f"{_RAY}gang-scheduling-enabled": "KubeRay turns gang scheduling on for any value",
    "alpha.jobset.sigs.k8s.io/node-selector": "JobSet uses node selectors for any value",
}


@rule("manifest", WARNING)
def misread_annotation(manifest: Manifest) -> Iterator[Violation]:
    """An annotation or label that its controller does not read: its value means nothing there, or its place does.

    Some controllers compare a value with one text, and take any other for the default: `Partial` is not `partial`, and
    `"True"` is not `"true"`. Others ask only if the key exists, so `"false"` turns the feature on. No
    webhook complains about these values. jobgen ignores a duration or a deadline that it cannot read. Autoscalers of
    nodes read `safe-to-evict` and `do-not-disrupt` among the annotations of a pod, not among its labels, and not on the
    object that creates it.

    Write one of the values that the message names, exactly; move the annotation to the pod template; or remove the key.

    When to turn it off: if a tool of your own reads the same key with other values, accept it on that line; the
    controller named in the finding still ignores it.
    """
    for key in (EXPECTED_ANNOTATION, DEADLINE_ANNOTATION) if manifest.annotations else ():
        time = manifest.annotations.get(key)
        fault = find_time_fault(key, time) if isinstance(time, str) else ""
        if fault:
            yield Violation(At(manifest.annotations, key), Sentence("`{}` is `{}`, which {}", key, time, fault))
    for metadata in (manifest.metadata, *[pod.metadata for pod in manifest.pods]):
        for field in ("annotations", "labels"):
            entries = as_mapping(metadata[field]) if field in metadata else {}
            for key in entries:
                node = entries[key]
                if key in _ANNOTATIONS and field == "annotations":
                    yield from _check(entries, key, _ANNOTATIONS[key])
                if key in _OF_PODS or key in _RENAMED:
                    yield from _check_place(manifest, metadata, field, At(entries, key, is_key=True))
                if key in _PRESENT and str(node).lower() == "false":
                    yield Violation(
                        At(entries, key),
                        Sentence("`{}` is `{}`, but {}; remove it", key, node, _PRESENT[key]),
                    )


def _check_place(manifest: Manifest, metadata: Mapping[str, Plain], field: str, place: At) -> Iterator[Violation]:
    name = str(place.key)
    if name in _RENAMED:
        message = Sentence("Karpenter reads `{}` no more, and can evict the pod", name)
        yield Violation(place, Sentence("{}; write `{}`", message, _RENAMED[name]))
    elif field == "labels":
        yield Violation(
            place, Sentence("{} reads `{}` only as an annotation; move it to the annotations", _OF_PODS[name], name)
        )
    elif metadata is manifest.metadata and manifest.group in _COPIES_TEMPLATE:
        templates = [as_mapping(pod.metadata.get("annotations")) for pod in manifest.pods]
        if templates and not any(name in each for each in templates):
            message = Sentence(
                "{} reads `{}` of pods, and they do not get the annotations of the", _OF_PODS[name], name
            )
            yield Violation(place, Sentence("{} {}; move it to the pod template", message, manifest.kind_name))


def _check(entries: Mapping[str, Plain], key: str, values: _Values) -> Iterator[Violation]:
    written = entries[key]
    # The API server rejects what is no text.
    if not isinstance(written, str) or written in values.known:
        return
    close = [known for known in values.known if known == written.strip().lower()]
    remedy = list_alternatives(f"`{known}`" for known in close or values.known)
    message = Sentence("`{}` has the unknown value `{}`; {}; write {}", key, written, values.otherwise, remedy)
    yield Violation(At(entries, key), message)


_SUSPENDS_SINCE = "1.7.0"
_WITHOUT_KUEUE = {
    ("apps", "DaemonSet"): "a DaemonSet",
    ("batch.volcano.sh", "CronJob"): "a CronJob of Volcano",
    ("batch.volcano.sh", "Job"): "a Job of Volcano",
    ("ray.io", "RayCronJob"): "a RayCronJob, nor does KubeRay copy its labels to its RayJobs",
}


@rule("manifest", WARNING, fields=("labels",))
def ineffective_queue_label(manifest: Manifest) -> Iterator[Violation]:
    """A Kueue label on a job that Kueue cannot manage, such as an MPIJob of `kubeflow.org/v1`.

    Kueue does not support these kinds, or the operator is too old to suspend a job (before training-operator 1.7). The
    job is unmanaged: it starts at once, without quota.

    This is an error if the cluster declares the version of Kueue, or its `frameworks`, and this Kueue does not manage
    the kind: since 0.19, PyTorchJob, TFJob, XGBoostJob, PaddleJob and JAXJob, unless `cluster.kueue.frameworks` lists
    them. It is also an error if the declared versions do not work together: Kueue 0.17 and later needs Trainer 2.2 or
    later to start a TrainJob.

    Use a kind that Kueue manages; for MPI, `kubeflow.org/v2beta1` or a TrainJob. Set the label of a CronJob in the
    `metadata` of its `jobTemplate`, so each Job has it.

    When to turn it off: jobs that carry the label only for reports, and are not to be queued, can use an annotation
    of your own in its place.
    """
    kind = manifest.kind
    name = (manifest.group, manifest.kind_name)
    if get_kueue_queue(manifest) is None:
        return
    queue = At(manifest.labels, QUEUE_LABEL)
    unmanaged = explain_declared(as_text(manifest.object.get("apiVersion")), manifest.kind_name, manifest.cluster)
    conflict = explain_conflict(manifest.kind_name, manifest.cluster)
    if unmanaged is not None:
        yield Violation(queue, Sentence("the job is unmanaged: {}", "; ".join(unmanaged)), severity=ERROR)
    elif conflict is not None:
        yield Violation(queue, Sentence("the job is never admitted: {}", "; ".join(conflict)), severity=ERROR)
    elif name == ("batch", "CronJob"):
        yield Violation(queue, "Kueue manages the Jobs of a CronJob; move the label to `jobTemplate`")
    elif name in _WITHOUT_KUEUE:
        yield Violation(
            queue, Sentence("Kueue does not manage {}; remove the label `{}`", _WITHOUT_KUEUE[name], QUEUE_LABEL)
        )
    elif is_mpi_v1(manifest):
        yield Violation(queue, "Kueue manages MPIJob only as `kubeflow.org/v2beta1`; use that version")
    elif kind is not None and kind.platform == "tensorstack":
        yield Violation(
            queue, Sentence("Kueue does not manage {}, so `{}` has no effect; remove it", kind.name, QUEUE_LABEL)
        )
    elif kind is not None and kind.operator == "training-operator":
        declared = manifest.operator_version
        if declared and parse_version(declared) < parse_version(_SUSPENDS_SINCE):
            message = Sentence("training-operator {} cannot suspend jobs, which Kueue requires", declared)
            yield Violation(queue, Sentence("{}; use {} or later", message, _SUSPENDS_SINCE))


@rule("job", WARNING, fields=("labels",))
def kueue_and_volcano_queues(manifest: Manifest) -> Iterator[Violation]:
    """A job that is queued by both Kueue and Volcano.

    Each counts quota separately: a job that Kueue admitted can wait in Volcano's queue while it holds its quota, and
    GPUs that are free in one are taken in the other.

    Use only one of them for queueing.

    When to turn it off: a cluster where Kueue only counts and Volcano only places pods is possible with a Volcano
    queue without limits: accept it in that overlay.
    """
    queue = get_kueue_queue(manifest)
    if queue is None:
        return
    other = get_path(manifest.run_policy, "schedulingPolicy", "queue")
    if as_text(other):
        message = Sentence(
            "the job is in Volcano's queue `{}` and in Kueue's queue `{}`; remove one", as_text(other), as_text(queue)
        )
        place = find_at(manifest.run_policy, "schedulingPolicy", "queue")
        yield Violation(place, message, ((At(manifest.labels, QUEUE_LABEL), "Kueue's queue"),))
        return
    for role in manifest.roles:
        name = role.pod.spec.get("schedulerName")
        if as_text(name) == "volcano":
            message = Sentence(
                "Kueue queues the job in `{}`, and Volcano then queues its pods; use only one", as_text(queue)
            )
            related = ((At(manifest.labels, QUEUE_LABEL), "Kueue's queue"),)
            yield Violation(At(role.pod.spec, "schedulerName"), message, related)
            return


# Trainer has no runtime for TensorFlow and Paddle.
_SUCCESSORS = {"TFJob": "JobSet", "PaddleJob": "JobSet"}


def _collect(manifest: Manifest) -> Iterator[Fact]:
    """Yield the kind of a queued job."""
    if get_kueue_queue(manifest) is not None and manifest.kind is not None:
        yield Fact(manifest.kind_name, ("metadata", "labels", QUEUE_LABEL))


@rule("fleet", INFO, kinds=("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob"), collect=_collect)
def queue_support_ending(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """Queued jobs of a kind whose support in Kueue is deprecated; reported once per kind.

    Kueue deprecates these kinds of `kubeflow.org/v1`, does not manage them by default since 0.19, and plans to remove
    them in 0.20. Without support the jobs are unmanaged: they start at once, without quota. If the cluster declares a
    Kueue that does not manage them, this is `ineffective-queue-label`.

    Plan a migration to TrainJob, or to JobSet for TFJob and PaddleJob, which Trainer does not run. Check this before
    you update Kueue.

    When to turn it off: if the cluster stays on a Kueue that supports the kind, the info can be `off` until the
    update is planned.
    """
    for kind in sorted({fact.value for fact in facts}):
        if explain_declared("kubeflow.org/v1", kind, cluster) is not None:
            # Kueue does not manage it now, which is an error of each job.
            continue
        queued = [fact for fact in facts if fact.value == kind]
        more = f" ({len(queued)} queued jobs affected)" if len(queued) > 1 else ""
        message = Sentence(
            "Kueue plans to remove support for {} in 0.20{}; migrate to {}",
            kind,
            more,
            _SUCCESSORS.get(kind, "TrainJob"),
        )
        yield FactViolation(queued[0], message)


_ELASTIC = DOMAIN + "elastic-job"


@rule("job", ERROR, fields=("annotations",))
def elastic_job_unsupported(manifest: Manifest) -> Iterator[Violation]:
    """Kueue's annotation for elastic jobs on a kind that Kueue does not resize.

    Kueue's webhook rejects `kueue.x-k8s.io/elastic-job` on the kinds of Kubeflow.

    Remove the annotation.

    When to turn it off: if your build of Kueue resizes the kind, set the rule to `off` for that cluster until the
    kind is in a release.
    """
    annotations = manifest.annotations
    if _ELASTIC not in annotations:
        return
    group = as_text(manifest.object.get("apiVersion")).partition("/")[0]
    if group == "kubeflow.org" and as_text(annotations[_ELASTIC]) == "true":
        message = Sentence(
            "Kueue cannot resize {} and rejects it with `{}`; remove the annotation", manifest.kind_name, _ELASTIC
        )
        yield Violation(
            At(annotations, _ELASTIC), message, fix_steps=(FixStep("remove", At(annotations, _ELASTIC), key=_ELASTIC),)
        )
