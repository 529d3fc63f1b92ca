"""Validate NetworkPolicies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobgen.check.admission.fields import (
    Validation,
    find_key,
    is_set,
    iter_items,
    iter_texts,
    report_missing,
    report_unsupported,
    validate_enum,
)
from jobgen.check.admission.names import PORT_NAME, is_port_name
from jobgen.check.admission.scheduling import validate_label_selector
from jobgen.check.validation._addresses import describe_cidr_fault, parse_cidr
from jobgen.k8s.nodes import as_integer, as_list, as_text
from jobgen.model.data import Node, value_of

_PEERS = ("podSelector", "namespaceSelector", "ipBlock")
_POLICY_TYPES = ("Ingress", "Egress")
_validate_protocol = validate_enum("TCP", "UDP", "SCTP")


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the selector, the ports and peers of each rule, and the policy types."""
    validate_label_selector("podSelector", run.spec.get("podSelector"), run.spec, run)
    for field, peers in (("ingress", "from"), ("egress", "to")):
        for rule, _ in iter_items(field, run.spec.get(field)):
            for port, node in iter_items("ports", rule.get("ports")):
                _validate_port(port, node, run)
            for peer, node in iter_items(peers, rule.get(peers)):
                _validate_peer(peer, node, run)
    _validate_policy_types(as_list(run.spec.get("policyTypes")), run)


def _validate_policy_types(types: Sequence[Node], run: Validation) -> None:
    if len(types) > len(_POLICY_TYPES):
        run.report("out-of-range", f"`policyTypes` has `{len(types)}` items; it can have at most 2", types)
        return
    for found, node in iter_texts(types):
        if found not in _POLICY_TYPES:
            report_unsupported("policyTypes", node, _POLICY_TYPES, run)


def _validate_port(port: Mapping[str, Node], node: Node, run: Validation) -> None:
    if is_set(port.get("protocol")):
        _validate_protocol("protocol", port["protocol"], port, run)
    number, last = value_of(port.get("port")), as_integer(port.get("endPort"))
    if type(number) is int:
        _validate_port_number("port", port["port"], run)
        if last is not None:
            _validate_port_number("endPort", port["endPort"], run)
            if last < number:
                message = f"`endPort` is `{last}`, but must be at least `port`, which is `{number}`"
                run.report("out-of-range", message, port["endPort"])
        return
    if last is not None:
        run.report("invalid-form", "`endPort` requires a number as `port`; set it or delete `endPort`", port["endPort"])
    if isinstance(number, str) and not is_port_name(number):
        run.report("invalid-port-name", f"`{number}` is not a valid port name; {PORT_NAME}", port["port"])


def _validate_port_number(field: str, node: Node, run: Validation) -> None:
    found = as_integer(node)
    if found is not None and not 0 < found < 65536:
        run.report("invalid-port", f"`{field}` is `{found}`, but must be between 1 and 65535", node)


def _validate_peer(peer: Mapping[str, Node], node: Node, run: Validation) -> None:
    given = [field for field in _PEERS if is_set(peer.get(field))]
    for field in given:
        if field == "ipBlock":
            _validate_block(peer["ipBlock"], find_key(peer, "ipBlock", node), run)
        else:
            validate_label_selector(field, peer[field], peer, run)
    if not given:
        message = "a peer requires `podSelector`, `namespaceSelector` or `ipBlock`; set one of them"
        run.report("missing-field", message, node)
    elif "ipBlock" in given and len(given) > 1:
        message = f"a peer cannot have both `ipBlock` and `{given[0]}`; write two peers"
        run.report("invalid-form", message, find_key(peer, "ipBlock", node))


def _validate_block(block: Node, key: Node, run: Validation) -> None:
    if not isinstance(block, dict):
        return
    cidr = as_text(block.get("cidr"))
    if not cidr:
        report_missing("`ipBlock`", block, "cidr", key, run)
        return
    if fault := describe_cidr_fault(cidr, run.release):
        run.report("invalid-host-name", fault, block["cidr"])
    network = parse_cidr(cidr)
    if network is None:
        return
    for text, node in iter_texts(block.get("except")):
        excepted = parse_cidr(text)
        if fault := describe_cidr_fault(text, run.release):
            run.report("invalid-host-name", fault, node)
        elif excepted and (
            excepted.version != network.version
            or excepted.network_address not in network
            or excepted.prefixlen <= network.prefixlen
        ):
            message = f"`{text}` is not a strict subset of the block `{cidr}`; except a smaller network in it"
            run.report("invalid-value", message, node)
