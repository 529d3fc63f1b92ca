"""JAX: `jax.distributed.initialize` in a script of the repository against the pods of the job."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.features.launch.arguments import Invariant, find_faults
from jobgen.features.launch.python_calls import find_call
from jobgen.features.launch.values import Fault, Pods, Program, World

_TABLE = (
    Invariant(
        "id count",
        lambda process, count: 0 <= process < count,
        "`jax.distributed.initialize` in line {line} of `{path}` has `process_id={id}` and `num_processes={count}` "
        "(JAX: `process_id and num_processes must be nonnegative, with process_id < num_processes. Got "
        "process_id={id}, num_processes={count}.`); pass the number of pods and the index of this one",
    ),
    Invariant(
        "count world",
        lambda count, world: count <= world,
        "`num_processes={count}` in line {line} of `{path}`, but the job starts {world} processes, so that JAX waits "
        "for processes that do not come; pass {world}",
    ),
)


def check(program: Program, world: World, pods: Pods) -> Iterator[Fault]:
    """Check the literal numbers of `jax.distributed.initialize` with each other and with the pods."""
    call = find_call(program, "jax.distributed.initialize")
    if call is None:
        return
    address = call.get("coordinator_address", 0, "")
    count, process = call.get("num_processes", 1, None), call.get("process_id", 2, None)
    manifest = pods.container.pod.manifest
    started = world.size if world.is_launched else pods.count
    # Pods of other jobs can take part, if the coordinator is not one of this job.
    is_own = isinstance(address, str) and (not address or address.startswith(manifest.name))
    numbers = {
        "id": process if isinstance(process, int) else None,
        "count": count if isinstance(count, int) else None,
        "world": started if is_own else None,
        "line": call.line,
        "path": program.path,
    }
    faults = find_faults(_TABLE, numbers, {}, program, pods)
    # Numbers that JAX refuses are not compared with the pods.
    yield from list(faults)[:1]
