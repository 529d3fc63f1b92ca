"""Service accounts of other teams."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.check.team_limits import find_foreign_uses
from jobgen.k8s.objects import Manifest
from jobgen.k8s.team_uses import ACCOUNTS


@rule("manifest", ERROR)
def foreign_service_account(manifest: Manifest) -> Iterator[Violation]:
    """A service account that the file's team cannot use.

    A pod has the permissions of its service account. With another team's service account, it can read and change what
    belongs to that team. `default` is always allowed.

    Use one of the team's service accounts, or ask the platform team to add this one to the team's file.
    """
    yield from find_foreign_uses(manifest, ACCOUNTS, "service account", always=("default",))
