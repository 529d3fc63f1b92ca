"""Validate the names of signers."""

from __future__ import annotations

from jobgen.check.admission.fields import Validation
from jobgen.check.admission.names import is_dns_label, is_dns_subdomain
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node

_MAX_DOMAIN, _MAX_NAME = 253, 571


def validate_signer(node: Node, run: Validation) -> None:
    """Validate a domain and a name; an empty text is not set."""
    found = as_text(node)
    if found and not _is_signer(found):
        message = f"`{found}` is not a valid signer; write a domain and a name, such as `example.com/signer`"
        run.report("invalid-value", message, node)


def _is_signer(text: str) -> bool:
    domain, slash, name = text.partition("/")
    labels = domain.split(".")
    return (
        bool(slash)
        and len(text) <= _MAX_NAME
        and len(domain) <= _MAX_DOMAIN
        and len(labels) > 1
        and all(map(is_dns_label, labels))
        and all(map(is_dns_subdomain, name.split(".")))
    )
