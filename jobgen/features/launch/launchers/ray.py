"""Launchers in the entry point of a RayJob, which Ray runs once, on the head."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.features.launch.launchers.torchrun import ALONE_RULE
from jobgen.features.launch.values import Fault, Pods, Program
from jobgen.model.data import value_of
from jobgen.model.finding import pluralize


def check_entrypoint(program: Program, pods: Pods) -> Iterator[Fault]:
    """Report a launcher that starts no processes on the workers."""
    manifest = pods.container.pod.manifest
    workers = sum(role.count for role in manifest.roles if role.name != "head")
    on_worker = workers == 1 and value_of(manifest.spec.get("entrypointNumGpus"))
    if workers and not on_worker:
        message = f"Ray runs `{program.path}` on one pod, and the {pluralize(workers, 'worker')} stay idle"
        yield Fault(program.node, f"{message}; start the processes with Ray Train", False, rule=ALONE_RULE)
