"""Prepare the environments and the policies of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobgen import cache
from jobgen.model.data import value_of
from jobgen.pipeline.environment import (
    EnvironmentRunner,
    PolicySource,
    overlay_errors,
    valid_environments,
)
from jobgen.pipeline.memory import Prepared
from jobgen.pipeline.redact_results import redact_shared
from jobgen.pipeline.result_cache import digest_files
from jobgen.pipeline.trace import Tracer
from jobgen.repo import layout
from jobgen.repo.files import File
from jobgen.report.coverage import HIDING_RULES

if TYPE_CHECKING:
    from jobgen.pipeline.load_policies import PolicyFiles
    from jobgen.pipeline.run_state import RunState


def prepare_run(run: RunState) -> Prepared:
    """Prepare the environments of a run."""
    tracer = run.memory.make_tracer(run.project) if run.memory else Tracer(run.project)
    runners = _prepare_environments(run, tracer)
    found = tuple(redact_shared(run.project, run.findings)) if run.findings else ()
    layers = (run.policies, run.policy_files, run.membership, run.complete, run.unchecked_rules)
    return Prepared(runners, tracer, found, run.environments, *layers)


def _prepare_environments(run: RunState, tracer: Tracer) -> list[EnvironmentRunner]:
    """The environments that can be rendered; errors in layers and policies are added to the findings."""
    run.findings += overlay_errors(run.project, tracer, None if run.checked else run.environments)
    policies = _load_policies(run) if run.checked else None
    names: dict[int, str] = {}
    runners = [EnvironmentRunner(run.project, name, policies, names, run.entries) for name in run.environments]
    run.findings += (finding for runner in runners for finding in runner.overlay_findings(tracer))
    valid = valid_environments(run.findings, runners, run.project.overlays)
    run.complete = len(valid) == len(runners) and not run.failed
    if any(finding.rule in HIDING_RULES for finding in run.findings):
        run.unchecked_rules = frozenset(run.policies)
    if run.checked and run.entries is None and len(valid) == len(runners):
        from jobgen.pipeline.selectors import Membership

        run.membership = Membership(run.project, valid)
    if valid:
        run.environments = [runner.name for runner in valid]
    return valid


def _load_policies(run: RunState) -> PolicySource:
    """The policies of the repository; their errors are added to the findings."""
    files = tuple(layout.read_shipped_policies(run.project.root)), tuple(layout.read_own_policies(run.project.root))
    resources = tuple(
        (*str(value_of(kind.api_version)).split("/", 1), kind.plural) for kind in run.project.kinds if kind.plural
    )
    key = cache.make_key("policies", *map(digest_files, files), repr(resources))
    known = cache.get(key)
    if known is not None:
        # They are valid, so they are compiled only if an object has to be checked.
        run.policies = tuple(known.decode().split("\n"))
        return lambda: _compile_policies(*files).policies
    found = _compile_policies(*files, resources)
    run.findings += (*found.findings, *found.unused)
    run.policies = tuple(found.files)
    run.policy_files = found
    if not (found.findings or found.unused or found.unmatched):
        cache.put(key, "\n".join(run.policies).encode())
    return lambda: found.policies


def _compile_policies(shipped: tuple[File, ...], own: tuple[File, ...], resources: tuple[Any, ...] = ()) -> PolicyFiles:
    # Imported late: a render, and a lint of cached results, do not need CEL.
    from jobgen.pipeline.load_policies import compile_policy_files

    return compile_policy_files(shipped, own, resources)
