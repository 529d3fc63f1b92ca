"""Queues of other teams."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.check.team_limits import find_foreign_uses
from jobgen.k8s.objects import Manifest
from jobgen.k8s.team_uses import QUEUES


@rule("manifest", ERROR)
def foreign_queue(manifest: Manifest) -> Iterator[Violation]:
    """A queue that the file's team cannot use.

    A team's file lists the queues that its jobs can use. A job in another queue takes the quota of other teams. Labels,
    annotations and fields that name a queue count, also of objects inside this one.

    Use one of the team's queues, or ask the platform team to add this one to the team's file.
    """
    yield from find_foreign_uses(manifest, QUEUES, "queue")
