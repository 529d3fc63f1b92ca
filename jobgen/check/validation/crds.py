"""Validate CustomResourceDefinitions: their names, their versions, and the conversion between them."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.admission.fields import (
    Fields,
    Validation,
    ValidatorTable,
    choice,
    fields,
    get_key,
    is_set,
    items,
    iter_items,
    iter_texts,
    mapping,
    one_of,
    report_missing,
)
from jobgen.check.admission.names import DNS_LABEL_1035, DNS_SUBDOMAIN, is_dns_label_1035, is_dns_subdomain
from jobgen.check.cel import networks
from jobgen.check.validation.admissionregistration import validate_client, validate_review_versions
from jobgen.check.validation.crd_schemas import find_field, validate_description, validate_schema
from jobgen.check.validation.kinds import Kind, spec
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.model.data import Node, untraced, value_of

_APPROVAL = "api-approved.kubernetes.io"
_PROTECTED = ("k8s.io", "kubernetes.io")
_MAX_WARNING_BYTES = 256
_MAX_SELECTABLE = 8
_KIND_HINT = f"in lower case, {DNS_LABEL_1035}"


def _validate_group(key: str, value: Node, owner: Fields, run: Validation) -> None:
    group = as_text(value)
    if group and (not is_dns_subdomain(group) or "." not in group):
        run.report("invalid-name", f"`{group}` is not an API group with a domain; {DNS_SUBDOMAIN}", value)
    elif group in _PROTECTED or group.endswith(tuple(f".{domain}" for domain in _PROTECTED)):
        # The community of Kubernetes approves APIs in its groups.
        annotations = as_mapping(run.metadata.get("annotations"))
        approval = as_text(annotations.get(_APPROVAL))
        if not approval:
            message = f"the group `{group}` belongs to Kubernetes, and requires the annotation `{_APPROVAL}`"
            run.report("missing-field", f"{message}; use your domain", value)
        elif not approval.startswith("unapproved") and (
            networks.request_fault(approval) or not networks.parse(approval).host
        ):
            message = f"`{approval}` is neither the URL of an approval nor `unapproved`; use a group in your own domain"
            run.report("invalid-value", message, annotations[_APPROVAL])


def _validate_preserve(key: str, value: Node, owner: Fields, run: Validation) -> None:
    if value_of(value) is True:
        message = f"`{key}` cannot be true; set `x-kubernetes-preserve-unknown-fields` in the schema"
        run.report("invalid-value", message, value)


def _check_names(crd: Fields, place: Node, run: Validation) -> None:
    names = as_mapping(crd.get("names"))
    parent = get_key(crd, "names") if "names" in crd else place
    _require_names(names, parent, run)
    found = [(as_text(names.get(field)), names.get(field), DNS_LABEL_1035) for field in ("plural", "singular")]
    found += [(as_text(names.get(field)).lower(), names.get(field), _KIND_HINT) for field in ("kind", "listKind")]
    for field in ("shortNames", "categories"):
        found += [(name or " ", node, DNS_LABEL_1035) for name, node in iter_texts(names.get(field))]
    for name, node, hint in found:
        if name and not is_dns_label_1035(name):
            run.report("invalid-name", f"`{as_text(node)}` is not a valid name; {hint}", node)
    kind = as_text(names.get("kind"))
    if kind and kind == as_text(names.get("listKind")):
        run.report("invalid-value", f"`listKind` is `{kind}`, as `kind` is; write `{kind}List`", names["listKind"])
    name, wanted = as_text(run.metadata.get("name")), f"{as_text(names.get('plural'))}.{as_text(crd.get('group'))}"
    if name and name != wanted:
        message = f"`{name}` is not the plural and the group of the resource; write `{wanted}`"
        run.report("invalid-name", message, run.metadata["name"])


_require_names = fields("`names`", {}, "plural", "kind")


def _check_versions(crd: Fields, place: Node, run: Validation) -> None:
    versions = list(iter_items(get_key(crd, "versions"), crd.get("versions")))
    seen: set[str] = set()
    for version, node in versions:
        _check_version(version, node, run)
        name = as_text(version.get("name"))
        if not is_dns_label_1035(name):
            message = f"`{name}` is not a valid version; {DNS_LABEL_1035}"
            run.report("invalid-name", message, version.get("name") or node)
        elif name in seen:
            run.report("duplicate-item", f"there are two versions named `{name}`; rename one", version["name"])
        seen.add(name)
    stored = [version["storage"] for version, _ in versions if value_of(version.get("storage")) is True]
    if len(stored) != 1:
        message = f"`{len(stored)}` versions have `storage: true`; exactly one must have it"
        parent = get_key(crd, "versions") if "versions" in crd else crd or place
        run.report("invalid-value", message, stored[1] if stored else parent)
    _validate_schemas(versions, run)


def _validate_schemas(versions: list[tuple[Fields, Node]], run: Validation) -> None:
    """Validate the schema of each version; equal schemas are validated once."""
    schemas = [untraced(version.get("schema")) for version, _ in versions]
    is_shared = all(schema == schemas[0] for schema in schemas)
    statuses = [_has_status(version) for version, _ in versions]
    for index, (version, node) in enumerate(versions):
        schema = as_mapping(version.get("schema")).get("openAPIV3Schema")
        if not is_set(schema):
            message = f"the version `{as_text(version.get('name'))}` requires `schema.openAPIV3Schema`; set it"
            run.report("missing-field", message, node)
            continue
        has_status = any(statuses) if is_shared else statuses[index]
        key = get_key(as_mapping(version["schema"]), "openAPIV3Schema")
        if not is_shared or index == 0:
            validate_schema(as_mapping(schema), key, has_status=has_status, run=run)
        _validate_selectable(version, as_mapping(schema), run)


def find_schema_errors(crd: Fields) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the schemas of a CRD besides their rules and defaults: the version, and the message."""
    for version, _ in iter_items("versions", as_mapping(crd.get("spec")).get("versions")):
        schema = as_mapping(version.get("schema")).get("openAPIV3Schema")
        run = Validation({}, {}, [])
        validate_description(as_mapping(schema), "openAPIV3Schema", has_status=_has_status(version), run=run)
        yield from ((as_text(version.get("name")), problem.message) for problem in run.problems)


def _has_status(version: Fields) -> bool:
    return is_set(as_mapping(version.get("subresources")).get("status"))


def _validate_warning(key: str, value: Node, owner: Fields, run: Validation) -> None:
    written = as_text(value)
    if not is_set(value):
        return
    if value_of(owner.get("deprecated")) is not True:
        message = f"`{key}` requires `deprecated: true`; set it, or remove the warning"
        run.report("invalid-form", message, key)
    elif not written or len(written.encode(errors="replace")) > _MAX_WARNING_BYTES or not written.isprintable():
        message = f"`{key}` must be one line of 1 to {_MAX_WARNING_BYTES} printable characters"
        run.report("invalid-value", message, value)


def _check_scale_paths(scale: Fields, place: Node, run: Validation) -> None:
    roots = {"specReplicasPath": (".spec.",), "statusReplicasPath": (".status.",)}
    for field, known in {**roots, "labelSelectorPath": (".spec.", ".status.")}.items():
        path = as_text(scale.get(field))
        if path and not path.startswith(known):
            wanted = " or ".join(f"`{root}`" for root in known)
            run.report("invalid-value", f"`{path}` is not a path that starts with {wanted}", scale[field])


def _validate_column_path(key: str, value: Node, owner: Fields, run: Validation) -> None:
    path = as_text(value)
    if path and not path.startswith("."):
        run.report("invalid-value", f"`{path}` is not a path; start with `.`", value)


def _validate_selectable(version: Fields, schema: Fields, run: Validation) -> None:
    """Validate the fields by which objects can be selected: they exist and are scalars."""
    seen: set[str] = set()
    key = get_key(version, "selectableFields")
    for item, node in iter_items(key, version.get("selectableFields")):
        path = as_text(item.get("jsonPath"))
        if not path:
            report_missing("a selectable field", item, "jsonPath", node, run)
            continue
        found = find_field(path, schema, allow_items=False)
        is_scalar = as_text(as_mapping(found).get("type")) in ("boolean", "integer", "string")
        if path.startswith(".metadata") or not is_scalar:
            message = f"`{path}` is not the path of a field of type string, boolean or integer outside of `metadata`"
            run.report("invalid-value", message, item["jsonPath"])
        elif path in seen:
            message = f"`{path}` is twice in `selectableFields`; remove one of them"
            run.report("duplicate-item", message, item["jsonPath"])
        seen.add(path)
    if len(seen) > _MAX_SELECTABLE:
        message = f"`{len(seen)}` selectable fields are too many; the limit is {_MAX_SELECTABLE}"
        run.report("out-of-range", message, key)


def _check_conversion(conversion: Fields, place: Node, run: Validation) -> None:
    strategy, webhook = as_text(conversion.get("strategy")), as_mapping(conversion.get("webhook"))
    key = get_key(conversion, "webhook") if "webhook" in conversion else place
    if strategy == "Webhook":
        if not is_set(webhook.get("clientConfig")):
            run.report("missing-field", "`strategy: Webhook` requires `webhook.clientConfig`; set it", webhook or key)
        else:
            validate_client(webhook, key, run)
        validate_review_versions("conversionReviewVersions", webhook, key, run)
    elif is_set(webhook.get("clientConfig")) or as_list(webhook.get("conversionReviewVersions")):
        run.report("invalid-form", f"`webhook` has no place beside `strategy: {strategy}`; remove it", key)


_COLUMN: ValidatorTable = {
    "format": one_of("", "byte", "date", "date-time", "double", "float", "int32", "int64", "password"),
    "jsonPath": _validate_column_path,
    "type": one_of("", "boolean", "date", "integer", "number", "string"),
}
_scale = mapping({}, "specReplicasPath", "statusReplicasPath", _check_scale_paths)
_VERSION: ValidatorTable = {
    "additionalPrinterColumns": items("a column", _COLUMN, "name", "type", "jsonPath"),
    "deprecationWarning": _validate_warning,
    "subresources": mapping({"scale": _scale}),
}
_check_version = fields("a version", _VERSION)
_CRD: ValidatorTable = {
    "conversion": mapping({}, choice("`conversion`", "strategy", "None", "Webhook"), _check_conversion),
    "group": _validate_group,
    "preserveUnknownFields": _validate_preserve,
    "scope": one_of("", "Cluster", "Namespaced"),
}

KINDS = {
    "CustomResourceDefinition": Kind(
        spec("a CustomResourceDefinition", _CRD, "group", "scope", _check_names, _check_versions)
    )
}
