"""Validate ServiceCIDRs."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, iter_texts, require_fields
from jobgen.check.validation._addresses import describe_cidr_fault, parse_cidr
from jobgen.k8s.nodes import as_list
from jobgen.model.data import Node


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate one CIDR, or one of each IP family."""
    require_fields("a ServiceCIDR", run.spec, ("cidrs",), find_key(obj, "spec", obj), run)
    cidrs = as_list(run.spec.get("cidrs"))
    if len(cidrs) > 2:
        run.report("out-of-range", f"`cidrs` has `{len(cidrs)}` items; it can have at most 2", cidrs)
        return
    versions: list[int] = []
    for text, node in iter_texts(cidrs):
        network = parse_cidr(text)
        if fault := describe_cidr_fault(text, run.release, canonical=True):
            run.report("invalid-host-name", fault, node)
        elif network and network.version in versions:
            message = f"`{text}` is the second IPv{network.version} network; use one of each IP family"
            run.report("invalid-value", message, node)
        if network:
            versions.append(network.version)
