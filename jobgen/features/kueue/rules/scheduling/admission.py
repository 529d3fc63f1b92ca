"""Jobs that Kueue never admits, or admits although they cannot run, or without counting their devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.kueue import QUEUE_LABEL, get_kueue_queue
from jobgen.k8s.kueue_integrations import MULTIKUEUE
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Plain, location_of
from jobgen.model.finding import Problem
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence

if TYPE_CHECKING:
    from jobgen.features.kueue.queue_state import QueueState


@rule("queue", ERROR)
def inadmissible_job(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """A job that Kueue can never admit, however empty the cluster is.

    The job waits forever, without an error. The rule applies if ClusterQueues are in `jobs/`, in the same file, or in
    the folder `cluster.state`. It compares the workload of the job with its queue: whether the queue exists and admits
    anything, selects the namespace, covers the resources, has a flavor that the pods can run on, and could ever have
    enough quota with all that it can borrow. The message ends with the smallest change that would admit the job. If no
    LocalQueue is among the files, jobgen does not know the job's queue and reports nothing. A priority class that
    does not exist is reported if other classes of its kind are among the files. With MultiKueue, a job is also reported
    if `cluster.kueue.multiKueue` declares all worker clusters, and none of them could ever admit it.

    A job with a queue that the declared Kueue does not manage is unmanaged: it starts at once, without quota. This is
    an error if the version of Kueue or its `frameworks` are declared, and a warning if only other parts of
    `cluster.kueue` are.

    Request less, use another queue, or change the queue.

    When to turn it off: if quota is added by hand or by a controller before the job is due, accept it with an end
    date. `jobgen queue` shows what is missing, in numbers.
    """
    obstacle = queues.find_obstacle(manifest.object)
    if obstacle is None:
        return
    from jobgen.features.kueue.queue_state import find_cause, find_obstacle_place, find_queue_fault

    transformations = queues.known.configuration.resources.transformations
    place, others = find_obstacle_place(manifest.object, obstacle, transformations)
    if queues.find_refused(manifest.object):
        # The API server refuses the queue, which is reported there.
        return
    if obstacle.code in ("namespace", "queue") and (fault := find_queue_fault(manifest.object, queues)):
        # All jobs of the queue have this finding, which is shown once.
        message = Sentence("the job is never admitted: {}; {}", fault.message, fault.change)
        severity, related, finish = None if fault.is_certain else WARNING, fault.related, None
        if fault.is_of_namespace:
            compared = (find_at(manifest.metadata, "namespace"), manifest.name_place)
            related, finish = (*related, *((each, "") for each in compared)), _blame_namespace
        yield Violation(place, message, related, severity, at=fault.at, finish=finish)
        return
    is_unmanaged = obstacle.code == "unmanaged"
    message = Sentence("the job is {}: {}", "unmanaged" if is_unmanaged else "never admitted", obstacle.message)
    blame = partial(_blame, len(others)) if obstacle.code in ("quota", "resource") else None
    related = (*others, *find_cause(obstacle, queues.find_cluster_queue(manifest.object), queues))
    # A job of an existing RayCluster uses the quota of that.
    is_certain = queues.is_declared and "clusterSelector" not in manifest.spec
    severity = WARNING if is_unmanaged and not is_certain else None
    message += f"; {obstacle.change}" if obstacle.change else ""
    yield Violation(place, message, related, severity, finish=blame)


def _blame_namespace(problem: Problem, _: bool) -> Problem:
    """Return a problem at the namespace if another file than that of the job sets it."""
    *related, (namespace, _text), (name, _other) = problem.related
    own, job = location_of(namespace), location_of(name)
    at = namespace if own and job and own.file != job.file else problem.at
    return problem._replace(at=at, related=tuple(related))


def _blame(count: int, problem: Problem, _: bool) -> Problem:
    """Return a problem at the factor of the request that a patch raised, if one did; others come first."""
    from jobgen.check.raised_amounts import find_raised, relate_factors

    others, causes = problem.related[:count], problem.related[count:]
    raised = find_raised([*(node for node, _ in others), problem.node])
    if raised is None:
        return problem
    factors = [*others, (problem.node, "the request of each pod")]
    return problem._replace(at=raised, related=(*relate_factors(raised, factors), *causes))


_HOST = "kubernetes.io/hostname"


@rule("queue", WARNING)
def stuck_after_admission(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """A job that Kueue admits, but whose pods do not start, so that it holds its quota.

    - The queue's topology has no level `kubernetes.io/hostname`. Kueue then does not look at the taints of single
      nodes: it counts nodes whose taints the pods do not tolerate as free, and sends pods there. The rule applies if
      Node objects are among the files, or `cluster.kueue.nodes` lists nodes.
    - Flavors of two resource groups set the same node label to different values. Pods that use both get only one of
      them as node selector, and cannot run on the nodes of the other.
    - `managedBy` of the job is MultiKueue, but its queue has no such admission check: no cluster runs the job.

    Add the level to the Topology, or a toleration to the flavor; use one flavor for the labels; remove `managedBy`.

    When to turn it off: if the taints are temporary, for example during maintenance, accept the finding with an end
    date on the Topology or the flavor.
    """
    label = get_kueue_queue(manifest)
    queue = queues.find_cluster_queue(manifest.object) if label is not None else {}
    if not queue:
        return
    groups = [as_mapping(group) for group in as_list(get_path(queue, "spec", "resourceGroups"))]
    flavors = [[_find_flavor(each, queues) for each in as_list(group.get("flavors"))] for group in groups]
    yield from _check_taints(manifest, [each for several in flavors for each in several], queues)
    yield from _check_labels(manifest, groups, flavors)
    yield from _check_manager(manifest, queue, queues)


def _find_flavor(item: Plain, queues: QueueState) -> Mapping[str, Plain]:
    return queues.objects.get(("ResourceFlavor", "", as_text(as_mapping(item).get("name"))), {})


def _check_taints(manifest: Manifest, flavors: list[Mapping[str, Plain]], queues: QueueState) -> Iterator[Violation]:
    from jobgen.features.kueue.match import is_blocking, is_tolerated

    for flavor in flavors:
        spec = as_mapping(flavor.get("spec"))
        topology = as_text(spec.get("topologyName"))
        levels = as_list(get_path(queues.objects.get(("Topology", "", topology), {}), "spec", "levels"))
        if not levels or as_text(as_mapping(levels[-1]).get("nodeLabel")) == _HOST:
            continue
        for pod in manifest.pods:
            several = (*as_list(spec.get("tolerations")), *as_list(pod.spec.get("tolerations")))
            tolerations = [dict(as_mapping(each)) for each in several]
            kept = (
                next((each for each in node if is_blocking(each) and not is_tolerated(each, tolerations)), None)
                for node in _list_taints(spec, queues)
            )
            taints = [taint for taint in kept if taint is not None]
            if taints:
                shown = f"{taints[0].get('key', '')}={taints[0].get('value') or ''}:{taints[0].get('effect', '')}"
                message = Sentence("topology `{}` has no level `{}`, so Kueue counts {}", topology, _HOST, len(taints))
                message += f" {'node' if len(taints) == 1 else 'nodes'} with the taint `{shown}`, which the pods do not"
                message += " tolerate, as free, and pods sent there stay Pending; add the level, and a toleration"
                related = ((levels[-1], "the lowest level"),)
                yield Violation(_find_label(manifest), message, related, evidence=())
                return


def _find_label(manifest: Manifest) -> At:
    """Return the place of Kueue's queue label."""
    return At(manifest.labels, QUEUE_LABEL)


def _list_taints(flavor: Mapping[str, Plain], queues: QueueState) -> Iterator[list[dict[str, Any]]]:
    """Yield the taints of each node that has the labels of a flavor."""
    wanted = {str(key): as_text(value) for key, value in as_mapping(flavor.get("nodeLabels")).items()}
    for node in queues.known.list_nodes():
        labels = {str(key): str(value) for key, value in as_mapping(get_path(node, "metadata", "labels")).items()}
        if wanted.items() <= labels.items():
            yield [dict(as_mapping(each)) for each in as_list(get_path(node, "spec", "taints"))]


def _check_labels(
    manifest: Manifest, groups: list[Mapping[str, Plain]], flavors: list[list[Mapping[str, Plain]]]
) -> Iterator[Violation]:
    """Check groups with one flavor each: which of several Kueue chooses is not known."""
    chosen: dict[str, tuple[str, str]] = {}
    for group, several in zip(groups, flavors, strict=True):
        covered = set(map(as_text, as_list(group.get("coveredResources"))))
        uses = any(covered & {*each.requests, *each.limits} for pod in manifest.pods for each in pod.containers)
        if len(several) != 1 or not uses:
            continue
        name = as_text(get_path(several[0], "metadata", "name"))
        labels = as_mapping(get_path(several[0], "spec", "nodeLabels"))
        for key, node in labels.items():
            value, other = chosen.setdefault(str(key), (as_text(node), name))
            if value != as_text(node):
                message = Sentence(
                    "flavors `{}` and `{}` of the queue set the node label `{}` to `{}` and", other, name, key, value
                )
                message += f" `{as_text(node)}`, and pods get only one of them, so they cannot run on both"
                related = ((At(labels, key), f"flavor `{name}`"),)
                yield Violation(_find_label(manifest), Sentence("{}; use equal labels", message), related, evidence=())
                return


def _check_manager(manifest: Manifest, queue: Mapping[str, Plain], queues: QueueState) -> Iterator[Violation]:
    paths = (("managedBy",), ("runPolicy", "managedBy"))
    place = next(filter(None, (find_at(manifest.spec, *path) for path in paths)), None)
    checks = as_list(get_path(queue, "spec", "admissionChecks"))
    strategy = as_list(get_path(queue, "spec", "admissionChecksStrategy", "admissionChecks"))
    names = {*map(as_text, checks), *(as_text(as_mapping(each).get("name")) for each in strategy)}
    known = {name: queues.objects.get(("AdmissionCheck", "", name)) for name in names if name}
    controllers = [as_text(get_path(check or {}, "spec", "controllerName")) for check in known.values()]
    # A check that is not among the files may be one of MultiKueue.
    if (
        place is not None
        and as_text(place.node) == MULTIKUEUE
        and MULTIKUEUE not in controllers
        and "" not in controllers
    ):
        message = Sentence(
            "`managedBy` is `{}`, but the queue has no admission check of MultiKueue, so no controller", MULTIKUEUE
        )
        yield Violation(
            place, Sentence("{} runs the job after its admission; remove `managedBy`", message), evidence=(MULTIKUEUE,)
        )


@rule("queue", WARNING)
def uncounted_claim(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """A job with a queue whose claims for devices Kueue cannot count.

    Before 0.18, Kueue ignores the `resourceClaims` of pods by default. The job is admitted as if it used no devices, so
    a team can use more of them than its quota. Since 0.18, Kueue does not admit a job with a claim that it cannot
    count, such as one for a DeviceClass that `deviceClassMappings` does not have. The rule applies if the version of
    Kueue is declared.

    Update Kueue to 0.18 or later, declare `deviceClassMappings`, and give the resource a quota. With Kueue 0.14 to
    0.17, also turn on the feature gate `DynamicResourceAllocation`.

    When to turn it off: when the DeviceClass has its mapping in a Kueue configuration that is not in the
    repository, declare `deviceClassMappings` in the overlay.
    """
    from jobgen.features.kueue.cluster_objects import CHARGED, IGNORED, treat_claims

    configuration = queues.known.configuration
    if not queues.is_declared or get_kueue_queue(manifest) is None:
        return
    seen: set[tuple[str, str]] = set()
    if treat_claims(configuration.gates) == CHARGED:
        yield from _check_counted(manifest, queues)
    if treat_claims(configuration.gates) != IGNORED:
        return
    for claim in (claim for pod in manifest.pods for claim in pod.claims.values()):
        # Channels between GPUs are no devices of a quota.
        is_empty = (
            claim.definition is not None and claim.is_counted and not any(claim.definition.list_devices().values())
        )
        if claim.key in seen or not claim.key[1] or is_empty:
            continue
        seen.add(claim.key)
        version = ".".join(map(str, configuration.version))
        message = Sentence(
            "Kueue {} does not count the devices of the claim `{}`, so the job uses them without", version, claim.key[1]
        )
        change = "update Kueue to 0.18 or later, and declare `deviceClassMappings` for the device class"
        yield Violation(claim.place, Sentence("{} quota; {}", message, change), evidence=(claim.key[1],))


def _check_counted(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """Check claims that Kueue charges as resources."""
    from jobgen.features.kueue.claims import charge_claims, read_claim_facts
    from jobgen.features.kueue.objects import find_namespace

    facts = read_claim_facts(queues.known)
    for pod in manifest.pods:
        claims = [claim for claim in pod.claims.values() if claim.definition is not None]
        spec, namespace = pod.spec, find_namespace(manifest.object)
        reason = charge_claims(spec, namespace, facts) if claims else {}
        if isinstance(reason, str):
            message = Sentence(
                "the job is never admitted: {}; declare `deviceClassMappings` of Kueue in `cluster.kueue`", reason
            )
            yield Violation(claims[0].place, Sentence("{}, or change the claim", message), evidence=())
            return
