"""Validate the cluster IPs of a Service and the families of its addresses."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    find_key,
    is_set,
    iter_texts,
    report_unsupported,
    validate_enum,
)
from jobgen.check.validation._addresses import describe_address_fault, parse_address
from jobgen.k8s.nodes import as_list, as_text
from jobgen.model.data import Node
from jobgen.model.named_tuple import NamedTuple

_FAMILIES = ("IPv4", "IPv6")
_FAMILY_OF_VERSION = {4: "IPv4", 6: "IPv6"}
_HEADLESS = "None"
_validate_policy = validate_enum("SingleStack", "PreferDualStack", "RequireDualStack")


class ServiceFields(NamedTuple):
    """The fields of a Service that decide which of the others are valid."""

    spec: Mapping[str, Node]
    type: str
    cluster_ips: list[tuple[str, Node]]

    @property
    def is_headless(self) -> bool:
        """Whether the Service has no cluster IP."""
        return [text for text, _ in self.cluster_ips] == [_HEADLESS]

    @property
    def is_externally_accessible(self) -> bool:
        """Whether clients outside the cluster can reach the Service."""
        has_external_ips = self.type == "ClusterIP" and bool(as_list(self.spec.get("externalIPs")))
        return self.type in ("NodePort", "LoadBalancer") or has_external_ips


def list_cluster_ips(spec: Mapping[str, Node]) -> list[tuple[str, Node]]:
    """Return the cluster IPs: `clusterIPs`, or `clusterIP` if they are not set."""
    found = list(iter_texts(spec.get("clusterIPs")))
    if not found and as_text(spec.get("clusterIP")):
        found = [(as_text(spec["clusterIP"]), spec["clusterIP"])]
    return found


def validate_cluster_ips(service: ServiceFields, run: Validation) -> None:
    """Validate the cluster IPs, the families, and that they fit together."""
    spec = service.spec
    if service.is_headless and service.type in ("NodePort", "LoadBalancer"):
        message = f"`None` is not a valid cluster IP for a Service of type `{service.type}`; delete it"
        run.report("invalid-value", message, service.cluster_ips[0][1])
    _validate_families(spec, run)
    if is_set(spec.get("ipFamilyPolicy")):
        _validate_policy("ipFamilyPolicy", spec["ipFamilyPolicy"], spec, run)
    if _has_first_cluster_ip(service, run) and _validate_addresses(service, run):
        _validate_address_families(service, run)
        _validate_single_stack(service, run)


def _has_first_cluster_ip(service: ServiceFields, run: Validation) -> bool:
    """Validate that `clusterIP` is the first of `clusterIPs`, and return whether it is set if they are."""
    first, listed = as_text(service.spec.get("clusterIP")), as_list(service.spec.get("clusterIPs"))
    if listed and not first:
        message = "`clusterIPs` requires `clusterIP` with the first of its addresses; set it"
        run.report("invalid-value", message, find_key(service.spec, "clusterIPs", listed))
    elif listed and as_text(listed[0]) != first:
        message = f"`clusterIPs` begins with `{as_text(listed[0])}`, but `clusterIP` is `{first}`; make them equal"
        run.report("invalid-value", message, listed)
    return bool(first) or not listed


def _validate_families(spec: Mapping[str, Node], run: Validation) -> None:
    seen: set[str] = set()
    for family, node in iter_texts(spec.get("ipFamilies")):
        if family not in _FAMILIES:
            report_unsupported("ipFamilies", node, _FAMILIES, run)
        elif family in seen:
            run.report("duplicate-item", f"`ipFamilies` contains `{family}` twice; delete one of them", node)
        seen.add(family)


def _validate_addresses(service: ServiceFields, run: Validation) -> bool:
    """Validate each cluster IP and return whether all of them are addresses."""
    count, valid = len(service.cluster_ips), True
    for index, (text, node) in enumerate(service.cluster_ips):
        if text == _HEADLESS and index == 0:
            if count > 1:
                run.report("invalid-value", "`None` cannot be combined with other cluster IPs; delete them", node)
                valid = False
        elif fault := describe_address_fault(text, run.release):
            run.report("invalid-host-name", fault, node)
            valid = False
    if count > 2:
        message = f"`clusterIPs` has `{count}` addresses; it can have at most 2"
        run.report("out-of-range", message, find_key(service.spec, "clusterIPs", "clusterIPs"))
        valid = False
    return valid


def _validate_address_families(service: ServiceFields, run: Validation) -> None:
    if service.is_headless:
        return
    addresses = [(parse_address(text), node) for text, node in service.cluster_ips]
    found = [(_FAMILY_OF_VERSION[address.version], node) for address, node in addresses if address is not None]
    if len(found) == 2 and found[0][0] == found[1][0]:
        message = f"`clusterIPs` has two addresses of the family `{found[0][0]}`; write one of each family"
        run.report("invalid-value", message, found[1][1])
    declared = [family for family, _ in iter_texts(service.spec.get("ipFamilies"))]
    for (family, node), expected in zip(found, declared, strict=False):
        if expected in _FAMILIES and family != expected:
            message = (
                f"the cluster IP is of the family `{family}`, but `ipFamilies` has `{expected}`; change one of them"
            )
            run.report("invalid-value", message, node)


def _validate_single_stack(service: ServiceFields, run: Validation) -> None:
    """Validate that two addresses or two families come with a policy for them."""
    spec, policy = service.spec, as_text(service.spec.get("ipFamilyPolicy"))
    without_selector = service.is_headless and not spec.get("selector")
    if policy not in ("", "SingleStack") or (not policy and without_selector):
        return
    fields = [name for name in ("clusterIPs", "ipFamilies") if len(as_list(spec.get(name))) == 2]
    if fields:
        message = f"two items in `{fields[0]}` require `ipFamilyPolicy: PreferDualStack` or `RequireDualStack`; set it"
        run.report("invalid-value", message, find_key(spec, "ipFamilyPolicy" if policy else fields[0], spec))
