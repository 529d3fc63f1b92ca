"""Load what a run needs of a repository besides its jobs: settings, overlays, kinds, teams and policies.

Revisions and runs with the same layers load them once.
"""

from __future__ import annotations

from jobgen.engine.inputs import digest_bytes
from jobgen.engine.store import Query, Store
from jobgen.model.budget import RUN
from jobgen.model.finding import Severity
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner, overlay_errors, valid_environments
from jobgen.rendering.redact_results import redact_shared
from jobgen.rendering.run_values import LoadedLayers, RunRequest
from jobgen.rendering.trace import Tracer
from jobgen.repo import layout
from jobgen.repo.commit import CommitPath, read_date
from jobgen.repo.layout import Layers
from jobgen.reports.suppress import HIDING_RULES

_PROJECT: Query[ProjectConfig] = Query("project")
_TRACER: Query[Tracer] = Query("tracer")
_LAYERS: Query[LoadedLayers] = Query("layers")


def digest_layers(layers: Layers) -> str:
    """Return the digest of everything but jobs that a run depends on."""
    digests = ((file.path, repr(file.finding), digest_bytes(file.content)) for file in layout.read_inputs(layers))
    return digest_bytes(repr(list(digests)).encode("utf-8", "surrogatepass"))


def load_project(store: Store | None, layers: Layers, today: str = "", mended: str = "") -> ProjectConfig:
    """Load the layers of a repository, or take those of a revision or a run with the same content."""
    if store is None:
        return config.load(layers, today=today, mended=mended)
    digest = f"{digest_layers(layers)} {mended}".rstrip()

    def load() -> ProjectConfig:
        return config.load(layers, today=today, mended=mended)._replace(digest=digest)

    project = store.ask(_PROJECT, _name_reader(layers), load, content=digest)
    if project.layers == layers and project.today == today:
        return project
    date = (today or read_date(layers.root)) if project.date else ""
    return project._replace(layers=layers, today=today, date=date)


def _name_reader(layers: Layers) -> str:
    """Return how a folder is read: what is an error in its settings depends on it, though the layers are equal."""
    return repr((isinstance(layers.root, CommitPath), layers.judge is not None))


def make_tracer(store: Store | None, project: ProjectConfig) -> Tracer:
    """Return a tracer. Those of revisions with the same layers read these once."""
    if store is None or not project.digest:
        return Tracer(project)
    same = store.ask(_TRACER, _name_reader(project.layers), lambda: Tracer(project), content=project.digest)
    return same if same.project is project else Tracer(project, same)


def load_layers(request: RunRequest) -> LoadedLayers:
    """Return the environments of a run, or those of a run with the same layers."""
    project, store = request.project, request.store
    if store is None or not project.digest or request.files.are_loose:
        loaded = _load(request)
    else:
        where = str(project.root), _name_reader(project.layers)
        key = repr((where, project.today, project.date, project.as_written, request.environments, request.task))
        loaded = store.ask(_LAYERS, key, lambda: _load(request), content=project.digest)
    RUN.reset()
    loaded.stage.forget_shared()
    return loaded


def _load(request: RunRequest) -> LoadedLayers:
    """Load the environments that can be rendered; errors in layers and policies become findings."""
    project, stage = request.project, request.task.start()
    tracer = make_tracer(request.store, project)
    found = list(overlay_errors(project, tracer, None if stage.is_lint else request.environments))
    names: dict[int, str] = {}
    runners = [EnvironmentRunner(project, name, names) for name in request.environments]
    wrong, policies = stage.prepare(request)
    found += wrong
    found += (finding for runner in runners for finding in runner.overlay_findings(tracer))
    valid = valid_environments(found, runners, project.overlays)
    stage.select(request, valid, is_all=len(valid) == len(runners))
    complete = len(valid) == len(runners) and not any(finding.severity is Severity.ERROR for finding in found)
    is_hidden = any(finding.rule in HIDING_RULES for finding in found)
    unchecked = frozenset(policies) if is_hidden else frozenset[str]()
    findings = tuple(redact_shared(project, found)) if found else ()
    environments = [runner.name for runner in valid] or request.environments
    return LoadedLayers(valid, stage, tracer, findings, environments, policies, complete, unchecked)
