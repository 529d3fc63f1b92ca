"""Validate the kinds that say who may use the API server: roles, certificates and the flow of requests."""

from __future__ import annotations

import binascii
import math
from base64 import b64decode
from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Check,
    Fields,
    Kind,
    Table,
    Validation,
    Validator,
    choice,
    dns_label,
    dns_subdomain,
    each,
    fields,
    find_key,
    inside,
    is_empty,
    is_set,
    items,
    mapping,
    namespace_name,
    number,
    one_of,
    path_segment,
    require_set,
    spec,
    text,
    texts,
    validate_fields,
)
from jobgen.check.admission.names import DNS_SUBDOMAIN, PATH_SEGMENT_NAME, is_dns_label, is_dns_subdomain
from jobgen.check.admission.scheduling import validate_label_selector
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text
from jobgen.model.data import Node, Plain, untraced, value_of
from jobgen.model.named_tuple import NamedTuple

_aggregation = mapping({"clusterRoleSelectors": each(validate_label_selector)}, "clusterRoleSelectors")
_BEGIN, _END, _DASHES = "-----BEGIN ", "-----END ", "-----"
_LEGACY_SIGNER = "kubernetes.io/legacy-unknown"
_MAX_DOMAIN, _MAX_SIGNER = 253, 571
_MAX_BUNDLE_BYTES = 1024 * 1024
_USAGES = (
    *("any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment"),
    *("decipher only", "digital signature", "email protection", "encipher only", "ipsec end system"),
    *("ipsec tunnel", "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc"),
    *("ocsp signing", "s/mime", "server auth", "signing", "timestamping"),
)
_ALL = "*"
_FLOW_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_ZERO_SHARES = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
_MAX_HASH_BITS = 60
_level_name = dns_subdomain("invalid-object-name", "name of a PriorityLevelConfiguration")
_check_subject_kind = choice("a subject", "kind", *_FLOW_SUBJECTS)
_URL_FAULT = "`{}` is not a valid URL; write a path, such as `/healthz` or `/healthz/*`"


def _fix_spec(level: str, precedence: int, *groups: str, method: str = "") -> Mapping[str, Plain]:
    rule: Plain = {
        "subjects": [{"kind": "Group", "group": {"name": f"system:{group}"}} for group in groups],
        "resourceRules": [
            {"verbs": [_ALL], "apiGroups": [_ALL], "resources": [_ALL], "clusterScope": True, "namespaces": [_ALL]}
        ],
        "nonResourceRules": [{"verbs": [_ALL], "nonResourceURLs": [_ALL]}],
    }
    return {
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence,
        "rules": [rule],
        **({"distinguisherMethod": {"type": method}} if method else {}),
    }


_FIXED_SPECS = {
    "exempt": _fix_spec("exempt", 1, "masters"),
    "catch-all": _fix_spec("catch-all", 10000, "unauthenticated", "authenticated", method="ByUser"),
}


def _role_rules(*, namespaced: bool) -> Table:
    """Return the table of a role: each rule has verbs, and either resources or, in a ClusterRole, URLs."""

    def check_targets(rule: Fields, place: Node, run: Validation) -> None:
        if is_empty(rule.get("nonResourceURLs")):
            run.require_fields("a rule", rule, ("apiGroups", "resources"), place)
            return
        if namespaced:
            message = "`nonResourceURLs` cannot be in a Role, which has a namespace; use a ClusterRole"
            run.report("invalid-form", message, rule["nonResourceURLs"])
        given = [field for field in ("apiGroups", "resources", "resourceNames") if not is_empty(rule.get(field))]
        if given:
            message = f"a rule cannot have both `nonResourceURLs` and `{given[0]}`; write two rules"
            run.report("invalid-form", message, rule["nonResourceURLs"])

    return {"rules": items("a rule", {}, "verbs", check_targets)}


def _role_reference(*kinds: str) -> Check:
    """Return a check of the kind and the group of a role or a subject; a group is set by default."""
    check_kind = choice("a reference", "kind", *kinds)

    def check(reference: Fields, place: Node, run: Validation) -> None:
        check_kind(reference, place, run)
        kind, found = as_text(reference.get("kind")), as_text(reference.get("apiGroup"))
        group = "" if kind == "ServiceAccount" else "rbac.authorization.k8s.io"
        if kind in kinds and found and found != group:
            wanted = f"must be `{group}`" if group else "must not be set, because ServiceAccounts are in the core group"
            run.invalid(f"`apiGroup` is `{found}`, but {wanted}", reference["apiGroup"])

    return check


def _binding(*kinds: str, needs_namespace: bool) -> Kind:
    def check_account(subject: Fields, place: Node, run: Validation) -> None:
        name = as_text(subject.get("name"))
        if as_text(subject.get("kind")) != "ServiceAccount":
            return
        if name and not is_dns_subdomain(name):
            message = f"`{name}` is not a valid name of a ServiceAccount; {DNS_SUBDOMAIN}"
            run.report("invalid-object-name", message, subject["name"])
        if needs_namespace and is_empty(subject.get("namespace")):
            run.report_missing("a ServiceAccount in a ClusterRoleBinding", subject, "namespace", place)

    subject = items("a subject", {}, "name", _role_reference("ServiceAccount", "User", "Group"), check_account)
    role = mapping({"name": path_segment("invalid-object-name", "role name")}, "name", _role_reference(*kinds))
    check = fields("a binding", {"roleRef": role, "subjects": subject}, require_set("a binding", "roleRef"))
    return Kind(check, PATH_SEGMENT_NAME)


class _PemBlock(NamedTuple):
    """A block of PEM, as far as its structure goes: what is in it needs cryptography to verify."""

    kind: str
    has_headers: bool
    content: bytes


def _read_pem(written: str) -> list[_PemBlock]:
    """Return the blocks of a text; what is not one is ignored."""
    found: list[_PemBlock] = []
    kind, body = "", list[str]()
    for line in map(str.strip, written.split("\n")):
        if line.startswith(_BEGIN) and line.endswith(_DASHES):
            kind, body = line.removeprefix(_BEGIN).removesuffix(_DASHES), []
        elif line == f"{_END}{kind}{_DASHES}" and kind:
            data = [one for one in body if ":" not in one]
            try:
                found.append(_PemBlock(kind, len(data) < len(body), b64decode("".join(data), validate=True)))
            except (binascii.Error, ValueError):
                pass
            kind = ""
        else:
            body.append(line)
    return found


def _is_der_sequence(content: bytes) -> bool:
    """Return True if bytes are one sequence of DER, as certificates and requests are, and nothing else."""
    if len(content) < 2 or content[0] != 0x30:
        return False
    size, start = content[1], 2
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(content[2:start], "big")
    return len(content) == start + size


def _is_signer(name: str) -> bool:
    domain, slash, rest = name.partition("/")
    labels = domain.split(".")
    has_size = bool(slash) and len(name) <= _MAX_SIGNER and len(domain) <= _MAX_DOMAIN and len(labels) > 1
    return has_size and all(map(is_dns_label, labels)) and all(map(is_dns_subdomain, rest.split(".")))


def _validate_signer(key: str, value: Node, owner: Fields, run: Validation) -> None:
    if as_text(value) == _LEGACY_SIGNER:
        run.invalid(f"the signer `{_LEGACY_SIGNER}` is not supported; name another", value)
    else:
        _signer(key, value, owner, run)


def _validate_request(key: str, value: Node, owner: Fields, run: Validation) -> None:
    try:
        written = b64decode("".join(as_text(value).split())).decode("latin-1")
    except (binascii.Error, ValueError):
        # The schema reports text that is not base64.
        return
    block = next(iter(_read_pem(written)), None)
    is_request = block and block.kind == "CERTIFICATE REQUEST" and _is_der_sequence(block.content)
    if as_text(value) and not is_request:
        message = "`request` must be a PEM block `CERTIFICATE REQUEST` in base64, as `openssl req -new` writes it"
        run.invalid(message, value)


def _check_bundle(obj: Fields, place: Node, run: Validation) -> None:
    """Check the name, which begins with the signer, and the certificates."""
    bundle = run.spec
    _signer("signerName", bundle.get("signerName"), bundle, run)
    signer, name = as_text(bundle.get("signerName")), as_text(run.metadata.get("name"))
    prefix = f"{signer.replace('/', ':')}:" if signer else ""
    if name and not (name.startswith(prefix) and is_dns_subdomain(name.removeprefix(prefix))):
        hint = f"begin it with `{prefix}`, then {DNS_SUBDOMAIN}" if prefix else DNS_SUBDOMAIN
        message = f"`{name}` is not a valid name of this ClusterTrustBundle; {hint}"
        run.report("invalid-name", message, run.metadata["name"])
    written, node = as_text(bundle.get("trustBundle")), find_key(bundle, "trustBundle", obj)
    if len(written) > _MAX_BUNDLE_BYTES:
        run.report("out-of-range", f"`trustBundle` has more than {_MAX_BUNDLE_BYTES} bytes; shorten it", node)
        return
    blocks = _read_pem(written)
    for index, block in enumerate(blocks):
        subject = f"block {index} of `trustBundle`"
        if block.kind != "CERTIFICATE":
            run.invalid(f"{subject} is a `{block.kind}`, but must be a `CERTIFICATE`", node)
        elif block.has_headers:
            run.invalid(f"{subject} has headers; delete them", node)
        elif not _is_der_sequence(block.content):
            run.invalid(f"{subject} is not a certificate; write one in PEM", node)
        elif block in blocks[:index]:
            run.report("duplicate-item", f"{subject} repeats an earlier one; delete it", node)
    if not blocks:
        run.report("missing-field", "`trustBundle` requires at least one PEM block `CERTIFICATE`; add it", node)


def _is_account_name(name: str) -> bool:
    return name == _ALL or is_dns_subdomain(name)


def _is_url(url: str) -> bool:
    has_wildcard = "*" in url.removesuffix("*") or (url.endswith("*") and not url.endswith("/*"))
    return url.startswith("/") and " " not in url and "//" not in url and not has_wildcard


def _all_or(validate_items: Validator | None = None) -> Validator:
    """Return a validator for a list that has either `*` alone, or items without it."""

    def validate(key: str, value: Node, owner: Fields, run: Validation) -> None:
        found = as_list(value)
        if not any(value_of(item) == _ALL for item in found):
            if validate_items:
                validate_items(key, value, owner, run)
        elif len(found) > 1:
            run.invalid(f"`{key}` has other items beside `*`; delete them", key)

    return validate


def _check_fixed_spec(spec: Fields, place: Node, run: Validation) -> None:
    """Check a FlowSchema that Kubernetes itself creates: its spec is fixed."""
    name = as_text(run.metadata.get("name"))
    if name in _FIXED_SPECS and untraced(spec) != _FIXED_SPECS[name]:
        message = f"the spec of the FlowSchema `{name}` is fixed, and Kubernetes creates it; use another name"
        run.invalid(message, run.metadata["name"])


def _check_precedence(schema: Fields, place: Node, run: Validation) -> None:
    if as_integer(schema.get("matchingPrecedence")) == 1 and as_text(run.metadata.get("name")) != "exempt":
        message = "`matchingPrecedence: 1` is reserved for the FlowSchema `exempt`; use at least 2"
        run.report("out-of-range", message, schema["matchingPrecedence"])


def _check_flow_rule(rule: Fields, place: Node, run: Validation) -> None:
    if is_empty(rule.get("resourceRules")) and is_empty(rule.get("nonResourceRules")):
        run.report("missing-field", "a rule requires `resourceRules` or `nonResourceRules`; set one of them", place)


def _check_scope(rule: Fields, place: Node, run: Validation) -> None:
    if is_empty(rule.get("namespaces")) and value_of(rule.get("clusterScope")) is not True:
        message = "a resource rule requires `namespaces`, or `clusterScope: true`; set one of them"
        run.report("missing-field", message, find_key(rule, "namespaces", place))


def _check_flow_subject(subject: Fields, place: Node, run: Validation) -> None:
    _check_subject_kind(subject, place, run)
    kind = as_text(subject.get("kind"))
    own = _FLOW_SUBJECTS.get(kind)
    if own is None:
        return
    for field in _FLOW_SUBJECTS.values():
        if field != own and is_set(subject.get(field)):
            message = f"`{field}` cannot be set if `kind` is `{kind}`; delete it"
            run.report("invalid-form", message, find_key(subject, field, place))
    if isinstance(subject.get(own), dict):
        validate_fields({key: value for key, value in subject.items() if key == own}, _NAMED, run)
    else:
        run.report_missing(f"a subject of kind `{kind}`", subject, own, place)


def _check_level(level: Fields, place: Node, run: Validation) -> None:
    annotations = as_mapping(run.metadata.get("annotations"))
    if _ZERO_SHARES in annotations:
        message = f"the annotation `{_ZERO_SHARES}` cannot be set; delete it"
        run.report("invalid-annotation", message, find_key(annotations, _ZERO_SHARES, annotations))
    _check_level_type(level, place, run)
    kind = as_text(level.get("type"))
    if kind not in ("Exempt", "Limited"):
        return
    if (as_text(run.metadata.get("name")) == "exempt") != (kind == "Exempt"):
        message = "`type` must be `Exempt` for the object named `exempt`, and `Limited` for all others"
        run.invalid(message, level["type"])
    own, other = ("exempt", "limited") if kind == "Exempt" else ("limited", "exempt")
    if is_set(level.get(other)):
        message = f"`{other}` cannot be set if `type` is `{kind}`; delete it"
        run.report("invalid-form", message, find_key(level, other, place))
    if isinstance(level.get(own), dict):
        check = _check_limited if kind == "Limited" else _check_shares
        check(as_mapping(level[own]), find_key(level, own, place), run)
    elif kind == "Limited":
        run.report_missing("`type: Limited`", level, "limited", place)


def _check_response(response: Fields, place: Node, run: Validation) -> None:
    kind, queuing = as_text(response.get("type")), response.get("queuing")
    if kind == "Reject" and is_set(queuing):
        message = "`queuing` cannot be set if `type` is `Reject`; delete it"
        run.report("invalid-form", message, find_key(response, "queuing", place))
    elif kind == "Queue" and isinstance(queuing, dict):
        _check_queuing(queuing, find_key(response, "queuing", place), run)
    elif kind == "Queue":
        run.report_missing("`type: Queue`", response, "queuing", place)


def _check_hand(queuing: Fields, place: Node, run: Validation) -> None:
    hand, queues = as_integer(queuing.get("handSize")) or 8, as_integer(queuing.get("queues")) or 64
    if hand <= 0 or queues <= 0:
        return
    node = find_key(queuing, "handSize", place)
    if hand > queues:
        run.report("out-of-range", f"`handSize` is `{hand}`, but must be at most `queues`, which is `{queues}`", node)
    elif math.ceil(math.log2(queues) * hand) > _MAX_HASH_BITS:
        message = f"`handSize` of `{hand}` is too large for `{queues}` queues; lower one of them"
        run.report("out-of-range", message, node)


_signer = text("invalid-value", "signer", _is_signer, "write a domain and a name, such as `example.com/signer`")
_REQUEST: Table = {
    "expirationSeconds": number(600),
    "request": _validate_request,
    "signerName": _validate_signer,
    "usages": texts(*_USAGES, twice="`usages` has `{}` twice; delete one of them"),
}
_account_name = text("invalid-object-name", "name of a ServiceAccount", _is_account_name, DNS_SUBDOMAIN)
_NAMED: Table = {
    "group": mapping({}, "name"),
    "serviceAccount": mapping({"name": _account_name, "namespace": namespace_name}, "name", "namespace"),
    "user": mapping({}, "name"),
}
_VERBS = "get list create update delete deletecollection patch watch proxy".split()
_verbs = _all_or(each(one_of(*_VERBS, _ALL)))
_RESOURCE_RULE: Table = {
    "apiGroups": _all_or(),
    "namespaces": _all_or(each(dns_label("invalid-object-name", "namespace name", allow_empty=False))),
    "resources": _all_or(),
    "verbs": _verbs,
}
_URL_RULE: Table = {
    "nonResourceURLs": _all_or(texts(is_valid=_is_url, fault=("invalid-value", _URL_FAULT))),
    "verbs": _verbs,
}
_FLOW_RULE: Table = {
    "nonResourceRules": items("a rule for URLs", _URL_RULE, "verbs", "nonResourceURLs"),
    "resourceRules": items("a resource rule", _RESOURCE_RULE, "verbs", "apiGroups", "resources", _check_scope),
    "subjects": items("a subject", {}, _check_flow_subject),
}
_FLOW_SCHEMA: Table = {
    "distinguisherMethod": mapping({}, choice("`distinguisherMethod`", "type", "ByNamespace", "ByUser")),
    "matchingPrecedence": number(1, 10000, allow_zero=True),
    "rules": items("a rule", _FLOW_RULE, "subjects", _check_flow_rule),
}

_SHARES: Table = {
    "nominalConcurrencyShares": number(0),
    "lendablePercent": number(0, 100),
    "borrowingLimitPercent": number(0),
}
_QUEUING: Table = {
    "queueLengthLimit": number(1, allow_zero=True),
    "queues": number(1, 10_000_000, allow_zero=True),
    "handSize": number(1, allow_zero=True),
}
_check_level_type = choice("a PriorityLevelConfiguration", "type", "Exempt", "Limited")
_check_shares = fields("the level", _SHARES)
_check_queuing = fields("`queuing`", _QUEUING, _check_hand)
_check_limited = fields(
    "the level",
    _SHARES,
    inside(
        "limitResponse", "`limitResponse`", {}, choice("`limitResponse`", "type", "Queue", "Reject"), _check_response
    ),
)
_check_level_name = inside("priorityLevelConfiguration", "`priorityLevelConfiguration`", {"name": _level_name}, "name")

KINDS = {
    "ClusterRole": Kind(
        fields("a ClusterRole", {**_role_rules(namespaced=False), "aggregationRule": _aggregation}), PATH_SEGMENT_NAME
    ),
    "ClusterRoleBinding": _binding("ClusterRole", needs_namespace=True),
    "Role": Kind(fields("a Role", _role_rules(namespaced=True)), PATH_SEGMENT_NAME),
    "RoleBinding": _binding("Role", "ClusterRole", needs_namespace=False),
    "CertificateSigningRequest": Kind(
        spec("a CertificateSigningRequest", _REQUEST, "request", "usages", "signerName"), PATH_SEGMENT_NAME
    ),
    "ClusterTrustBundle": Kind(_check_bundle, PATH_SEGMENT_NAME),
    "FlowSchema": Kind(spec("a FlowSchema", _FLOW_SCHEMA, _check_precedence, _check_level_name, _check_fixed_spec)),
    "PriorityLevelConfiguration": Kind(spec("a PriorityLevelConfiguration", {}, _check_level)),
}
