"""The claims of a pod for devices: claims of its own and those that it shares with other pods."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.k8s.device_catalog import CatalogSource, Claim, ClaimKey
from jobgen.k8s.nodes import as_list, as_text
from jobgen.model.data import Node
from jobgen.model.named_tuple import NamedTuple


class PodClaim(NamedTuple):
    """A claim of a pod: a claim of its own, made from a template, or one that it shares with other pods."""

    name: Node
    """The node that names the claim or the template."""
    kind: str
    key: ClaimKey
    definition: Claim | None
    """What the claim requests; None if that is not known."""

    @property
    def is_shared(self) -> bool:
        """Whether other pods may have the same claim."""
        return self.kind == "ResourceClaim"

    @property
    def is_counted(self) -> bool:
        """Whether it is known how many devices it requests."""
        return self.definition is not None and not self.definition.uncounted


class SharedDevices(NamedTuple):
    """GPUs of a claim that several pods share: they count once."""

    claim: ClaimKey
    gpus: int


def find_claims(entries: Node, namespace: str, read_catalog: CatalogSource) -> Iterator[tuple[str, PodClaim]]:
    """Yield the claims that `resourceClaims` of a pod lists, each with its name in the pod."""
    for entry in as_list(entries):
        if isinstance(entry, dict):
            field = "resourceClaimName" if as_text(entry.get("resourceClaimName")) else "resourceClaimTemplateName"
            key = (namespace, as_text(entry.get(field)))
            catalog = read_catalog()
            if field == "resourceClaimName":
                claim = PodClaim(entry[field], "ResourceClaim", key, catalog.claims.get(key))
            else:
                claim = PodClaim(entry.get(field), "ResourceClaimTemplate", key, catalog.templates.get(key))
            yield as_text(entry.get("name")), claim
