"""Report objects that two jobs of an environment render."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.model.data import Location
from jobgen.model.finding import Finding, Problem, Related
from jobgen.render.environment import Rendered
from jobgen.render.expand import JobDocument
from jobgen.render.locate import locate
from jobgen.render.runtimes import RUNTIME_KINDS
from jobgen.render.trace import Job
from jobgen.repo.files import FileEntry, read_file


def note_duplicate(
    made: Rendered,
    seen: dict[tuple[str, ...], Rendered],
    entries: Sequence[FileEntry],
    findings: list[Finding],
) -> bool:
    """Report an object that an earlier job of the environment renders too. Return whether it is the first.

    Jobs may share a runtime, which each of them renders.
    """
    api_version, *rest = made.identity
    first = seen.setdefault((made.env, api_version.rpartition("/")[0], *rest), made)
    if first is made:
        return True
    if first.companion and made.companion and made.identity.kind in RUNTIME_KINDS:
        return False
    # An environment may set the namespace; without it, the finding is the same in all environments.
    shown = made.identity._replace(namespace="") if made.env else made.identity
    message = f"`{shown}` is rendered by two jobs; rename one of them"
    problem = Problem("duplicate-identity", message, category="fleet", evidence=(str(made.identity),))
    found = locate(problem, made.location.file, _name_location(made, entries))
    related = (Related(_name_location(first, entries), "first rendered here"),)
    findings.append(found._replace(related=related, object=made.identity, env=made.env))
    return False


def _name_location(made: Rendered, entries: Sequence[FileEntry]) -> Location:
    """The location of the name of an object's job, which is to be changed. Its file is read again with locations."""
    file = next(read_file(entry) for entry in entries if entry.path == made.location.file)
    return Job(JobDocument({}, file.path), file, made.position, made.item, made.location).name()
