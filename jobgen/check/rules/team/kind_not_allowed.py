"""Kinds that a team may not have."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.check.team_limits import advise, is_kind_allowed
from jobgen.k8s.objects import Manifest
from jobgen.k8s.team_uses import KINDS


@rule("manifest", ERROR)
def kind_not_allowed(manifest: Manifest) -> Iterator[Violation]:
    """An object, or an object inside it, of a kind that the file's team cannot have.

    Objects of the whole cluster affect all teams. Roles, secrets, quotas and Applications grant access, or deploy other
    objects without review. Without `kinds` in the team's file, these are not allowed.

    Move the object to a folder of the platform team, or ask it to add the kind to the team's `kinds`.
    """
    team = manifest.team
    if team is None:
        return
    for use in manifest.uses:
        if use.what == KINDS and not is_kind_allowed(team, use):
            what = advise(team, KINDS) if KINDS in team.allowed else "move it to a folder of the platform team"
            message = f"team `{team.team}` cannot have objects of kind `{use.value}`; {what}"
            yield Violation(use.node, message, evidence=(use.value,))
