"""Validate Services."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    find_key,
    is_set,
    iter_texts,
    report_missing,
    report_unsupported,
    validate_enum,
    validate_number,
)
from jobgen.check.admission.metadata import validate_labels
from jobgen.check.admission.names import (
    DNS_SUBDOMAIN,
    LABEL_1035_NAME,
    LABEL_KEY,
    LABEL_NAME,
    NameFormat,
    is_dns_subdomain,
    is_label_key,
)
from jobgen.check.validation._addresses import (
    describe_address_fault,
    describe_cidr_fault,
    describe_special_address,
    parse_address,
)
from jobgen.check.validation.core._cluster_ips import ServiceFields, list_cluster_ips, validate_cluster_ips
from jobgen.check.validation.core._service_ports import validate_node_port, validate_service_ports
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.releases import Release
from jobgen.model.data import Node, value_of

_TYPES = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")
_LABEL_NAMES_SINCE: Release = (1, 36)
_TRAFFIC_DISTRIBUTION_SINCE: Release = (1, 31)
_SAME_ZONE_SINCE: Release = (1, 34)
_MAX_TIMEOUT_SECONDS = 86400
_SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_TOPOLOGY_MODE, _TOPOLOGY_HINTS = (
    "service.kubernetes.io/topology-mode",
    "service.kubernetes.io/topology-aware-hints",
)
_ADDRESS_RULE = "invalid-host-name"
_validate_affinity = validate_enum("", "None", "ClientIP")
_validate_timeout = validate_number(1, _MAX_TIMEOUT_SECONDS)


def choose_name_format(release: Release) -> NameFormat:
    """Return the format of names; until 1.35 they start with a letter."""
    return LABEL_NAME if release >= _LABEL_NAMES_SINCE else LABEL_1035_NAME


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate a Service, with the defaults that the API server sets first."""
    spec = run.spec
    service = ServiceFields(spec, as_text(spec.get("type")) or "ClusterIP", list_cluster_ips(spec))
    validate_service_ports(service, run)
    validate_labels("selector", spec.get("selector"), spec, run)
    _validate_session_affinity(spec, run)
    if service.type == "ExternalName":
        _validate_external_name(service, run)
    else:
        validate_cluster_ips(service, run)
    _validate_external_ips(spec, run)
    _validate_source_ranges(spec, run)
    _validate_traffic_values(spec, run)
    if service.type not in _TYPES:
        # Which of the other fields are valid depends on the type.
        report_unsupported("type", spec["type"], _TYPES, run)
        return
    _validate_required_ports(obj, service, run)
    _validate_load_balancer(service, run)
    _validate_external_traffic(service, run)
    _validate_annotations(service, run)


def _validate_required_ports(obj: Mapping[str, Node], service: ServiceFields, run: Validation) -> None:
    if not as_list(service.spec.get("ports")) and not service.is_headless and service.type != "ExternalName":
        report_missing("a Service with a cluster IP", service.spec, "ports", find_key(obj, "spec", obj), run)


def _validate_session_affinity(spec: Mapping[str, Node], run: Validation) -> None:
    _validate_affinity("sessionAffinity", spec.get("sessionAffinity"), spec, run)
    if as_text(spec.get("sessionAffinity")) == "ClientIP":
        # The API server drops the timeout for other affinities.
        client = as_mapping(get_path(spec, "sessionAffinityConfig", "clientIP"))
        _validate_timeout("timeoutSeconds", client.get("timeoutSeconds"), client, run)


def _validate_external_name(service: ServiceFields, run: Validation) -> None:
    spec = service.spec
    if service.cluster_ips:
        field = "clusterIPs" if as_list(spec.get("clusterIPs")) else "clusterIP"
        _report_forbidden(field, spec, "a Service of type `ExternalName`", run)
    if as_list(spec.get("ipFamilies")):
        _report_forbidden("ipFamilies", spec, "a Service of type `ExternalName`", run)
    if is_set(spec.get("ipFamilyPolicy")):
        _report_forbidden("ipFamilyPolicy", spec, "a Service of type `ExternalName`", run)
    name = as_text(spec.get("externalName")).removesuffix(".")
    if not name:
        report_missing("a Service of type `ExternalName`", spec, "externalName", "spec", run)
    elif not is_dns_subdomain(name):
        message = f"`{name}` is not a valid external name; {DNS_SUBDOMAIN}"
        run.report(_ADDRESS_RULE, message, spec["externalName"])


def _report_forbidden(field: str, spec: Mapping[str, Node], what: str, run: Validation) -> None:
    run.report("invalid-value", f"`{field}` cannot be set for {what}; delete it", find_key(spec, field, spec))


def _validate_external_ips(spec: Mapping[str, Node], run: Validation) -> None:
    for text, node in iter_texts(spec.get("externalIPs")):
        fault = describe_address_fault(text, run.release)
        address = parse_address(text)
        if not fault and address is not None:
            fault = describe_special_address(address)
        if fault:
            run.report(_ADDRESS_RULE, fault, node)


def _validate_load_balancer(service: ServiceFields, run: Validation) -> None:
    """Validate the fields that only load balancers have."""
    spec = service.spec
    is_load_balancer = service.type == "LoadBalancer"
    if not is_load_balancer:
        fields = [name for name in ("allocateLoadBalancerNodePorts", "loadBalancerClass") if is_set(spec.get(name))]
        fields += ["loadBalancerSourceRanges"] if as_list(spec.get("loadBalancerSourceRanges")) else []
        for field in fields:
            _report_forbidden(field, spec, f"a Service of type `{service.type}`", run)
    elif is_set(spec.get("loadBalancerClass")) and not is_label_key(as_text(spec["loadBalancerClass"])):
        name = as_text(spec["loadBalancerClass"])
        run.report("invalid-value", f"`{name}` is not a valid class; {LABEL_KEY}", spec["loadBalancerClass"])


def _validate_source_ranges(spec: Mapping[str, Node], run: Validation) -> None:
    for text, node in iter_texts(spec.get("loadBalancerSourceRanges")):
        if fault := describe_cidr_fault(text.strip(), run.release):
            run.report(_ADDRESS_RULE, fault, node)


def _validate_external_traffic(service: ServiceFields, run: Validation) -> None:
    spec, policy = service.spec, as_text(service.spec.get("externalTrafficPolicy"))
    if service.is_externally_accessible:
        if policy not in ("", "Cluster", "Local"):
            report_unsupported("externalTrafficPolicy", spec["externalTrafficPolicy"], ("Cluster", "Local"), run)
    elif policy:
        message = "`externalTrafficPolicy` requires the type `NodePort` or `LoadBalancer`, or `externalIPs`; delete it"
        run.report("invalid-value", message, spec["externalTrafficPolicy"])
    port = as_integer(spec.get("healthCheckNodePort"))
    if not port:
        return
    if service.type == "LoadBalancer" and policy == "Local":
        validate_node_port("healthCheckNodePort", spec["healthCheckNodePort"], run)
    else:
        message = "`healthCheckNodePort` requires the type `LoadBalancer` and `externalTrafficPolicy: Local`; delete it"
        run.report("invalid-value", message, spec["healthCheckNodePort"])


def _validate_traffic_values(spec: Mapping[str, Node], run: Validation) -> None:
    validate_enum("Cluster", "Local")("internalTrafficPolicy", spec.get("internalTrafficPolicy"), spec, run)
    if run.release >= _TRAFFIC_DISTRIBUTION_SINCE:
        nearer = ("PreferSameZone", "PreferSameNode") if run.release >= _SAME_ZONE_SINCE else ()
        validate_enum("PreferClose", *nearer)("trafficDistribution", spec.get("trafficDistribution"), spec, run)


def _validate_annotations(service: ServiceFields, run: Validation) -> None:
    annotations = as_mapping(run.metadata.get("annotations"))
    modes = [value_of(annotations[name]) for name in (_TOPOLOGY_MODE, _TOPOLOGY_HINTS) if name in annotations]
    if len(modes) == 2 and modes[0] != modes[1]:
        message = f"`{_TOPOLOGY_MODE}` and `{_TOPOLOGY_HINTS}` differ; delete the latter, which is deprecated"
        run.report("invalid-annotation", message, annotations[_TOPOLOGY_MODE])
    if _SOURCE_RANGES not in annotations or as_list(service.spec.get("loadBalancerSourceRanges")):
        return
    node = annotations[_SOURCE_RANGES]
    if service.type != "LoadBalancer":
        message = f"`{_SOURCE_RANGES}` requires the type `LoadBalancer`; delete it"
        run.report("invalid-annotation", message, find_key(annotations, _SOURCE_RANGES, annotations))
    text = as_text(node).strip()
    for part in text.split(",") if text else ():
        if fault := describe_cidr_fault(part.strip(), run.release):
            run.report("invalid-annotation", fault, node)
