"""Report the faults of a launch as violations of the rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from jobgen.check.rules import ERROR, INFO, WARNING, Violation
from jobgen.features.launch.signs import has_launch
from jobgen.k8s.objects import Manifest
from jobgen.model.data import TracedScalar
from jobgen.model.finding import Problem
from jobgen.model.place import Place
from jobgen.model.sentence import replace_words

if TYPE_CHECKING:
    from jobgen.features.launch.judge import Judged
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


def list_local_servers(manifest: Manifest) -> Iterator[Violation]:
    """Yield the servers that only their own pod reaches."""
    # Few pods have a server.
    from jobgen.features.launch.local_servers import check_local

    yield from map(_to_violation, check_local(manifest))


def _to_violation(fault: Fault) -> Violation:
    severity = ERROR if fault.is_error else INFO if fault.is_info else WARNING
    at, inside = (fault.at, fault.inside) if fault.at is not None else (None, None)
    finish = partial(_finish, fault) if fault.related or fault.in_spec[0] or fault.locate is not None else None
    return Violation(
        fault.node, fault.message, fault.related, severity, fault.fix, False, at=at, inside=inside, finish=finish
    )


def report_mode(fault: Fault) -> Violation:
    """Report a file that no user can execute."""
    return Violation(fault.node, fault.message, finish=partial(_finish, fault))


def _finish(fault: Fault, problem: Problem, is_spec: bool) -> Problem:
    """Return a problem with its place in a file, the values that overlays have changed, and the words for a spec."""
    message = replace_words(problem.sentence, *fault.in_spec) if is_spec and fault.in_spec[0] else problem.sentence
    text = fault.locate() if fault.locate is not None else None
    related = problem.related
    if text is not None:
        # What a kind has by default was not written, and of what an overlay has changed, there is a note.
        nodes = [node for node, _ in related if type(node) is TracedScalar and not node.layer.startswith("kind ")]
        compared = (
            (node, "compared with this") for node in nodes if getattr(node.overridden, "layer", "kind ")[:5] == "kind "
        )
        related = (*related, (problem.node, "the file is read here"), *compared)
        problem = problem._replace(at=text, inside=fault.inside)
    return problem._replace(sentence=message, related=(*related, *_list_overrides(problem.related)))


def _list_overrides(related: Iterable[tuple[Place, str]]) -> Iterator[tuple[Place, str]]:
    """Yield the compared values that an overlay has changed, each with what it changed."""
    seen: set[object] = set()
    for node, text in related:
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
    # Most manifests launch nothing.
    from jobgen.features.launch.judge import judge_containers, judge_manifest

    # What is too large in the container of a role is too large in its copies.
    if any(_list_too_large(judge_containers(manifest))):
        yield from _list_too_large(judge_manifest(manifest))


def _list_too_large(judged_roles: Sequence[Judged]) -> Iterator[Violation]:
    from jobgen.features.launch import memory

    for judged in judged_roles:
        stages = (each for stage in judged.stages if stage.program.is_certain for each in stage.trainers)
        for stage in stages:
            for fault in memory.check(stage.program, stage.world, judged.launch.pods):
                yield Violation(fault.node, fault.message, fault.related, finish=partial(_finish, fault))
