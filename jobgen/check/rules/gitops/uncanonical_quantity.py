"""A quantity that comes back in another spelling."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.objects import Container
from jobgen.model.data import value_of
from jobgen.model.finding import FixStep
from jobgen.model.quantity import canonicalize_quantity

_ENGINES = {"argocd": "Argo CD", "flux": "Flux"}


@rule("container", INFO, fields=("resources",))
def uncanonical_quantity(container: Container) -> Iterator[Violation]:
    """A quantity in another spelling than Kubernetes' own, such as `1000m`, in what Argo CD or Flux applies.

    Kueue and operators write objects back as Kubernetes spells them, `1000m` as `1` and `1024Mi` as `1Gi`. Git and the
    cluster then differ, and who heals that fights with them. Write the quantity as Kubernetes does.
    """
    engine = _ENGINES.get(container.pod.role.manifest.cluster.gitops)
    if engine is None:
        return
    for amounts in (container.limits, container.requests):
        for name, node in amounts.items():
            said = value_of(node)
            meant = canonicalize_quantity(said) if isinstance(said, str) else None
            if meant is not None and meant != said:
                message = f"`{name}` comes back as `{meant}`, and {engine} sees a difference; write it so"
                yield Violation(node, message, fix_steps=(FixStep("set", node, meant),))
