"""The fleet: every job in every environment, what it requests, and what is wrong with it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce

from jobgen.check.checker import Checker
from jobgen.compare.changes import GroupTotal, sum_objects
from jobgen.compare.impact import runs_pods
from jobgen.compare.snapshot import Snapshot
from jobgen.k8s.kueue import is_suspended, stays_suspended
from jobgen.k8s.nodes import as_text
from jobgen.k8s.object_paths import is_app_wrapper, list_wrapped_objects
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import ResourceTotals, add_totals, list_counted_pods
from jobgen.model.data import Node, text_of
from jobgen.model.features import find_part
from jobgen.model.finding import Finding, Identity
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.object_summary import get_queue_name, sum_object
from jobgen.rendering.environment import EnvironmentRunner, Rendered
from jobgen.rendering.trace import Job

ACTIVE, SUSPENDED, INACTIVE, BROKEN = "active", "suspended", "inactive", "broken"
"""States of a job in an environment: rendered; suspended in Git; paused, done or expired; with errors."""


JobPlace = tuple[str, int, int]
"""A job in its file: path, number of the document, number of the item."""


class FleetJob(NamedTuple):
    """A job of the repository."""

    name: str
    sweep: str
    """The name of the sweep that generates it; empty if none does."""
    framework: str
    is_job: bool
    """True if it runs pods; other objects of the repository are listed too."""
    file: str
    line: int
    place: JobPlace
    source: str = ""
    """What it is built from, if several files make it: a chart with its values, or a kustomization."""


class FleetCell(NamedTuple):
    """A job in an environment."""

    job: int
    """The number of the job."""
    environment: str
    state: str
    reason: str
    """Why the job does not run; empty if it does."""
    kind: str
    namespace: str
    name: str
    """The name of its object."""
    queue: str = ""
    team: str = ""
    owner: str = ""
    pods: int = 0
    resources: ResourceTotals = ResourceTotals()
    objects: tuple[Rendered, ...] = ()
    """Its object, and the companions of it."""
    launches: tuple[tuple[str, str, str, str, str], ...] = ()
    """The numbers of what it launches: the roles, the command, the name, the value and where it comes from."""


class Fleet(NamedTuple):
    """All jobs in all environments."""

    environments: tuple[str, ...]
    jobs: tuple[FleetJob, ...]
    cells: tuple[FleetCell, ...]
    totals: tuple[GroupTotal, ...]
    """The same sums as those of `jobgen diff`, with `after` equal to `before`."""


def build_fleet(snapshot: Snapshot, jobs: Iterable[Job], find_owners: Callable[[str], str] = lambda _: "") -> Fleet:
    """Build the fleet of a rendered repository from its jobs; `find_owners` returns the owners of a file."""
    objects: dict[tuple[str, JobPlace], list[Measured]] = {}
    for made in snapshot.objects:
        measured = measure_object(snapshot.checker(made.env), made)
        objects.setdefault((made.env, (made.location.file, made.position, made.item)), []).append(measured)
    totals = sum_objects((each.rendered.env, *each[1:3]) for several in objects.values() for each in several)
    runners = [EnvironmentRunner(snapshot.project, env) for env in snapshot.environments]
    found: list[FleetJob] = []
    cells: list[FleetCell] = []
    for number, job in enumerate(jobs):
        place = (job.file.path, job.position, job.item)
        rendered = [objects.get((runner.name, place)) for runner in runners]
        for runner, several in zip(runners, rendered, strict=True):
            # What a chart makes is in no environment, and what is beside charts is in one.
            may_be_missing = bool(runner.name) is (job.built is None) or len(runners) == 1
            missing = describe_missing(number, job, runner) if may_be_missing and not several else None
            cell = describe_rendered(number, several) if several else missing
            if cell:
                cells.append(cell if cell.owner else cell._replace(owner=find_owners(job.file.path)))
        first = [several[0] for several in rendered if several]
        is_job = not first or any(each.pods or runs_pods(each.manifest) for each in first)
        framework = runners[0].attributes(job).framework if runners else ""
        document = job.document
        # The cluster names an object with `generateName`.
        name = document.name or next((each.rendered.identity.name for each in first), "") or job.file.path
        fleet_job = FleetJob(name, document.sweep, framework, is_job, job.file.path, job.location.line, place)
        found.append(fleet_job._replace(source=snapshot.describe_build(place[:2])) if job.built else fleet_job)
    return Fleet(tuple(snapshot.environments), tuple(found), tuple(cells), totals)


class Measured(NamedTuple):
    """An object, its typed view, and what it requests."""

    rendered: Rendered
    manifest: Manifest
    resources: ResourceTotals
    pods: int


def measure_object(checker: Checker, made: Rendered) -> Measured:
    """Return an object with what it requests."""
    manifest = checker.manifest(made.object)
    counted = [manifest]
    if is_app_wrapper(made.object):
        # Its pods are those of the objects in it.
        wrapped = () if is_suspended(manifest) else list_wrapped_objects(made.object)
        counted = [checker.manifest(each) for _, each in wrapped]
    pods = sum(count for each in counted for _, count in list_counted_pods(each))
    return Measured(made, manifest, sum_object(checker, made.object, manifest), pods)


def describe_rendered(number: int, objects: Sequence[Measured]) -> FleetCell:
    """Describe a job of an environment by the objects that it is rendered as."""
    first, manifest, _, _ = objects[0]
    state, reason = (SUSPENDED, "it is suspended in Git") if stays_suspended(manifest) else (ACTIVE, "")
    return FleetCell(number, first.env, state, reason, *first.identity[1:])._replace(
        queue=get_queue_name(manifest),
        team=as_text(manifest.labels.get("team")),
        owner=_read_owner(manifest.labels, manifest.annotations),
        pods=sum(each.pods for each in objects),
        resources=reduce(add_totals, (each.resources for each in objects)),
        objects=tuple(each.rendered for each in objects),
        launches=tuple(_list_launches(objects)),
    )


def _list_launches(objects: Sequence[Measured]) -> Iterator[tuple[str, str, str, str, str]]:
    describe = find_part("job.launch")
    for each in objects if describe else ():
        for launch in describe(each.manifest):
            roles = ", ".join(launch.roles)
            yield from ((roles, launch.command, row.name, row.value, row.source) for row in launch.rows)


def _read_owner(*metadata: Mapping[str, Node]) -> str:
    """Return the owner that a job names: the label or annotation `owner`, with or without a prefix."""
    for values in metadata:
        for key in values:
            if str(key).rpartition("/")[2] == "owner":
                return text_of(values[key])
    return ""


def describe_missing(number: int, job: Job, runner: EnvironmentRunner) -> FleetCell | None:
    """Describe a job of an environment that was not rendered; None if it does not belong to the environment."""
    if runner.is_broken or runner.patches_for(job) is None:
        return None
    attributes = runner.attributes(job)
    reason = runner.explain_inactive(job)
    labels: Mapping[str, Node] = attributes.labels
    state, text = (INACTIVE, f"it {reason}") if reason else (BROKEN, "it cannot be rendered; see its findings")
    cell = FleetCell(number, runner.name, state, text, attributes.kind, attributes.namespace, job.document.name)
    return cell._replace(team=text_of(labels.get("team")), owner=_read_owner(labels))


NEW, KNOWN = "new", "known"


class FleetFinding(NamedTuple):
    """A finding, and what it concerns."""

    finding: Finding
    job: int
    """The number of the job; -1 if it concerns none, or several."""
    team: str
    status: str
    """`new` or `known` since a revision; empty without one."""


def place_findings(
    fleet: Fleet, findings: Sequence[Finding], new: Collection[Finding] | None = None
) -> Iterator[FleetFinding]:
    """Find the job of each finding, by its object, else by its line; `new` are those that a revision did not have."""
    objects: dict[tuple[str, Identity | None], int] = {}
    lines: dict[str, list[tuple[int, int]]] = {}
    teams: dict[tuple[int, str], str] = {}
    for cell in fleet.cells:
        teams[cell.job, cell.environment] = cell.team
        if cell.team:
            teams.setdefault((cell.job, ""), cell.team)
        for made in cell.objects:
            objects[cell.environment, made.identity] = cell.job
    for number, each in enumerate(fleet.jobs):
        lines.setdefault(each.file, []).append((each.line, number))
    for finding in findings:
        job = objects.get((finding.env, finding.object), -1)
        jobs = lines.get(finding.location.file, [])
        place = bisect_right([line for line, _ in jobs], finding.location.line)
        if place:
            # The lines decide if they are those of another job than the one of the object: both may have the same name.
            # Of several jobs of a sweep, which have the same lines, it is the first one.
            numbers = [number for line, number in jobs if line == jobs[place - 1][0]]
            job = job if job in numbers else numbers[0]
        team = teams.get((job, finding.env)) or teams.get((job, ""), "")
        status = "" if new is None else NEW if finding in new else KNOWN
        yield FleetFinding(finding, job, team, status)
