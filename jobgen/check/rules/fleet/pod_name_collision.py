"""Two jobs whose pods have the same names."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Fact, Violation, rule
from jobgen.k8s.objects import Manifest, as_text
from jobgen.spec.overlay import Cluster


def collect(manifest: Manifest) -> Iterator[Fact]:
    """What the pods of a job are called: by its namespace and name, and its roles."""
    kind = manifest.kind
    if kind is not None and kind.name_suffix and kind.shape != "one":
        group = as_text(manifest.object.get("apiVersion")).partition("/")[0]
        roles = tuple(role.replica_type.lower() for role in manifest.roles)
        yield Fact(((manifest.namespace, manifest.name), (group, kind.name), roles), ("metadata", "name"))


@rule("fleet", ERROR, collect=collect)
def pod_name_collision(rows: list[Fact], cluster: Cluster) -> Iterator[Violation]:
    """Two jobs of different kinds and one name, whose pods would have the same names.

    Pods and services are called `<job>-<role>-<number>`, whatever the kind: the second job finds its pods taken by the
    first, and never starts. Rename one of them.
    """
    del cluster
    first: dict[tuple[str, str], Fact] = {}
    for row in rows:
        (namespace, name), kind, roles = row.fact
        other = first.setdefault((namespace, name), row)
        shared = [role for role in roles if role in other.fact[2]]
        # One kind twice is another rule's; without a name the server makes one.
        if name and shared and other.fact[1] != kind:
            message = f"pods called `{name}-{shared[0]}-0` are those of a {other.fact[1][1]} too"
            yield Violation(row, f"{message}; rename one of the jobs", ((other, "the other job"),))
