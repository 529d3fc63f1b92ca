"""Findings of the fleet: the job, the team and the environment that each concerns, and whether it is new."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence

from jobgen.features.page.fleet import Fleet
from jobgen.model.finding import Finding, Identity
from jobgen.model.named_tuple import NamedTuple

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
    """Find the job of each finding; `new` are those that a revision did not have."""
    index = _JobIndex(fleet)
    for finding in findings:
        job = index.find(finding)
        status = "" if new is None else NEW if finding in new else KNOWN
        yield FleetFinding(finding, job, index.find_team(job, finding.env), status)


class _JobIndex:
    """Finds jobs by their objects, else by their lines."""

    def __init__(self, fleet: Fleet) -> None:
        self._objects: dict[tuple[str, Identity], int] = {}
        self._lines: dict[str, list[tuple[int, int]]] = {}
        self._teams: dict[tuple[int, str], str] = {}
        for cell in fleet.cells:
            self._teams[cell.job, cell.environment] = cell.team
            if cell.team:
                self._teams.setdefault((cell.job, ""), cell.team)
            for made in cell.objects:
                self._objects[cell.environment, made.identity] = cell.job
        for number, job in enumerate(fleet.jobs):
            self._lines.setdefault(job.file, []).append((job.line, number))

    def find(self, finding: Finding) -> int:
        """Return the number of the job; that of the first one if several jobs of a sweep have the same lines.

        The lines decide if they are those of another job than the one of the object: both may have the same name.
        """
        known = self._objects.get((finding.env, finding.object), -1) if finding.object is not None else -1
        jobs = self._lines.get(finding.location.file, [])
        place = bisect_right([line for line, _ in jobs], finding.location.line)
        if not place:
            return known
        numbers = [number for line, number in jobs if line == jobs[place - 1][0]]
        return known if known in numbers else numbers[0]

    def find_team(self, job: int, env: str) -> str:
        """Return the team of a job in an environment, or in any."""
        return self._teams.get((job, env)) or self._teams.get((job, ""), "")
