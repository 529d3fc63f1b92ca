"""The value at a position in every environment, with the layers that set it: `jobgen explain` for an editor."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.explain.explain import ExplainedField, explain_for_job
from jobgen.features.editor.cursor import Cursor, Part
from jobgen.features.editor.index import IndexedJob, list_jobs
from jobgen.features.editor.valid_jobs import list_broken, list_invalid_environments, read_valid_jobs
from jobgen.features.editor.workspace import Ready, Workspace
from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import Location, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step, format_dotted
from jobgen.pipeline.mutations import ClusterMutations
from jobgen.render.build import is_spec
from jobgen.render.trace import Job
from jobgen.repo.lock import TREE
from jobgen.repo.shipped import BUILT_IN, find_shipped

_MAX_EXPLAINED = 100
"""How often a job is explained: each of a sweep takes some milliseconds in each environment."""


class ExplainedValue(NamedTuple):
    """A field of a job in its environments."""

    job: Job
    """Of a sweep, the first one."""
    field: str
    """The dotted path of the field, as `explain` takes it."""
    fields: Sequence[ExplainedField]
    """Of a sweep, those of each job that is explained."""
    broken: Sequence[str] = ()
    """The environments that cannot render the job."""
    explained: int = 1
    """How many jobs of a sweep are explained."""
    jobs: int = 1
    """How many jobs the sweep has."""


def explain_value(workspace: Workspace, ready: Ready, file: str, cursor: Cursor) -> ExplainedValue | None:
    """Explain the field at a position in every environment; None if no valid job is there."""
    if not workspace.is_repository or cursor.part is Part.COMMENT or not cursor.path:
        return None
    environments = [each.name for each in ready.prepared.runners]
    with workspace.reading():
        if workspace.is_job(file):
            found = find_jobs(workspace, ready, file, cursor)
        else:
            top, env = (*file.split("/"), "")[:2]
            if top != TREE or env not in environments:
                return None
            found, environments = _find_source_job(workspace, ready, env, cursor), [env]
        if found is None or not found[1]:
            return None
        jobs, path = found
        broken = [name for name in list_broken(ready, jobs[0]) if name in environments]
        valid = [name for name in environments if name not in broken]
        explained = jobs[: max(1, _MAX_EXPLAINED // max(1, len(valid)))]
        fields = [each for job in explained for each in _explain(ready, job, valid, path)]
        broken += list_invalid_environments(ready) if workspace.is_job(file) else ()
        return ExplainedValue(jobs[0], format_dotted(path), fields, broken, len(explained), len(jobs))


def explain_indexed(
    workspace: Workspace, ready: Ready, job: IndexedJob, environments: Sequence[str], path: tuple[Step, ...]
) -> list[ExplainedField]:
    """Explain a field of a job that the background process knows, in some environments."""
    found = find_indexed(workspace, ready, job)
    return _explain(ready, found, environments, path) if found else []


def _explain(ready: Ready, job: Job, environments: Sequence[str], path: tuple[Step, ...]) -> list[ExplainedField]:
    tracer = ready.prepared.tracer
    return explain_for_job(tracer, job, environments, path, ClusterMutations(tracer.project).mutate)


def find_indexed(workspace: Workspace, ready: Ready, job: IndexedJob) -> Job | None:
    """Read a job that the background process knows; None if it is not there any more."""
    jobs = workspace.read_jobs(ready, job.location.file)
    return next((each for each in jobs if (each.position, each.item) == (job.position, job.item)), None)


def _find_source_job(
    workspace: Workspace, ready: Ready, env: str, cursor: Cursor
) -> tuple[Sequence[Job], tuple[Step, ...]] | None:
    """Return the job of an object in the rendered tree, and the path in the object."""
    data = as_mapping(cursor.tree)
    metadata = as_mapping(data.get("metadata"))
    wanted = tuple(value_of(each) for each in (data.get("kind"), metadata.get("namespace"), metadata.get("name")))
    for job in list_jobs(workspace.index):
        made = next((each.objects[0] for each in job.environments if each.environment == env and each.objects), None)
        if made is not None and (made.kind, made.namespace or None, made.name) == wanted:
            found = find_indexed(workspace, ready, job)
            return ([found], cursor.path) if found else None
    return None


def find_jobs(
    workspace: Workspace, ready: Ready, file: str, cursor: Cursor
) -> tuple[Sequence[Job], tuple[Step, ...]] | None:
    """Return the job at a position, or all jobs of a sweep, and the path in it that `explain` takes."""
    if not cursor.is_complete or not isinstance(cursor.tree, dict):
        return None
    own = read_valid_jobs(ready, workspace.find_entry(file), cursor.document)
    path: tuple[Step, ...] = cursor.path
    if isinstance(cursor.tree.get("items"), list) and str(value_of(cursor.tree.get("kind"))).endswith("List"):
        number = path[1] if len(path) > 1 and path[0] == "items" else None
        own, path = [job for job in own if job.item == number], path[2:]
    return (own, _to_explained_path(own[0], path)) if own else None


def _to_explained_path(job: Job, path: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the path as `explain` takes it: without `spec` for the fields of a job spec."""
    if not is_spec(job.document.data) or path[:1] == ("metadata",):
        return path
    is_value = len(path) > 1 and path[0] == "spec" and path[1] != "matrix"
    return path[1:] if is_value else ()


def find_winners(fields: Sequence[ExplainedField]) -> dict[Location, list[str]]:
    """Return the locations that set a value, each with the environments where it wins."""
    found: dict[Location, list[str]] = {}
    for field in fields:
        location = field.sources[0].location
        if location is not None and field.environment not in found.setdefault(location, []):
            found[location].append(field.environment)
    return found


def to_real_file(location: Location) -> Location:
    """Return a location whose file an editor can open: for a shipped file its full path."""
    if not location.file.startswith(BUILT_IN):
        return location
    home = find_shipped("schemas").parent
    return location._replace(file=str(home / location.file.removeprefix(BUILT_IN)))
