"""Validate how devices are requested with `resource.k8s.io`: claims, templates of claims, and classes of devices."""

from __future__ import annotations

import json

from jobgen.check.admission.fields import (
    Check,
    Entry,
    Fields,
    Kind,
    Table,
    Validation,
    at_most,
    dns_label,
    dns_subdomain,
    fields,
    find_entry,
    is_set,
    items,
    iter_texts,
    label_key,
    mapping,
    one_of,
    require_set,
    since,
    spec,
    text,
)
from jobgen.check.admission.metadata import validate_annotation_keys, validate_labels
from jobgen.check.admission.names import (
    DNS_SUBDOMAIN,
    GENERATED_NAME,
    LABEL_VALUE,
    is_dns_label,
    is_driver_name,
    is_label_key,
    is_label_value,
)
from jobgen.k8s.devices import ADMIN_LABEL
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text
from jobgen.model.data import Plain, untraced
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import list_alternatives

_MAX_ID_BYTES = 32
_MAX_EXPRESSION_BYTES = _MAX_PARAMETER_BYTES = 10 * 1024
_MAX_ITEMS, _MAX_ALTERNATIVES = 32, 8
_EXACT_FIELDS = ("deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity")
_PRIORITIZED_SINCE = _ADMIN_SINCE = (1, 34)
_TAINTS_SINCE = _DISTINCT_SINCE = (1, 36)
QUALIFIED_NAME = "write a domain and a name of at most 32 letters, digits and `_`, such as `gpu.example.com/model`"
_identifier = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
device_name = dns_label("invalid-value", "name")
taint_value = text("invalid-label", "label value", is_label_value, LABEL_VALUE)
_require_opaque = require_set("a configuration", "opaque")
_TOLERATION: Table = {
    "effect": one_of("", "NoSchedule", "NoExecute", "None"),
    "key": label_key,
    "operator": one_of("", "Equal", "Exists"),
}
_TEMPLATE_METADATA: Table = {"labels": validate_labels, "annotations": validate_annotation_keys}


def is_qualified_name(name: str, *, needs_domain: bool = False) -> bool:
    """Return True if a text can be the name of an attribute or a capacity: an identifier after an optional domain."""
    parts = name.split("/")
    if len(parts) > 2:
        # The API server does not look at such names.
        return True
    if len(parts) == 2 and not is_driver_name(parts[0]):
        return False
    is_identifier = len(parts[-1]) <= _MAX_ID_BYTES and _identifier.fullmatch(parts[-1]) is not None
    return is_identifier and (len(parts) == 2 or not needs_domain)


def twice(field: str, name: str = "name") -> tuple[str, str]:
    """Return the name of a field that items of a list differ in, and the message if they do not."""
    return name, f"two items of `{field}` are `{{}}`; rename or delete one of them"


def is_flat(obj: Fields) -> bool:
    """Return True if an object has an old version, in which the fields of requests and devices are at another place."""
    return as_text(obj.get("apiVersion")).endswith(("/v1beta1", "/v1alpha3"))


def _check_cel(cel: Fields, entry: Entry, run: Validation) -> None:
    written = as_text(cel.get("expression"))
    place = At(cel, "expression") if is_set(cel.get("expression")) else entry
    if not written.strip():
        message = Sentence("a CEL selector requires an `expression`, such as `device.driver == 'gpu.example.com'`")
        run.report("missing-field", message, place)
    elif len(written.encode(errors="replace")) > _MAX_EXPRESSION_BYTES:
        run.report(
            "out-of-range", Sentence("`expression` has more than {} bytes; shorten it", _MAX_EXPRESSION_BYTES), place
        )
    else:
        # Imported late: few repositories have selectors of devices.
        from jobgen.check.cel.admission_scope import find_selector_fault

        fault = find_selector_fault(written, has_allow_multiple=run.release >= (1, 36))
        if fault is not None:
            # The parser lists everything that may follow, and has a symbol for the end of the text.
            reason = fault.message.partition(" expecting ")[0].replace("`<EOF>`", "the end of the text")
            message = Sentence(
                "the CEL expression does not compile: {} (line {}, column {})", reason, fault.line, fault.column
            )
            run.invalid(message, place)


def _check_parameters(opaque: Fields, entry: Entry, run: Validation) -> None:
    parameters = opaque.get("parameters")
    if parameters is None:
        run.report_missing("`opaque`", opaque, "parameters", entry)
    elif not isinstance(parameters, dict):
        run.report("wrong-type", "`parameters` must be an object", At(opaque, "parameters"))
    else:
        written = json.dumps(untraced(parameters), separators=(",", ":"), ensure_ascii=False)
        if len(written.encode(errors="replace")) > _MAX_PARAMETER_BYTES:
            message = Sentence("`parameters` have more than {} bytes as JSON; shorten them", _MAX_PARAMETER_BYTES)
            run.report("out-of-range", message, find_entry(opaque, "parameters", entry))


def _validate_extended_resource(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    found = as_text(value)
    is_extended = "/" in found and "kubernetes.io/" not in found and not found.startswith("requests.")
    if is_set(value) and not (is_extended and is_label_key(f"requests.{found}")):
        message = Sentence(
            "`{}` is not a valid extended resource; write a domain and a name, such as `example.com/gpu`", found
        )
        run.invalid(message, At(owner, key))


def _check_toleration(toleration: Fields, entry: Entry, run: Validation) -> None:
    operator, value = as_text(toleration.get("operator")) or "Equal", toleration.get("value")
    if operator == "Equal":
        taint_value("value", value, toleration, run)
    elif operator == "Exists" and as_text(value):
        message = Sentence("`operator: Exists` cannot have a `value`, got `{}`; delete it", as_text(value))
        run.report("invalid-toleration", message, At(toleration, "value"))


def _check_count(request: Fields, entry: Entry, run: Validation) -> None:
    mode, found = as_text(request.get("allocationMode")) or "ExactCount", as_integer(request.get("count")) or 0
    if mode == "All" and found:
        message = Sentence("`allocationMode: All` cannot have a `count`, got `{}`; delete it", found)
        run.report("invalid-form", message, At(request, "count"))
    elif mode == "ExactCount" and found < 0:
        run.report("out-of-range", Sentence("`count` must be at least 1, got `{}`", found), At(request, "count"))


def _validate_admin_access(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    namespace = as_text(run.metadata.get("namespace"))
    # The cluster may have a namespace that the repository does not define.
    if value is True and namespace in run.read_catalog().other_namespaces:
        message = Sentence("`{}` requires a namespace with the label `{}: true`, but Namespace", key, ADMIN_LABEL)
        message += f" `{namespace}` does not have it; add it, or delete the field"
        run.report("invalid-resource-claim", message, At(owner, key))


def _request(*, flat: bool) -> Check:
    """Return a check of a request; in old versions it has the fields that are in `exactly` in others."""

    def check(request: Fields, entry: Entry, run: Validation) -> None:
        given = [field for field in _EXACT_FIELDS if is_set(request.get(field))] if flat else []
        exactly: Plain = request if given else None if flat else request.get("exactly")
        key = "firstAvailable"
        alternatives = as_list(request.get(key)) if run.release >= _PRIORITIZED_SINCE else ()
        field = "deviceClassName" if flat else "exactly"
        if isinstance(exactly, dict) and alternatives:
            other = given[0] if given else field
            message = Sentence("a request cannot have both `{}` and `firstAvailable`; delete one of them", other)
            run.report("invalid-form", message, (request, "firstAvailable"))
        elif alternatives:
            _alternatives(key, request[key], request, run)
        elif isinstance(exactly, dict):
            _check_exact_request(exactly, entry if flat else (request, "exactly"), run)
        else:
            run.report(
                "missing-field", Sentence("a request requires `{}` or `firstAvailable`; set one of them", field), entry
            )

    return check


def _check_constraint(constraint: Fields, entry: Entry, run: Validation) -> None:
    known = ("matchAttribute", "distinctAttribute") if run.release >= _DISTINCT_SINCE else ("matchAttribute",)
    given = next((field for field in known if is_set(constraint.get(field))), "")
    if not given:
        names = list_alternatives(f"`{field}`" for field in known)
        run.report("missing-field", Sentence("a constraint requires {}; set it", names), entry)
    elif not is_qualified_name(as_text(constraint[given]), needs_domain=True):
        run.invalid(
            Sentence("`{}` is not a valid attribute; {}", as_text(constraint[given]), QUALIFIED_NAME),
            At(constraint, given),
        )


def _check_references(devices: Fields, entry: Entry, run: Validation) -> None:
    """Check the lists `requests` of constraints and configurations: names of requests, or of their alternatives."""
    names = {
        as_text(request.get("name")): frozenset(
            as_text(as_mapping(one).get("name")) for one in as_list(request.get("firstAvailable"))
        )
        for request in map(as_mapping, as_list(devices.get("requests")))
    }

    def validate(key: str, value: Plain, owner: Fields, run: Validation) -> None:
        seen: set[str] = set()
        for found, node in iter_texts(value):
            request, slash, alternative = found.partition("/")
            is_known = request in names and (not slash or alternative in names[request])
            if not is_known or not all(map(is_dns_label, found.split("/"))):
                message = Sentence("`{}` is not a request of the claim; write the name of a request, or", found)
                run.report("invalid-resource-claim", Sentence("{} `request/alternative`", message), node)
            if found in seen:
                run.report("duplicate-item", twice(key)[1].format(found), node)
            seen.add(found)

    references = items("the list", {"requests": at_most(_MAX_ITEMS, validate)})
    for field in ("constraints", "config"):
        if len(as_list(devices.get(field))) <= _MAX_ITEMS:
            references(field, devices.get(field), devices, run)


def _claim(*, flat: bool) -> Check:
    requests = items("a request", {"name": device_name}, "name", _request(flat=flat), unique=twice("requests"))
    devices: Table = {
        "config": at_most(_MAX_ITEMS, items("a configuration", _CONFIG, _require_opaque)),
        "constraints": at_most(_MAX_ITEMS, items("a constraint", {}, _check_constraint)),
        "requests": at_most(_MAX_ITEMS, requests),
    }
    return fields("a claim", {"devices": mapping(devices, _check_references)})


def _check_resource_claim(obj: Fields, entry: Entry, run: Validation) -> None:
    (_check_flat_claim if is_flat(obj) else _check_claim)(run.spec, entry, run)


def _check_template_metadata(metadata: Fields, entry: Entry, run: Validation) -> None:
    for field, value in metadata.items():
        if field not in ("annotations", "labels") and value not in (None, "", {}, 0):
            run.invalid(
                Sentence("`{}` cannot be set in a template; Kubernetes names the claims after their pods", field),
                (metadata, field),
            )


def _check_template(obj: Fields, entry: Entry, run: Validation) -> None:
    _check_template_spec(run.spec, entry, run)
    (_check_flat_claim if is_flat(obj) else _check_claim)(as_mapping(run.spec.get("spec")), entry, run)


driver_name = text("invalid-value", "driver name of at most 63 characters", is_driver_name, DNS_SUBDOMAIN)
_selectors = at_most(
    _MAX_ITEMS, items("a selector", {"cel": mapping({}, _check_cel)}, require_set("a selector", "cel"))
)
_CONFIG: Table = {"opaque": mapping({"driver": driver_name}, "driver", _check_parameters)}
_EXACT_REQUEST: Table = {
    "adminAccess": since(_ADMIN_SINCE, _validate_admin_access),
    "allocationMode": one_of("", "All", "ExactCount"),
    "deviceClassName": dns_subdomain("invalid-object-name", "name of a DeviceClass"),
    "selectors": _selectors,
    "tolerations": since(_TAINTS_SINCE, items("a toleration", _TOLERATION, _check_toleration)),
}
_check_exact_request = fields("a request", _EXACT_REQUEST, "deviceClassName", _check_count)
_alternatives = at_most(
    _MAX_ALTERNATIVES,
    items("a request", {"name": device_name}, "name", _check_exact_request, unique=twice("firstAvailable")),
)
_check_claim, _check_flat_claim = _claim(flat=False), _claim(flat=True)
_check_template_spec = fields("a template", {"metadata": mapping(_TEMPLATE_METADATA, _check_template_metadata)})

_CLASS: Table = {
    "config": at_most(_MAX_ITEMS, items("a configuration", _CONFIG, _require_opaque)),
    "extendedResourceName": since((1, 36), _validate_extended_resource),
    "selectors": _selectors,
}

KINDS = {
    "DeviceClass": Kind(spec("a DeviceClass", _CLASS), GENERATED_NAME),
    "ResourceClaim": Kind(_check_resource_claim),
    "ResourceClaimTemplate": Kind(_check_template),
}
