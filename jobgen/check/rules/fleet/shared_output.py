"""Two jobs that write to one place."""

from collections.abc import Iterator
from typing import Any

from jobgen.check.rules import ERROR, WARNING, Fact, Violation, rule
from jobgen.k8s.kueue import is_suspended
from jobgen.k8s.objects import Manifest, as_text, path_to_container_field
from jobgen.k8s.output_paths import find_output_paths
from jobgen.spec.overlay import Cluster
from jobgen.spec.sweeps import SWEEP


def collect(manifest: Manifest) -> Iterator[Fact]:
    """The places outside of its pods that a job writes to, each once."""
    if not manifest.roles or is_suspended(manifest):
        return
    seen = set()
    for role in manifest.roles:
        for number, container in enumerate(role.pod.containers):
            for output in find_output_paths(container):
                if output.target not in seen:
                    seen.add(output.target)
                    way = path_to_container_field(container, number, output.field)
                    sweep = as_text(manifest.labels.get(SWEEP))
                    yield Fact((output.target, output.text, manifest.name, sweep), (*way, *output.path))


@rule("fleet", WARNING, collect=collect)
def shared_output(rows: list[Fact], cluster: Cluster) -> Iterator[Violation]:
    """Two jobs of one environment that write to the same folder or bucket.

    They overwrite each other's checkpoints and logs, and one may go on from where the other stopped. Give each job a
    place of its own. Members of one sweep run side by side for certain, so among them it is an error: put a variable of
    the matrix into the path.
    """
    del cluster
    first: dict[tuple[str, ...], Fact] = {}
    sweeps: dict[tuple[Any, ...], list[Fact]] = {}
    for row in rows:
        place, spelling, _, sweep = row.fact
        other = first.setdefault(place, row)
        if sweep:
            sweeps.setdefault((place, sweep), []).append(row)
        if other.job != row.job and not (sweep and sweep == other.fact[3]):
            message = f"`{other.fact[2]}` writes to `{spelling}` too; give each job a place of its own"
            yield Violation(row, message, ((other, "written here too"),))
    for (_, sweep), (row, *others) in sweeps.items():
        if others:
            message = f"{len(others) + 1} jobs of sweep `{sweep}` write to `{row.fact[1]}`"
            yield Violation(row, f"{message}; put a variable of the matrix into it", severity=ERROR)
