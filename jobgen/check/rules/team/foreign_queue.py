"""Queues of other teams."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.check.team_limits import find_foreign_uses
from jobgen.k8s.objects import Manifest
from jobgen.k8s.team_uses import QUEUES


@rule("manifest", ERROR)
def foreign_queue(manifest: Manifest) -> Iterator[Violation]:
    """A queue that the team of the file may not use.

    The file of a team lists the queues that its jobs may use. A job in another queue takes the quota of others. Labels,
    annotations and fields that name a queue count, also of objects inside this one.

    Name a queue of the team, or have the platform team add it to the file of the team.
    """
    yield from find_foreign_uses(manifest, QUEUES, "queue")
