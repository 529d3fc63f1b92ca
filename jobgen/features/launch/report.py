"""Report the faults of a launch as violations of the rules."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation
from jobgen.features.launch import memory
from jobgen.features.launch.judge import find_faults, judge_manifest
from jobgen.k8s.objects import Manifest


def list_violations(manifest: Manifest, rule: str) -> Iterator[Violation]:
    """Yield the faults of a job that a rule reports."""
    if not manifest.pods:
        return
    for fault in find_faults(manifest):
        if fault.rule == rule:
            severity = ERROR if fault.is_error else WARNING
            yield Violation(fault.node, fault.message, fault.related, severity, fault.fix, safe=False)


def list_too_large(manifest: Manifest) -> Iterator[Violation]:
    """Yield the models of a job that cannot fit into the memory of its GPUs."""
    for judged in judge_manifest(manifest) if manifest.pods else ():
        stages = (each for stage in judged.stages if stage.program.is_certain for each in stage.trainers)
        for stage in stages:
            for fault in memory.check(stage.program, stage.world, judged.launch.pods):
                yield Violation(fault.node, fault.message, fault.related)
