"""Two jobs that write to one place."""

from collections.abc import Iterator

from jobgen.outputs import outputs
from jobgen.overlay import Cluster
from jobgen.queues import is_suspended
from jobgen.rules import WARNING, Fault, Row, rule
from jobgen.view import Manifest
from jobgen.ways import to_field


def gather(manifest: Manifest) -> Iterator[Row]:
    """The places outside of its pods that a job writes to, each once."""
    if not manifest.roles or is_suspended(manifest):
        return
    seen = set()
    for role in manifest.roles:
        for number, container in enumerate(role.pod.containers):
            for output in outputs(container):
                if output.place not in seen:
                    seen.add(output.place)
                    way = to_field(container, number, output.field)
                    yield Row((output.place, output.spelling, manifest.name), (*way, *output.way))


@rule("fleet", WARNING, gather=gather)
def shared_output(rows: list[Row], cluster: Cluster) -> Iterator[Fault]:
    """Two jobs of one environment that write to the same folder or bucket.

    They overwrite each other's checkpoints and logs, and one may go on from where the other stopped. Give each job a
    place of its own.
    """
    del cluster
    first: dict[tuple[str, ...], Row] = {}
    for row in rows:
        place, spelling, _ = row.fact
        other = first.setdefault(place, row)
        if other.job != row.job:
            message = f"`{other.fact[2]}` writes to `{spelling}` too; give each job a place of its own"
            yield Fault(row, message, ((other, "written here too"),))
