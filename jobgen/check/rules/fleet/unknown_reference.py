"""References to objects that do not exist."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest

if TYPE_CHECKING:
    from jobgen.check.cluster.state import ClusterState


@rule("cluster", ERROR)
def unknown_reference(manifest: Manifest, state: ClusterState) -> Iterator[Violation]:
    """A reference to an object, or to a key in one, that is neither in the repository nor in the exported state.

    The rule applies to the kinds in `cluster.complete`, of which the repository and the folder `cluster.state` hold
    every object. A pod that refers to something else is refused, or never starts; a queue that does not exist admits no
    job. References with `optional: true` are not reported.

    The keys of a Secret are checked in any case if the repository has the Secret, its ExternalSecret or its
    SealedSecret, and this names all keys. Keys are readable if SOPS encrypts the values.

    Correct the name, or add the object. A kind that other tools create does not belong in `cluster.complete`.
    """
    if not state.cluster.complete and manifest.namespace not in state.secret_namespaces:
        return
    from jobgen.check.cluster.references import find_broken_references

    for broken in find_broken_references(manifest, state):
        yield Violation(broken.node, broken.message)
