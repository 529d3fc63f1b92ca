"""Nodes that the objects of a team choose by name."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest
from jobgen.k8s.team_uses import NODES


@rule("manifest", ERROR)
def team_node_name(manifest: Manifest) -> Iterator[Violation]:
    """`nodeName` in a pod of a team.

    The pod skips the scheduler and with it the queue, the quotas, the taints of nodes and the pods that wait for them.

    Use a `nodeSelector`.
    """
    team = manifest.team
    if team is None:
        return
    for use in manifest.uses:
        if use.what == NODES:
            message = f"`nodeName: {use.value}` skips the scheduler, which limits team `{team.team}`"
            yield Violation(use.node, f"{message}; use a `nodeSelector`", evidence=(use.value,))
