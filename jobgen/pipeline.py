"""The whole road: a repository and its environments to rendered objects and findings.

Jobs are walked bare, one file at a time. A job with a problem is walked again with places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from jobgen import catalogue, repo
from jobgen.catalogue import Catalogue
from jobgen.expand import Document, Expander
from jobgen.make import facets_of, identity_of, is_spec, items_of, make, raw_faults
from jobgen.merge import Deletion
from jobgen.model import Data, Finding, Identity, Mark, Problem, Related, Severity
from jobgen.overlay import Patch
from jobgen.trace import Job, Tracer


class Rendered(NamedTuple):
    """An object of one environment, and the file that its job stands in."""

    env: str
    object: Data
    identity: Identity
    file: str


@dataclass(slots=True)
class Run:
    """One walk over a repository: what to look at, and what was found."""

    shelf: Catalogue
    environments: Sequence[str]
    wanted: Callable[[str], bool] = lambda _: True
    findings: list[Finding] = field(default_factory=list)
    files: int = 0
    names: set[str] = field(default_factory=set)

    def __iter__(self) -> Iterator[Rendered]:
        return _walk(self)

    @property
    def failed(self) -> bool:
        """Whether there are errors."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)


def _walk(run: Run) -> Iterator[Rendered]:
    shelf = run.shelf
    tracer = Tracer(shelf)
    run.findings += tracer.catalogue().findings if shelf.findings else ()
    stations = [_Station(shelf, name) for name in run.environments]
    run.findings += (finding for station in stations for finding in station.composition_findings(tracer))
    seen: dict[tuple[str, Identity], Mark] = {}
    for job in jobs_of(run):
        wanted = run.wanted(job.document.name)
        for station in stations:
            patches = station.patches_for(job)
            if patches is None or not wanted:
                continue
            made = station.make(job, patches)
            if made is None:
                run.findings += tracer.findings(job, station.name)
            elif _is_first(made, job, seen, run.findings):
                yield made
    run.findings += _dead_deletions(stations, tracer)
    run.findings += _idle_patches(run, shelf, stations, tracer)
    run.findings[:] = sorted(set(run.findings), key=lambda found: (found.mark, found.rule, found.message, found.env))


class _Station:
    """One environment, ready to take jobs."""

    def __init__(self, shelf: Catalogue, name: str) -> None:
        self.name = name
        self.problems: list[Problem] = []
        self.expander = Expander(shelf.environment(name, self.problems), list(shelf.kinds))
        self.used: set[int] = set()
        self.deletions: list[tuple[Job, list[Deletion]]] = []

    def composition_findings(self, tracer: Tracer) -> list[Finding]:
        """What is wrong with the overlays that make this environment."""
        problems: list[Problem] = []
        if self.problems:
            tracer.catalogue().environment(self.name, problems)
        return [catalogue.place(problem, "overlays") for problem in problems]

    def patches_for(self, job: Job) -> list[Patch] | None:
        """The patches that mean a job, which count as used; None if the job belongs elsewhere."""
        facets = facets_of(job.document, self.expander)
        if not self.expander.environment.takes(facets):
            return None
        patches = self.expander.environment.patches_for(facets)
        self.used.update(id(patch.node) for patch in patches)
        return patches

    def make(self, job: Job, patches: list[Patch]) -> Rendered | None:
        """The job's object, or None if it has problems."""
        problems: list[Problem] = []
        deletions: list[Deletion] = []
        made = make(job.document, self.expander, patches, problems, deletions)
        if deletions:
            self.deletions.append((job, deletions))
        if problems:
            return None
        return Rendered(self.name, made, identity_of(made), job.file.path)


def jobs_of(run: Run) -> Iterator[Job]:
    """The jobs of a repository that are well formed; the others become findings."""
    for file in repo.jobs(run.shelf.root):
        run.files += 1
        for index, document in enumerate(catalogue.read_source(file, run.findings).documents):
            for job in _jobs_in(document.data, file, index, document.mark, run.findings):
                run.names.add(job.document.name)
                yield job


def _jobs_in(data: Data, file: repo.File, index: int, mark: Mark, findings: list[Finding]) -> Iterator[Job]:
    if is_spec(data):
        job = Job(Document(data, file.path), file, index, -1, mark)
        if data.get("kind") == "Overlay":
            problem = Problem("misplaced-overlay", "an overlay stands under overlays/, not under jobs/")
            findings.append(catalogue.place(problem, file.path, mark))
        elif catalogue.faults(data, "trainingjob"):
            findings += catalogue.located(file, index, "trainingjob")
        else:
            yield job
        return
    for item, manifest in enumerate(items_of(data)):
        job = Job(Document(manifest, file.path), file, index, item, mark)
        if raw_faults(manifest):
            findings += [catalogue.place(problem, file.path, mark) for problem in raw_faults(job.marked().data)]
        else:
            yield job


def _is_first(made: Rendered, job: Job, seen: dict[tuple[str, Identity], Mark], findings: list[Finding]) -> bool:
    """Whether no other job of the environment makes the same object."""
    group = made.identity.api_version.rpartition("/")[0]
    first = seen.setdefault((made.env, made.identity._replace(api_version=group)), job.mark)
    if first is job.mark:
        return True
    problem = Problem("duplicate-identity", f"{made.identity} is made twice; rename one of the two", category="fleet")
    found = catalogue.place(problem, job.file.path, job.mark)
    related = (Related(first, "first made here"),)
    findings.append(replace(found, related=related, object=made.identity, env=made.env))
    return False


def _dead_deletions(stations: list[_Station], tracer: Tracer) -> list[Finding]:
    """Deletion markers that hit nothing; judged with places, but only where one missed and never hit."""
    entries = [
        (job, id(deletion.asked_by), deletion)
        for station in stations
        for job, deletions in station.deletions
        for deletion in deletions
    ]
    hit = {(asked, deletion.key) for _, asked, deletion in entries if deletion.found}
    missed = {(asked, deletion.key) for _, asked, deletion in entries} - hit
    suspects = {id(job): job for job, asked, deletion in entries if (asked, deletion.key) in missed}
    return tracer.dead_deletions(suspects.values()) if suspects else []


def _idle_patches(run: Run, shelf: Catalogue, stations: list[_Station], tracer: Tracer) -> list[Finding]:
    """Patches that mean no job in any environment that has them."""
    patches = [patch for station in stations for patch in station.expander.environment.patches]
    used = {node for station in stations for node in station.used}
    idle = [patch for patch in patches if id(patch.node) not in used]
    if idle:
        others = [_Station(shelf, name) for name in shelf.overlays if name not in run.environments]
        for job in jobs_of(Run(shelf, ())):
            for station in others:
                station.patches_for(job)
        used.update(node for station in others for node in station.used)
    dead = {(patch.overlay, patch.place) for patch in idle if id(patch.node) not in used}
    marked = {
        (patch.overlay, patch.place): patch.node
        for overlay, _ in dead
        for patch in tracer.catalogue().environment(overlay, []).patches
    }
    message = "the patch matches no job"
    return [catalogue.place(Problem("patch-matches-nothing", message, marked[key]), "overlays") for key in sorted(dead)]
