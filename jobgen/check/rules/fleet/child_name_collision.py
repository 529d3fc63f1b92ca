"""Objects that operators create with a name that is taken."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Fact, FactViolation, rule
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.spec.overlay import Cluster

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


def collect(manifest: Manifest) -> Iterator[Fact]:
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


@rule("fleet", WARNING, collect=collect)
def child_name_collision(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """Two objects for which controllers create an object of the same kind and name.

    Controllers add to the name of an object to name what they create for it. A LeaderWorkerSet `a` has a StatefulSet
    `a-1` for its second group, and a LeaderWorkerSet `a-1` has one for its leaders. An MPIJob `a` has a ConfigMap
    `a-config`. The second object finds the name taken, and does not get its pods.

    Rename one of the objects.
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
        message = f"the {child[1]} `{child[2]}` of {kind} `{name}` has the same name as that of {other_kind}"
        message += f" `{other_name}`, so one of them does not get its pods; rename one of them"
        yield FactViolation(fact, message, ((other, f"the other {other_kind}"),))
