"""Jobs that write to the same location."""

from collections.abc import Iterator
from typing import Any

from jobgen.check.rules import ERROR, WARNING, Fact, FactViolation, rule
from jobgen.k8s.command_line import find_output_paths
from jobgen.k8s.kueue import is_suspended
from jobgen.k8s.nodes import as_text
from jobgen.k8s.object_paths import path_to_container_field
from jobgen.k8s.objects import Manifest
from jobgen.spec.overlay import Cluster
from jobgen.spec.sweeps import SWEEP


def collect(manifest: Manifest) -> Iterator[Fact]:
    """Yield each location outside of its pods that a job writes to."""
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
def shared_output(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """Two jobs of one environment that write to the same directory or bucket path.

    They overwrite each other's checkpoints and logs, and one can resume from a checkpoint of the other. Members of one
    sweep are meant to run at the same time, so for them it is an error.

    Give each job an output path of its own; in a sweep, put a matrix variable into the path.
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
            message = f"job `{other.value[2]}` also writes to `{spelling}`; give each job its own output path"
            yield FactViolation(fact, message, ((other, "also written here"),))
    for (_, sweep), (fact, *others) in sweeps.items():
        if others:
            message = f"{len(others) + 1} jobs of sweep `{sweep}` write to `{fact.value[1]}`"
            yield FactViolation(fact, f"{message}; put a matrix variable into the path", severity=ERROR)
