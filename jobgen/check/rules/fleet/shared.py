"""What several jobs of an environment share, and should not."""

from collections.abc import Iterable, Iterator
from typing import Any

from jobgen.check.rules import ERROR, WARNING, Fact, FactViolation, rule
from jobgen.k8s.kueue import is_suspended
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.object_paths import path_to_container_field, path_to_role
from jobgen.k8s.objects import Manifest
from jobgen.model.lazy_re import has_any
from jobgen.model.sentence import Sentence
from jobgen.spec.overlay import Cluster
from jobgen.spec.sweeps import SWEEP

# What operators create, by group and kind: `{name}` is the name of the object.
_CHILDREN = {
    ("kubeflow.org", "MPIJob"): "ConfigMap/{name}-config Secret/{name}-ssh Job/{name}-launcher",
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): "StatefulSet/{name}",
    ("ray.io", "RayCluster"): "Service/{name}-head-svc",
    ("ray.io", "RayService"): "Service/{name}-head-svc Service/{name}-serve-svc",
    ("trainer.kubeflow.org", "TrainJob"): "JobSet/{name}",
}
_GROUPS = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
# What they create for each item of a list, with a number: `<name>-<item>-<number>`.
_LISTED = {("batch.volcano.sh", "Job"): ("Pod", "tasks"), ("jobset.x-k8s.io", "JobSet"): ("Job", "replicatedJobs")}
# Kinds whose objects can have the name of such a child.
_OWN = {
    ("", "ConfigMap"),
    ("", "Pod"),
    ("", "Secret"),
    ("", "Service"),
    ("apps", "StatefulSet"),
    ("batch", "Job"),
    ("jobset.x-k8s.io", "JobSet"),
}
_SERVICES = "JAXJob MXJob PaddleJob PyTorchJob TFJob XGBoostJob".split()


def collect_children(manifest: Manifest) -> Iterator[Fact]:
    """Yield the objects that exist because of an object: the kind, the name, and how many numbers are added to it."""
    if manifest.name:
        for kind, name, count in _list_children(manifest):
            own = (manifest.kind_name, manifest.name)
            yield Fact(((manifest.namespace, kind, name), count, own), ("metadata", "name"))


def _list_children(manifest: Manifest) -> Iterator[tuple[str, str, int]]:
    key, name = (manifest.group, manifest.kind_name), manifest.name
    if key in _OWN:
        yield manifest.kind_name, name, 0
    for child in _CHILDREN.get(key, "").format(name=name).split():
        kind, _, child_name = child.partition("/")
        yield kind, child_name, 0
    for item in as_list(manifest.spec.get(_LISTED[key][1])) if key in _LISTED else ():
        yield _LISTED[key][0], f"{name}-{as_text(as_mapping(item).get('name'))}", _count(item)
    yield from _list_numbered(manifest, key)


def _list_numbered(manifest: Manifest, key: tuple[str, str]) -> Iterator[tuple[str, str, int]]:
    """Yield what is named after the object itself, or after its roles, and a number."""
    name, spec = manifest.name, manifest.spec
    if key == ("apps", "StatefulSet"):
        yield "Pod", name, _count(spec)
    # The workers of each group are a StatefulSet with the name of their leader.
    elif key == _GROUPS and (as_integer(get_path(spec, "leaderWorkerTemplate", "size")) or 1) > 1:
        yield "StatefulSet", name, _count(spec)
    elif manifest.group == "kubeflow.org" and manifest.kind_name in _SERVICES:
        yield from (("Service", f"{name}-{role.replica_type.lower()}", role.count) for role in manifest.roles)


def _count(item: object) -> int:
    replicas = as_integer(item.get("replicas")) if isinstance(item, dict) else None
    return 1 if replicas is None else max(replicas, 0)


@rule("fleet", WARNING, collect=collect_children)
def child_name_collision(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """Two objects for which controllers create an object of the same kind and name.

    Controllers add to the name of an object to name what they create for it. A LeaderWorkerSet `a` has a StatefulSet
    `a-1` for its second group, and a LeaderWorkerSet `a-1` has one for its leaders. An MPIJob `a` has a ConfigMap
    `a-config`. The second object finds the name taken, and does not get its pods.

    Rename one of the objects.

    When to turn it off: objects that never exist at the same time cannot collide; put them into different
    environments, or accept one of them by its path.
    """
    del cluster
    exact: dict[tuple[str, str, str], Fact] = {}
    numbered: dict[tuple[str, str, str], Fact] = {}
    found: set[tuple[object, ...]] = set()
    for fact in (fact for fact in facts if not fact.value[1]):
        other = exact.setdefault(fact.value[0], fact)
        yield from _report(fact, other, fact.value[0], found)
    for fact in (fact for fact in facts if fact.value[1]):
        other = numbered.setdefault(fact.value[0], fact)
        namespace, kind, name = fact.value[0]
        yield from _report(fact, other, (namespace, kind, f"{name}-0"), found)
    for (namespace, kind, name), fact in exact.items():
        prefix, _, number = name.rpartition("-")
        other = numbered.get((namespace, kind, prefix), fact)
        if len(number) < 10 and number.isdecimal() and str(int(number)) == number and int(number) < other.value[1]:
            yield from _report(fact, other, (namespace, kind, name), found)


def _report(
    fact: Fact, other: Fact, child: tuple[str, str, str], found: set[tuple[object, ...]]
) -> Iterator[FactViolation]:
    """Report an object whose child has the name of another one's, once for each pair."""
    (kind, name), (other_kind, other_name) = fact.value[2], other.value[2]
    # `duplicate-identity` and `pod-name-collision` report objects with one name.
    is_reported = (kind, name) == (other_kind, other_name) or (name == other_name and child[1] in ("Pod", "Service"))
    pair = (child[0], fact.value[2], other.value[2])
    if not is_reported and pair not in found:
        found.add(pair)
        message = Sentence(
            "the {} `{}` of {} `{}` has the same name as that of {}", child[1], child[2], kind, name, other_kind
        )
        message += f" `{other_name}`, so one of them does not get its pods; rename one of them"
        yield FactViolation(fact, message, ((other, f"the other {other_kind}"),))


_RANDOM = "xxxxx"


def collect_pods(manifest: Manifest) -> Iterator[Fact]:
    """Yield what the names of a job's pods are made of: its namespace and name, and its roles."""
    kind = manifest.kind
    # A suffix with random characters makes names differ.
    if kind is not None and kind.name_suffix and kind.shape != "one" and _RANDOM not in kind.name_suffix:
        group = as_text(manifest.object.get("apiVersion")).partition("/")[0]
        roles = tuple(role.replica_type.lower() for role in manifest.roles)
        yield Fact(((manifest.namespace, manifest.name), (group, kind.name), roles), ("metadata", "name"))


@rule("fleet", ERROR, collect=collect_pods)
def pod_name_collision(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """Two jobs of different kinds with the same name, whose pods would also have the same names.

    Pods and Services are named `<job>-<role>-<index>` whatever the kind. The second job finds its pod names taken by
    the first, and never starts.

    Rename one of the jobs.

    When to turn it off: kinds of two operators in two clusters never meet. Select them in different environments,
    and the rule no longer compares them.
    """
    del cluster
    first: dict[tuple[str, str], Fact] = {}
    for fact in facts:
        (namespace, name), kind, roles = fact.value
        other = first.setdefault((namespace, name), fact)
        shared = [role for role in roles if role in other.value[2]]
        # `duplicate-identity` reports two jobs of one kind. Without a name, the server generates one.
        if name and shared and other.value[1] != kind:
            message = Sentence("the pod name `{}-{}-0` is also used by a {}", name, shared[0], other.value[1][1])
            yield FactViolation(fact, Sentence("{}; rename one of the jobs", message), ((other, "the other job"),))


_BUDGET = "PodDisruptionBudget"


def collect_selectors(manifest: Manifest) -> Iterator[Fact]:
    """Yield what an object selects, if it selects by labels alone, and the labels of its pods."""
    key = (manifest.group, manifest.kind_name)
    if key not in (("batch", "Job"), ("policy", _BUDGET)):
        return
    selector = as_mapping(manifest.spec.get("selector"))
    is_manual = manifest.spec.get("manualSelector") is True or manifest.kind_name == _BUDGET
    wanted = _list_labels(selector.get("matchLabels")) if is_manual and not selector.get("matchExpressions") else ()
    labels = _list_labels(get_path(manifest.spec, "template", "metadata", "labels"))
    if wanted or labels:
        path = ("spec", "selector") if wanted else ("metadata", "name")
        yield Fact((manifest.kind_name, manifest.namespace, manifest.name, wanted, labels), path)


def _list_labels(node: object) -> tuple[tuple[str, str], ...]:
    labels = node if isinstance(node, dict) else {}
    return tuple(sorted((str(key), as_text(value)) for key, value in labels.items()))


@rule("fleet", WARNING, collect=collect_selectors)
def overlapping_selectors(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A Job with a manual selector that also selects the pods of another Job, or two budgets for the same pods.

    A Job counts and deletes the pods that it selects. If another Job created them, the Job that has finished
    deletes the pods of the other one, or takes their success for its own. A pod with more than one PodDisruptionBudget
    cannot be evicted, so its node cannot be drained.

    Remove `manualSelector` and `selector`: Kubernetes then selects by a label that only this Job has.

    When to turn it off: one Job that adopts the pods of a predecessor on purpose is the reason for
    `manualSelector`: suppress it on the selector during the handover.
    """
    del cluster
    budgets: dict[tuple[str, object], Fact] = {}
    jobs: dict[tuple[str, tuple[str, str]], list[Fact]] = {}
    for fact in facts:
        kind, namespace, _, wanted, _ = fact.value
        if kind != _BUDGET:
            for label in fact.value[4]:
                jobs.setdefault((namespace, label), []).append(fact)
        elif (other := budgets.setdefault((namespace, wanted), fact)) is not fact and other.value[2] != fact.value[2]:
            message = Sentence(
                "`{}` has the same selector, and pods with two PodDisruptionBudgets cannot be evicted", other.value[2]
            )
            yield FactViolation(fact, Sentence("{}; remove one of them", message), ((other, "the other budget"),))
    for fact in (each for each in facts if each.value[0] != _BUDGET and each.value[3]):
        _, namespace, name, wanted, _ = fact.value
        several = min((jobs.get((namespace, label), []) for label in wanted), key=len)
        others = (each for each in several if each.value[2] != name)
        taken = next((each for each in others if set(wanted) <= set(each.value[4])), None)
        if taken is not None:
            message = Sentence(
                "the selector also selects the pods of Job `{}`, so one Job can count or delete", taken.value[2]
            )
            advice = "remove `manualSelector` and `selector`"
            yield FactViolation(
                fact, Sentence("{} the pods of the other; {}", message, advice), ((taken, "the other Job"),)
            )


def collect_outputs(manifest: Manifest) -> Iterator[Fact]:
    """Yield each location outside of its pods that a job writes to."""
    if not manifest.roles or is_suspended(manifest):
        return
    seen = set()
    for role in manifest.roles:
        for number, container in enumerate(role.pod.containers):
            if not has_any(container.search_text, ("--", "DIR=", "_PATH=")):
                continue
            # Imported late: many commands name no folder.
            from jobgen.k8s.output_paths import find_output_paths

            for output in find_output_paths(container):
                if output.target not in seen:
                    seen.add(output.target)
                    way = path_to_container_field(container, number, output.field)
                    sweep = as_text(manifest.labels.get(SWEEP))
                    yield Fact((output.target, output.text, manifest.name, sweep), (*way, *output.path))


@rule("fleet", WARNING, collect=collect_outputs)
def shared_output(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """Two jobs of one environment that write to the same directory or bucket path.

    They overwrite each other's checkpoints and logs, and one can resume from a checkpoint of the other. Members of one
    sweep are meant to run at the same time, so for them it is an error.

    Give each job an output path of its own; in a sweep, put a matrix variable into the path.

    When to turn it off: jobs that continue from each other's checkpoints, one after another, share a folder on
    purpose. Suppress it on the path in the later job, naming the order.
    """
    del cluster
    first: dict[tuple[str, ...], Fact] = {}
    sweeps: dict[tuple[Any, ...], list[Fact]] = {}
    for fact in facts:
        place, spelling, _, sweep = fact.value
        other = first.setdefault(place, fact)
        if sweep:
            sweeps.setdefault((place, sweep), []).append(fact)
        if other.job != fact.job and not (sweep and sweep == other.value[3]):
            message = Sentence(
                "job `{}` also writes to `{}`; give each job its own output path", other.value[2], spelling
            )
            yield FactViolation(fact, message, ((other, "also written here"),))
    for (_, sweep), (fact, *others) in sweeps.items():
        if others:
            message = Sentence("{} jobs of sweep `{}` write to `{}`", len(others) + 1, sweep, fact.value[1])
            yield FactViolation(fact, Sentence("{}; put a matrix variable into the path", message), severity=ERROR)


_ONE_NODE, _ONE_POD = "ReadWriteOnce", "ReadWriteOncePod"


def collect_claims(manifest: Manifest) -> Iterator[Fact]:
    """Yield the access modes of a claim, or the claims that a job mounts with the number of pods that do."""
    if manifest.kind_name == "PersistentVolumeClaim":
        modes = tuple(as_text(mode) for mode in as_list(manifest.spec.get("accessModes")))
        yield Fact(((manifest.namespace, manifest.name), modes, 0, ""), ("spec", "accessModes"))
        return
    pods: dict[str, int] = {}
    paths: dict[str, tuple[str | int, ...]] = {}
    for role in manifest.roles:
        for number, volume in enumerate(as_list(role.pod.spec.get("volumes"))):
            claim = as_text(get_path(volume, "persistentVolumeClaim", "claimName"))
            if claim:
                pods[claim] = pods.get(claim, 0) + role.count
                steps = ("template", "spec", "volumes", number, "persistentVolumeClaim", "claimName")
                paths.setdefault(claim, (*path_to_role(role), *steps))
    for claim, count in pods.items():
        yield Fact(((manifest.namespace, claim), None, count, manifest.name), paths[claim])


@rule("fleet", WARNING, collect=collect_claims)
def shared_single_node_claim(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A `ReadWriteOnce` or `ReadWriteOncePod` claim that several pods mount.

    Pods on any node other than the first cannot mount a `ReadWriteOnce` claim and hang in `ContainerCreating`. Of the
    pods that mount a `ReadWriteOncePod` claim, only one ever starts, which is an error. In folders without
    `jobgen.yaml`, the pods of one object are compared with the claims of their folder.

    Use `ReadWriteMany`, or one claim for each pod.

    When to turn it off: if all pods run on one node by an affinity, `ReadWriteOnce` is enough: suppress the finding
    on the claim and name the affinity.
    """
    del cluster
    claims = {fact.value[0]: fact for fact in facts if fact.value[1] is not None}
    first: dict[tuple[str, str], Fact] = {}
    for fact in facts:
        identity, modes_of_claim, *_ = fact.value
        if modes_of_claim is None and identity in claims:
            modes = set(claims[identity].value[1])
            if modes in ({_ONE_NODE}, {_ONE_POD}):
                yield from _check_use(fact, first.setdefault(identity, fact), claims[identity], modes.pop())


def _check_use(fact: Fact, first: Fact, claim: Fact, mode: str) -> Iterator[FactViolation]:
    """Check a job's use of a claim: by several pods of its own, or together with another job."""
    (_, name), _, pods, _ = fact.value
    access = ((claim, f"its access mode is `{mode}`"),)
    if pods > 1:
        # Imported late: few claims are shared.
        from jobgen.check.cluster.claims import describe_shared_claim

        message = describe_shared_claim(name, pods, mode)
        yield FactViolation(fact, message, access, severity=ERROR if mode == _ONE_POD else WARNING)
    elif first is not fact and pods:
        message = f"job `{first.value[3]}` also mounts the claim `{name}`, which is {mode}; use `ReadWriteMany`"
        yield FactViolation(fact, message, (*access, (first, "also mounted here")))


@rule("fleet", WARNING, collect=collect_claims)
def misspelled_claim(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A claim that the repository does not have, one slip of the keyboard away from a claim that it has.

    The pods of a job wait in `Pending` for a claim that does not exist. Only claims of the same namespace are compared.
    If `cluster.complete` lists claims, `unknown-reference` reports missing claims.

    Correct the name.

    When to turn it off: two claims that differ in one letter can both exist; suppress the name in the pod if the
    second one was created by hand.
    """
    if "PersistentVolumeClaim" in cluster.complete:
        return
    claims: dict[str, dict[str, Fact]] = {}
    for fact in facts:
        if fact.value[1] is not None:
            claims.setdefault(fact.value[0][0], {})[fact.value[0][1]] = fact
    for fact in facts:
        (namespace, name), modes, *_ = fact.value
        known = claims.get(namespace, {})
        if modes is None and known and name not in known and (meant := _find_meant(name, known)):
            message = Sentence(
                "the repository has no claim `{}` in namespace `{}`; did you mean `{}`?", name, namespace, meant
            )
            yield FactViolation(fact, message, ((known[meant], "the claim"),), evidence=(name,))


def _find_meant(name: str, known: Iterable[str]) -> str:
    # Imported late: most names are right.
    from jobgen.model.meant import find_meant

    return find_meant(name, known)
