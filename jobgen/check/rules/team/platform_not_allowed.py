"""Platforms that a team may not use."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.check.team_limits import advise
from jobgen.k8s.objects import Manifest


@rule("job", ERROR)
def platform_not_allowed(manifest: Manifest) -> Iterator[Violation]:
    """A job on a platform that the file's team cannot use.

    A team's file lists the platforms of its jobs, for example to reserve an operator for other teams.

    Use one of the listed platforms, or ask the platform team to add this one to the team's file.
    """
    team, kind = manifest.team, manifest.kind
    if team is None or kind is None or team.allows("platforms", kind.platform):
        return
    message = f"platform `{kind.platform}` is not allowed for team `{team.team}`; {advise(team, 'platforms')}"
    yield Violation(manifest.object["kind"], message, evidence=(kind.platform,))
