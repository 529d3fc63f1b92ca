"""Report the faults of a launch as violations of the rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import ERROR, INFO, WARNING, Violation
from jobgen.features.launch.signs import has_launch
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node, TracedScalar

if TYPE_CHECKING:
    from jobgen.features.launch.values import Fault


def list_violations(manifest: Manifest, rule: str) -> Iterator[Violation]:
    """Yield the faults of a job that a rule reports."""
    if not has_launch(manifest):
        return
    # Most manifests launch nothing.
    from jobgen.features.launch.judge import find_faults

    yield from (_to_violation(fault) for fault in find_faults(manifest) if fault.rule == rule)


def list_settings(manifest: Manifest) -> Iterator[Violation]:
    """Yield the variables of a job that do not fit it."""
    # Few jobs have such variables.
    from jobgen.features.launch.settings import check_settings
    from jobgen.features.launch.variable_names import check_names

    yield from map(_to_violation, (*check_settings(manifest), *check_names(manifest)))


def _to_violation(fault: Fault) -> Violation:
    severity = ERROR if fault.is_error else INFO if fault.is_info else WARNING
    related = (*fault.related, *_list_overrides(fault))
    at, inside = (fault.at, fault.inside) if fault.at is not None else (None, None)
    return Violation(fault.node, fault.message, related, severity, fault.fix, False, at=at, inside=inside)


def _list_overrides(fault: Fault) -> Iterator[tuple[Node, str]]:
    """Yield the compared values that an overlay has changed, each with what it changed."""
    seen: set[object] = set()
    for node, text in fault.related:
        old = node.overridden if isinstance(node, TracedScalar) else None
        if text or not isinstance(node, TracedScalar) or not isinstance(old, TracedScalar) or node.location in seen:
            continue
        seen.add(node.location)
        if not old.layer.startswith("kind "):
            # The number of workers is one less than the number of pods that is written.
            before, after = (each.written or each.value for each in (old, node))
            yield node, f"{node.layer} overrides `{before}` of {old.layer} with `{after}`"


def list_too_large(manifest: Manifest) -> Iterator[Violation]:
    """Yield the models of a job that cannot fit into the memory of its GPUs."""
    if not has_launch(manifest):
        return
    from jobgen.features.launch import memory
    from jobgen.features.launch.judge import judge_manifest

    for judged in judge_manifest(manifest, is_brief=True):
        stages = (each for stage in judged.stages if stage.program.is_certain for each in stage.trainers)
        for stage in stages:
            for fault in memory.check(stage.program, stage.world, judged.launch.pods):
                yield Violation(fault.node, fault.message, (*fault.related, *_list_overrides(fault)))
