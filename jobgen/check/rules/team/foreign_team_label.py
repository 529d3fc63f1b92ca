"""Labels that name another team."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest
from jobgen.k8s.team_uses import LABELS


@rule("manifest", ERROR)
def foreign_team_label(manifest: Manifest) -> Iterator[Violation]:
    """A label, also on pods, that names another team than the file's owner.

    Budgets, reports and policies count an object for the team that its label names: `team` with the name of a team, or
    a label that the files of both teams set.

    Remove the label; the team's file can set it for all of its jobs.
    """
    team = manifest.team
    if team is None:
        return
    for use in manifest.uses:
        owner = team.find_labeled(use.qualifier, use.value) if use.what == LABELS else ""
        if owner:
            message = f"the label names team `{owner}`, but team `{team.team}` owns the file; remove it"
            yield Violation(use.node, message, evidence=(use.value,))
