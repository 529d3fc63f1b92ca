"""Quantities that are not in canonical form."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.kinds import BUILTIN_GROUPS
from jobgen.k8s.objects import Container
from jobgen.model.data import value_of
from jobgen.model.finding import FixStep
from jobgen.model.quantity import canonicalize_quantity

_ENGINES = {"argocd": "Argo CD", "flux": "Flux"}


@rule("container", INFO, fields=("resources",))
def non_canonical_quantity(container: Container) -> Iterator[Violation]:
    """A quantity in non-canonical form, such as `1000m`, in a job that Argo CD or Flux applies.

    Kueue and operators write objects back in canonical form: `1000m` as `1`, `1024Mi` as `1Gi`. Git and the cluster
    then differ, and a tool that reverts the difference conflicts with them. Kinds of Kubernetes itself, such as
    Deployments, are not reported: Argo CD and Flux know which of their fields are quantities.

    Write the quantity in canonical form.
    """
    manifest = container.pod.manifest
    engine = _ENGINES.get(manifest.cluster.gitops)
    if engine is None or manifest.group in BUILTIN_GROUPS:
        return
    for amounts in (container.limits, container.requests):
        for name, node in amounts.items():
            quantity = value_of(node)
            canonical = canonicalize_quantity(quantity) if isinstance(quantity, str) else None
            if canonical is not None and canonical != quantity:
                message = f"`{name}` is not in canonical form, so {engine} can see a difference; write `{canonical}`"
                yield Violation(node, message, fix_steps=(FixStep("set", node, canonical),))
