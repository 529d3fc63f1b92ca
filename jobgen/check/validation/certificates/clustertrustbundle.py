"""Validate ClusterTrustBundles."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key
from jobgen.check.admission.names import DNS_SUBDOMAIN, PATH_SEGMENT_NAME, is_dns_subdomain
from jobgen.check.validation.certificates._pem import PemBlock, is_der_sequence, read_pem
from jobgen.check.validation.certificates._signers import validate_signer
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node

NAME_FORMAT = PATH_SEGMENT_NAME
_MAX_BYTES = 1024 * 1024


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the name, which begins with the signer, and the certificates."""
    signer, name = as_text(run.spec.get("signerName")), as_text(run.metadata.get("name"))
    validate_signer(run.spec.get("signerName"), run)
    prefix = f"{signer.replace('/', ':')}:" if signer else ""
    if name and not (name.startswith(prefix) and is_dns_subdomain(name.removeprefix(prefix))):
        hint = f"begin it with `{prefix}`, then {DNS_SUBDOMAIN}" if prefix else DNS_SUBDOMAIN
        run.report(
            "invalid-name", f"`{name}` is not a valid name of this ClusterTrustBundle; {hint}", run.metadata["name"]
        )
    _validate_bundle(as_text(run.spec.get("trustBundle")), find_key(run.spec, "trustBundle", obj), run)


def _validate_bundle(text: str, node: Node, run: Validation) -> None:
    if len(text) > _MAX_BYTES:
        run.report("out-of-range", f"`trustBundle` has more than {_MAX_BYTES} bytes; shorten it", node)
        return
    blocks = read_pem(text)
    for number, block in enumerate(blocks):
        if fault := _describe_fault(block):
            run.report("invalid-value", f"block {number} of `trustBundle` {fault}", node)
        elif block in blocks[:number]:
            run.report("duplicate-item", f"block {number} of `trustBundle` repeats an earlier one; delete it", node)
    if not blocks:
        run.report("missing-field", "`trustBundle` requires at least one PEM block `CERTIFICATE`; add it", node)


def _describe_fault(block: PemBlock) -> str:
    if block.kind != "CERTIFICATE":
        return f"is a `{block.kind}`, but must be a `CERTIFICATE`"
    if block.has_headers:
        return "has headers; delete them"
    return "" if is_der_sequence(block.content) else "is not a certificate; write one in PEM"
