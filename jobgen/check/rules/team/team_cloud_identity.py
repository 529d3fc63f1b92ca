"""Cloud identities that the objects of a team assume."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest
from jobgen.k8s.team_uses import IDENTITIES


@rule("manifest", ERROR)
def team_cloud_identity(manifest: Manifest) -> Iterator[Violation]:
    """An annotation with which a team's service account or pod assumes a cloud identity.

    IAM roles for service accounts and workload identity give a pod the permissions of a cloud account, such as that of
    another team. Only the platform team decides who assumes it.

    Move the ServiceAccount to a folder of the platform team, which allows the team to use it with `serviceAccounts`.
    """
    team = manifest.team
    if team is None:
        return
    for use in manifest.uses:
        if use.what == IDENTITIES:
            message = f"team `{team.team}` cannot choose the cloud identity `{use.value}`"
            advice = "let a folder of the platform team have the ServiceAccount"
            yield Violation(use.node, f"{message}; {advice}", evidence=(use.qualifier, use.value))
