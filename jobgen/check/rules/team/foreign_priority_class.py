"""Priority classes of other teams."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.check.team_limits import find_foreign_uses
from jobgen.k8s.objects import Manifest
from jobgen.k8s.team_uses import PRIORITIES


@rule("manifest", ERROR)
def foreign_priority_class(manifest: Manifest) -> Iterator[Violation]:
    """A priority class that the team of the file may not use.

    A job with a higher priority preempts the jobs of others.

    Name a priority class of the team, or have the platform team add it to the file of the team.
    """
    yield from find_foreign_uses(manifest, PRIORITIES, "priority class")
