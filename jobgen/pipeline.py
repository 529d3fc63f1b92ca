"""The whole road: a repository and its environments to rendered objects and findings.

Jobs are walked bare, in several processes if there are many. A job with a problem is walked again with places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from jobgen import catalogue, memory, repo
from jobgen.catalogue import Catalogue
from jobgen.expand import Document
from jobgen.fork import spread
from jobgen.jobs import jobs_in
from jobgen.ledger import Ledger, Part, layers_of, looked_at, part_of
from jobgen.model import Data, Finding, Identity, Mark, Problem, Related, Severity
from jobgen.station import PatchName, Rendered, Station, Used
from jobgen.suppress import Suppression
from jobgen.trace import Job, Tracer, Where

if TYPE_CHECKING:
    from jobgen.policy import Policies


def _as_it_is(made: Data) -> Data:
    return made


def nothing(_: Data) -> Data:
    """Of an object that has been judged nothing needs to be kept."""


@dataclass(slots=True)
class Run:
    """One walk over a repository, or over some files: what to look at, and what was found."""

    shelf: Catalogue
    environments: Sequence[str]
    wanted: Callable[[str], bool] = lambda _: True
    finish: Callable[[Data], Data] = _as_it_is
    progress: Callable[[int, int], None] = lambda _, __: None
    judged: bool = False
    entries: Sequence[repo.Entry] | None = None
    findings: list[Finding] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    comments: list[Suppression] = field(default_factory=list)
    policies: tuple[str, ...] = ()
    files: int = 0

    def __iter__(self) -> Iterator[Rendered]:
        return _walk(self)

    @property
    def failed(self) -> bool:
        """Whether there are errors."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)


def _walk(run: Run) -> Iterator[Rendered]:
    tracer = Tracer(run.shelf)
    run.findings += tracer.catalogue().findings if run.shelf.findings else ()
    policies = _policies(run) if run.judged else None
    stations = [Station(run.shelf, name, policies) for name in run.environments]
    run.findings += (finding for station in stations for finding in station.composition_findings(tracer))
    if run.failed:
        # With a layer missing, whatever is said of jobs would be beside the point; their files are still read.
        stations = []
    entries = list(repo.jobs(run.shelf.root)) if run.entries is None else run.entries
    run.files = len(entries)
    parts = _remembered(run, stations, tracer, entries) if _can_remember(run, stations) else None
    if parts is None:
        parts = spread(entries, lambda share: [_work(run, stations, tracer, share, len(entries))])
    seen: dict[tuple[str, Identity], Rendered] = {}
    for part in parts:
        run.findings += part.findings
        run.names |= part.names
        run.comments += part.comments
        for made in part.made:
            # Files that stand for themselves may well be meant for different clusters.
            if run.entries is not None or _is_first(made, seen, entries, run.findings):
                yield made
    run.findings += _dead_deletions([part.used for part in parts], tracer)
    run.findings += _idle_patches(run, stations, {node for part in parts for node in part.used.patches}, tracer)
    if run.judged:
        if run.entries is None:
            from jobgen.fleet import fleet_findings

            rows = (row for part in parts for row in part.rows)
            run.findings += fleet_findings(rows, stations, entries, tracer)
        run.findings[:] = filter(None, map(run.shelf.severities.of, run.findings))
    run.findings[:] = sorted(set(run.findings), key=lambda found: (found.mark, found.rule, found.message, found.env))


def _policies(run: Run) -> Policies:
    """The policies that judge this repository; what is wrong with them is a finding like any other."""
    # Whoever only renders need not wait for CEL.
    from jobgen.policyfiles import load_policies

    found = load_policies(run.shelf.root)
    run.findings += found.findings
    run.policies = tuple(found.files)
    return found.policies


def _can_remember(run: Run, stations: list[Station]) -> bool:
    """Whether what is said of a file can be kept for the next lint: of a render, the objects themselves are wanted."""
    return run.judged and bool(stations) and run.finish is nothing and memory.is_on()


def _remembered(run: Run, stations: list[Station], tracer: Tracer, entries: Sequence[repo.Entry]) -> list[Part]:
    """The same for all files, of which only those are looked at that have changed since the last lint."""
    scope = "repository" if run.entries is None else "files"
    ledger = Ledger(str(run.shelf.root), scope, ",".join(run.environments), layers_of(repo.inputs(run.shelf.root)))
    parts = [ledger.part(entry) for entry in entries]
    places = [place for place, part in enumerate(parts) if part is None]

    def look(entry: repo.Entry) -> Part:
        return _work(run, stations, tracer, [entry], len(places))

    changed = [entries[place] for place in places]
    found = spread(changed, lambda share: [looked_at(entry, look) for entry in share])
    for place, told in zip(places, found, strict=True):
        if isinstance(told, Part):
            parts[place] = told
        else:
            parts[place] = part_of(told[2], entries[place].path)
            ledger.note(entries[place], told)
    ledger.save()
    return [part for part in parts if part is not None]


def _work(run: Run, stations: list[Station], tracer: Tracer, share: Sequence[repo.Entry], total: int) -> Part:
    """Everything that can be said of some files without looking at the others."""
    part = Part([], [], set(), Used(set(), {}, [], []), [], [])
    for job in jobs_in(share, part.findings, part.comments if run.judged else None):
        part.names.add(job.document.name)
        run.progress(len(part.made) * total // len(share), total * len(stations))
        for station in stations:
            patches = station.patches_for(job)
            if patches is None:
                continue
            part.used.patches.update((patch.overlay, patch.place) for patch in patches)
            if run.wanted(job.document.name):
                made = station.make(job, patches, part.used)
                if made is None:
                    part.findings.extend(tracer.findings(job, station.name))
                    continue
                if run.judged:
                    part.findings.extend(_judged(job, made.object, station, tracer))
                    if run.entries is None:
                        # Files that stand for themselves are no fleet.
                        where = Where(station.name, job.file.path, job.position, job.item)
                        rows = station.judge.rows(made.object)
                        part.rows.extend((rule, row._replace(job=where)) for rule, row in rows)
                part.made.append(made._replace(object=run.finish(made.object)))
    return part


def _judged(job: Job, made: Data, station: Station, tracer: Tracer) -> list[Finding]:
    """What is wrong with an object: looked at bare, and again with places if there is anything."""
    return tracer.findings(job, station.name, station.judge) if station.judge(made) else []


def _is_first(
    made: Rendered,
    seen: dict[tuple[str, Identity], Rendered],
    entries: Sequence[repo.Entry],
    findings: list[Finding],
) -> bool:
    """Whether no other job of the environment makes the same object."""
    group = made.identity.api_version.rpartition("/")[0]
    first = seen.setdefault((made.env, made.identity._replace(api_version=group)), made)
    if first is made:
        return True
    problem = Problem("duplicate-identity", f"`{made.identity}` is made twice; rename one of them", category="fleet")
    found = catalogue.place(problem, made.mark.file, _place(made, entries))
    related = (Related(_place(first, entries), "first made here"),)
    findings.append(replace(found, related=related, object=made.identity, env=made.env))
    return False


def _place(made: Rendered, entries: Sequence[repo.Entry]) -> Mark:
    """Where an object's job begins; its file is read again, for an item of a List has a line of its own."""
    file = next(repo.read(entry) for entry in entries if entry.path == made.mark.file)
    return Job(Document({}, file.path), file, made.position, made.item, made.mark).place()


def _dead_deletions(used: Sequence[Used], tracer: Tracer) -> list[Finding]:
    """Deletion markers that hit nothing; judged with places, but only where one missed and never hit."""
    hits = {marker: job for part in used for marker, job in part.hits.items()}
    suspects = [job for part in used for marker, job in part.misses if marker not in hits]
    suspects += [job for part in used for job in part.own_misses]
    if not suspects:
        return []
    # Whoever shows that a marker does hit something is heard too.
    heard = {(job.file.path, job.position, job.item): job for job in (*suspects, *hits.values())}
    return tracer.dead_deletions(heard.values())


def _idle_patches(run: Run, stations: list[Station], used: set[PatchName], tracer: Tracer) -> list[Finding]:
    """Patches that mean no job in any environment that has them."""
    patches = {(patch.overlay, patch.place) for station in stations for patch in station.expander.environment.patches}
    if patches - used:
        others = [Station(run.shelf, name) for name in run.shelf.overlays if name not in run.environments]
        for job in jobs_in(repo.jobs(run.shelf.root), []):
            used |= {(patch.overlay, patch.place) for station in others for patch in station.patches_for(job) or ()}
    dead = patches - used
    marked = {
        (patch.overlay, patch.place): patch.node
        for overlay, _ in dead
        for patch in tracer.catalogue().environment(overlay, []).patches
    }
    message = "the patch matches no job"
    return [catalogue.place(Problem("patch-matches-nothing", message, marked[key]), "overlays") for key in sorted(dead)]
