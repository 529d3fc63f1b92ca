"""Platforms that a team may not use."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.check.team_limits import advise
from jobgen.k8s.objects import Manifest


@rule("job", ERROR)
def platform_not_allowed(manifest: Manifest) -> Iterator[Violation]:
    """A job of a platform that the team of the file may not use.

    The file of a team lists the platforms of its jobs, for example because another operator is not meant for it.

    Use one of the listed platforms, or have the platform team add this one to the file of the team.
    """
    team, kind = manifest.team, manifest.kind
    if team is None or kind is None or team.allows("platforms", kind.platform):
        return
    message = f"platform `{kind.platform}` is none that team `{team.team}` may use; {advise(team, 'platforms')}"
    yield Violation(manifest.object["kind"], message, evidence=(kind.platform,))
