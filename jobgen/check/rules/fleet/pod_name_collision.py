"""Jobs whose pods have the same names."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Fact, FactViolation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.spec.overlay import Cluster

_RANDOM = "xxxxx"


def collect(manifest: Manifest) -> Iterator[Fact]:
    """Yield what the names of a job's pods are made of: its namespace and name, and its roles."""
    kind = manifest.kind
    # A suffix with random characters makes names differ.
    if kind is not None and kind.name_suffix and kind.shape != "one" and _RANDOM not in kind.name_suffix:
        group = as_text(manifest.object.get("apiVersion")).partition("/")[0]
        roles = tuple(role.replica_type.lower() for role in manifest.roles)
        yield Fact(((manifest.namespace, manifest.name), (group, kind.name), roles), ("metadata", "name"))


@rule("fleet", ERROR, collect=collect)
def pod_name_collision(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """Two jobs of different kinds with the same name, whose pods would also have the same names.

    Pods and Services are named `<job>-<role>-<index>` whatever the kind. The second job finds its pod names taken by
    the first, and never starts.

    Rename one of the jobs.
    """
    del cluster
    first: dict[tuple[str, str], Fact] = {}
    for fact in facts:
        (namespace, name), kind, roles = fact.value
        other = first.setdefault((namespace, name), fact)
        shared = [role for role in roles if role in other.value[2]]
        # `duplicate-identity` reports two jobs of one kind. Without a name, the server generates one.
        if name and shared and other.value[1] != kind:
            message = f"the pod name `{name}-{shared[0]}-0` is also used by a {other.value[1][1]}"
            yield FactViolation(fact, f"{message}; rename one of the jobs", ((other, "the other job"),))
