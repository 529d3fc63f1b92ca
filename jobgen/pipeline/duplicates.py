"""Objects that are made twice in one environment."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.model.data import Location
from jobgen.model.finding import Finding, Identity, Problem, Related
from jobgen.pipeline.environment import Rendered
from jobgen.pipeline.locate import locate
from jobgen.pipeline.trace import Job
from jobgen.render.expand import JobDocument
from jobgen.repo import layout


def note_duplicate(
    made: Rendered,
    seen: dict[tuple[str, Identity], Rendered],
    entries: Sequence[layout.FileEntry],
    findings: list[Finding],
) -> bool:
    """Whether no other job of the environment makes the same object."""
    group = made.identity.api_version.rpartition("/")[0]
    first = seen.setdefault((made.env, made.identity._replace(api_version=group)), made)
    if first is made:
        return True
    problem = Problem("duplicate-identity", f"`{made.identity}` is made twice; rename one of them", category="fleet")
    found = locate(problem, made.location.file, _place(made, entries))
    related = (Related(_place(first, entries), "first made here"),)
    findings.append(found._replace(related=related, object=made.identity, env=made.env))
    return False


def _place(made: Rendered, entries: Sequence[layout.FileEntry]) -> Location:
    """Where an object's job begins; its file is read again, for an item of a List has a line of its own."""
    file = next(layout.read_file(entry) for entry in entries if entry.path == made.location.file)
    return Job(JobDocument({}, file.path), file, made.position, made.item, made.location).start()
