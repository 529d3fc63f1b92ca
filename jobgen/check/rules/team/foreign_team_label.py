"""Labels that name another team."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest


@rule("manifest", ERROR)
def foreign_team_label(manifest: Manifest) -> Iterator[Violation]:
    """A label `team` that names another team than the one that owns the file.

    Budgets, reports and policies count an object for the team of its label.

    Remove the label; the file of the team can set it for all of its jobs.
    """
    team, label = manifest.team, manifest.labels.get("team")
    if team is not None and as_text(label) in team.others:
        message = f"the label names team `{as_text(label)}`, but team `{team.team}` owns the file; remove it"
        yield Violation(label, message, evidence=(as_text(label),))
