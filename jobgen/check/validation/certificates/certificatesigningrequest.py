"""Validate CertificateSigningRequests."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    find_key,
    iter_texts,
    report_unsupported,
    require_fields,
    validate_number,
)
from jobgen.check.admission.names import PATH_SEGMENT_NAME
from jobgen.check.validation.certificates._pem import is_der_sequence, read_pem
from jobgen.check.validation.certificates._signers import validate_signer
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node

NAME_FORMAT = PATH_SEGMENT_NAME
_LEGACY_SIGNER = "kubernetes.io/legacy-unknown"
_USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
_validate_expiration = validate_number(600)


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the request, its usages, the signer and the expiration."""
    spec, key = run.spec, find_key(obj, "spec", obj)
    require_fields("a CertificateSigningRequest", spec, ("request", "usages", "signerName"), key, run)
    if as_text(spec.get("request")):
        _validate_request(spec["request"], run)
    seen: set[str] = set()
    for text, node in iter_texts(spec.get("usages")):
        if text not in _USAGES:
            report_unsupported("usages", node, _USAGES, run)
        elif text in seen:
            run.report("duplicate-item", f"`usages` has `{text}` twice; delete one of them", node)
        seen.add(text)
    if as_text(spec.get("signerName")) == _LEGACY_SIGNER:
        run.report("invalid-value", f"the signer `{_LEGACY_SIGNER}` is not supported; name another", spec["signerName"])
    else:
        validate_signer(spec.get("signerName"), run)
    _validate_expiration("expirationSeconds", spec.get("expirationSeconds"), spec, run)


def _validate_request(node: Node, run: Validation) -> None:
    try:
        text = b64decode("".join(as_text(node).split())).decode("latin-1")
    except (binascii.Error, ValueError):
        # The schema reports text that is not base64.
        return
    blocks = read_pem(text)
    if not blocks or blocks[0].kind != "CERTIFICATE REQUEST" or not is_der_sequence(blocks[0].content):
        message = "`request` must be a PEM block `CERTIFICATE REQUEST` in base64, as `openssl req -new` writes it"
        run.report("invalid-value", message, node)
