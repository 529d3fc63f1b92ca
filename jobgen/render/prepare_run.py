"""Prepare the environments of a run. Runs and revisions with the same layers share them."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.engine.inputs import digest_bytes
from jobgen.engine.store import Query, Store
from jobgen.model.finding import Finding
from jobgen.model.named_tuple import NamedTuple
from jobgen.render import config
from jobgen.render.config import ProjectConfig
from jobgen.render.environment import EnvironmentRunner, overlay_errors, valid_environments
from jobgen.render.redact_results import redact_shared
from jobgen.render.run_state import Checks, RunState
from jobgen.render.trace import Tracer
from jobgen.repo import layout
from jobgen.repo.commit import Folder, read_date
from jobgen.report.coverage import HIDING_RULES


class Prepared(NamedTuple):
    """The environments of a run, ready to process jobs, and what preparing them found."""

    runners: list[EnvironmentRunner]
    checks: Checks | None
    tracer: Tracer
    findings: tuple[Finding, ...]
    environments: Sequence[str]
    policies: tuple[str, ...]
    complete: bool
    unchecked_rules: frozenset[str]


_PROJECT: Query[ProjectConfig] = Query("project")
_TRACER: Query[Tracer] = Query("tracer")
_PREPARED: Query[Prepared] = Query("prepared")


def digest_layers(root: Folder) -> str:
    """Return the digest of everything but jobs that a run depends on."""
    digests = ((file.path, repr(file.finding), digest_bytes(file.content)) for file in layout.read_inputs(root))
    return digest_bytes(repr(list(digests)).encode("utf-8", "surrogatepass"))


def load_project(store: Store | None, root: Folder, today: str = "") -> ProjectConfig:
    """Load the layers of a repository, or take those of a revision or a run with the same content."""
    if store is None:
        return config.load(root, today=today)
    layers = digest_layers(root)
    project = store.remember(_PROJECT, "", layers, lambda: config.load(root, today=today)._replace(layers=layers))
    if project.root == root and project.today == today:
        return project
    date = (today or read_date(root)) if project.date else ""
    return project._replace(root=root, today=today, date=date)


def make_tracer(store: Store | None, project: ProjectConfig) -> Tracer:
    """Return a tracer. Those of revisions with the same layers read these once."""
    if store is None or not project.layers:
        return Tracer(project)
    same = store.remember(_TRACER, "", project.layers, lambda: Tracer(project))
    return same if same.project is project else Tracer(project, same)


def prepare_run(run: RunState) -> Prepared:
    """Prepare the environments of a run, or take those of a run with the same layers."""
    prepared = _find_prepared(run)
    if prepared.checks is not None:
        prepared.checks.forget_shared()
    run.checks, run.runners = prepared.checks, prepared.runners
    run.findings[:] = run.prepared_findings = prepared.findings
    run.environments, run.policies = prepared.environments, prepared.policies
    run.complete, run.unchecked_rules = prepared.complete, prepared.unchecked_rules
    return prepared


def _find_prepared(run: RunState) -> Prepared:
    project, store = run.project, run.store
    if store is None or not project.layers or run.entries is not None:
        return _prepare(run)
    key = repr((str(project.root), project.today, project.date, project.as_written, run.environments, run.checked))
    return store.remember(_PREPARED, key, project.layers, lambda: _prepare(run))


def _prepare(run: RunState) -> Prepared:
    """Prepare the environments that can be rendered; errors in layers and policies become findings."""
    tracer = make_tracer(run.store, run.project)
    run.findings += overlay_errors(run.project, tracer, None if run.checked else run.environments)
    names: dict[int, str] = {}
    runners = [EnvironmentRunner(run.project, name, names) for name in run.environments]
    if run.checks is not None:
        run.checks.prepare(run)
    run.findings += (finding for runner in runners for finding in runner.overlay_findings(tracer))
    valid = valid_environments(run.findings, runners, run.project.overlays)
    if run.checks is not None:
        run.checks.select(run, valid, is_all=len(valid) == len(runners))
    complete = len(valid) == len(runners) and not run.failed
    is_hidden = any(finding.rule in HIDING_RULES for finding in run.findings)
    return Prepared(
        valid,
        run.checks,
        tracer,
        tuple(redact_shared(run.project, run.findings)) if run.findings else (),
        [runner.name for runner in valid] or run.environments,
        run.policies,
        complete,
        frozenset(run.policies) if is_hidden else frozenset(),
    )
