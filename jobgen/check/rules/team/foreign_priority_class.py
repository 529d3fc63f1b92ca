"""Priority classes of other teams."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.check.team_limits import advise, find_foreign_uses
from jobgen.k8s.objects import Manifest
from jobgen.k8s.team_uses import PRIORITIES, PRIORITY_NUMBERS


@rule("manifest", ERROR)
def foreign_priority_class(manifest: Manifest) -> Iterator[Violation]:
    """A priority class that the file's team cannot use.

    A job with a higher priority preempts the jobs of others. If the team's file lists classes, a number in
    `priority` without a class also counts.

    Use one of the team's priority classes, or ask the platform team to add this one to the team's file.
    """
    yield from find_foreign_uses(manifest, PRIORITIES, "priority class")
    team = manifest.team
    if team is None or PRIORITIES not in team.allowed:
        return
    for use in manifest.uses:
        if use.what == PRIORITY_NUMBERS:
            message = f"`priority: {use.value}` is not allowed without a priority class; {advise(team, PRIORITIES)}"
            yield Violation(use.node, message, evidence=(use.value,))
