"""Validate CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import (
    Validation,
    get_key,
    is_set,
    iter_items,
    iter_texts,
    report_missing,
    report_unsupported,
    validate_enum,
)
from jobgen.check.admission.names import DNS_LABEL_1035, DNS_SUBDOMAIN, is_dns_label_1035, is_dns_subdomain
from jobgen.check.cel import urls
from jobgen.check.validation.admissionregistration._webhooks import validate_client, validate_review_versions
from jobgen.check.validation.apiextensions._schema import validate_description, validate_schema
from jobgen.check.validation.apiextensions._version import validate_columns, validate_selectable, validate_subresources
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.model.data import Node, untraced, value_of

_APPROVAL = "api-approved.kubernetes.io"
_PROTECTED = ("k8s.io", "kubernetes.io")
_MAX_WARNING_LENGTH = 256
_KIND_HINT = f"in lower case, {DNS_LABEL_1035}"


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the names, the versions with their schemas, and the conversion between them."""
    spec = run.spec
    _validate_group(obj, run)
    if not as_text(spec.get("scope")):
        report_missing("a CustomResourceDefinition", spec, "scope", get_key(obj, "spec"), run)
    else:
        validate_enum("Cluster", "Namespaced")("scope", spec["scope"], spec, run)
    if value_of(spec.get("preserveUnknownFields")) is True:
        message = "`preserveUnknownFields` cannot be true; set `x-kubernetes-preserve-unknown-fields` in the schema"
        run.report("invalid-value", message, spec["preserveUnknownFields"])
    _validate_names(obj, run)
    _validate_versions(obj, run)
    _validate_conversion(spec, run)


def _validate_group(obj: Mapping[str, Node], run: Validation) -> None:
    group = as_text(run.spec.get("group"))
    if not group:
        report_missing("a CustomResourceDefinition", run.spec, "group", get_key(obj, "spec"), run)
    elif not is_dns_subdomain(group) or "." not in group:
        run.report("invalid-name", f"`{group}` is not an API group with a domain; {DNS_SUBDOMAIN}", run.spec["group"])
    elif group in _PROTECTED or group.endswith(tuple(f".{domain}" for domain in _PROTECTED)):
        _validate_approval(obj, group, run)


def _validate_approval(obj: Mapping[str, Node], group: str, run: Validation) -> None:
    """Validate that the community of Kubernetes approved an API in one of its groups."""
    annotations = as_mapping(run.metadata.get("annotations"))
    text = as_text(annotations.get(_APPROVAL))
    if text.startswith("unapproved"):
        return
    if not text:
        message = (
            f"the group `{group}` belongs to Kubernetes, and requires the annotation `{_APPROVAL}`; use your domain"
        )
        run.report("missing-field", message, run.spec["group"])
    elif urls.request_fault(text) or not urls.parse(text).host:
        message = f"`{text}` is neither the URL of an approval nor `unapproved`; use a group in your own domain"
        run.report("invalid-value", message, annotations[_APPROVAL])


def _validate_names(obj: Mapping[str, Node], run: Validation) -> None:
    names = as_mapping(run.spec.get("names"))
    parent = get_key(run.spec, "names") if "names" in run.spec else get_key(obj, "spec")
    for field in ("plural", "kind"):
        if not as_text(names.get(field)):
            report_missing("`names`", names, field, parent, run)
    for field in ("plural", "singular"):
        _validate_name(as_text(names.get(field)), names.get(field), DNS_LABEL_1035, run)
    for field in ("kind", "listKind"):
        _validate_name(as_text(names.get(field)).lower(), names.get(field), _KIND_HINT, run)
    for field in ("shortNames", "categories"):
        for found, node in iter_texts(names.get(field)):
            _validate_name(found or " ", node, DNS_LABEL_1035, run)
    kind = as_text(names.get("kind"))
    if kind and kind == as_text(names.get("listKind")):
        run.report("invalid-value", f"`listKind` is `{kind}`, as `kind` is; write `{kind}List`", names["listKind"])
    name, wanted = as_text(run.metadata.get("name")), f"{as_text(names.get('plural'))}.{as_text(run.spec.get('group'))}"
    if name and name != wanted:
        message = f"`{name}` is not the plural and the group of the resource; write `{wanted}`"
        run.report("invalid-name", message, run.metadata["name"])


def _validate_name(text: str, node: Node, hint: str, run: Validation) -> None:
    if text and not is_dns_label_1035(text):
        run.report("invalid-name", f"`{as_text(node)}` is not a valid name; {hint}", node)


def _validate_versions(obj: Mapping[str, Node], run: Validation) -> None:
    versions = list(iter_items(get_key(run.spec, "versions"), run.spec.get("versions")))
    seen: set[str] = set()
    stored: list[Node] = []
    for version, node in versions:
        name = as_text(version.get("name"))
        if not is_dns_label_1035(name):
            run.report(
                "invalid-name", f"`{name}` is not a valid version; {DNS_LABEL_1035}", version.get("name") or node
            )
        elif name in seen:
            run.report("duplicate-item", f"there are two versions named `{name}`; rename one", version["name"])
        seen.add(name)
        stored += [version["storage"]] if value_of(version.get("storage")) is True else []
        _validate_warning(version, run)
        validate_subresources(version, run)
        validate_columns(version, run)
    if len(stored) != 1:
        message = f"`{len(stored)}` versions have `storage: true`; exactly one must have it"
        place = get_key(run.spec, "versions") if "versions" in run.spec else run.spec or get_key(obj, "spec")
        run.report("invalid-value", message, stored[1] if stored else place)
    _validate_schemas([version for version, _ in versions], [node for _, node in versions], run)


def _validate_schemas(versions: list[Mapping[str, Node]], nodes: list[Node], run: Validation) -> None:
    """Validate the schema of each version; equal schemas are validated once."""
    schemas = [untraced(version.get("schema")) for version in versions]
    is_shared = all(schema == schemas[0] for schema in schemas)
    statuses = [_has_status(version) for version in versions]
    for index, (version, node) in enumerate(zip(versions, nodes, strict=True)):
        schema = as_mapping(version.get("schema")).get("openAPIV3Schema")
        if not is_set(schema):
            message = f"the version `{as_text(version.get('name'))}` requires `schema.openAPIV3Schema`; set it"
            run.report("missing-field", message, node)
            continue
        has_status = any(statuses) if is_shared else statuses[index]
        key = get_key(as_mapping(version["schema"]), "openAPIV3Schema")
        if not is_shared or index == 0:
            validate_schema(as_mapping(schema), key, has_status=has_status, run=run)
        validate_selectable(version, as_mapping(schema), run)


def find_schema_errors(crd: Mapping[str, Node]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the schemas of a CRD besides their rules and defaults: the version, and the message."""
    for version, _ in iter_items("versions", as_mapping(crd.get("spec")).get("versions")):
        schema = as_mapping(version.get("schema")).get("openAPIV3Schema")
        run = Validation({}, {}, [], category="schema")
        validate_description(as_mapping(schema), "openAPIV3Schema", has_status=_has_status(version), run=run)
        yield from ((as_text(version.get("name")), problem.message) for problem in run.problems)


def _has_status(version: Mapping[str, Node]) -> bool:
    return is_set(as_mapping(version.get("subresources")).get("status"))


def _validate_warning(version: Mapping[str, Node], run: Validation) -> None:
    warning = version.get("deprecationWarning")
    if not is_set(warning):
        return
    text = as_text(warning)
    if value_of(version.get("deprecated")) is not True:
        message = "`deprecationWarning` requires `deprecated: true`; set it, or remove the warning"
        run.report("invalid-form", message, get_key(version, "deprecationWarning"))
    elif not text or len(text.encode(errors="replace")) > _MAX_WARNING_LENGTH or not text.isprintable():
        message = f"`deprecationWarning` must be one line of 1 to {_MAX_WARNING_LENGTH} printable characters"
        run.report("invalid-value", message, warning)


def _validate_conversion(spec: Mapping[str, Node], run: Validation) -> None:
    conversion = as_mapping(spec.get("conversion"))
    if not is_set(spec.get("conversion")):
        return
    strategy, webhook = as_text(conversion.get("strategy")), as_mapping(conversion.get("webhook"))
    key = get_key(conversion, "webhook") if "webhook" in conversion else get_key(spec, "conversion")
    if not strategy:
        report_missing("`conversion`", conversion, "strategy", get_key(spec, "conversion"), run)
    elif strategy not in ("None", "Webhook"):
        report_unsupported("strategy", conversion["strategy"], ("None", "Webhook"), run)
    if strategy == "Webhook":
        if not is_set(webhook.get("clientConfig")):
            run.report("missing-field", "`strategy: Webhook` requires `webhook.clientConfig`; set it", webhook or key)
        else:
            validate_client(webhook, key, run)
        validate_review_versions("conversionReviewVersions", webhook, key, run)
    elif is_set(webhook.get("clientConfig")) or as_list(webhook.get("conversionReviewVersions")):
        run.report("invalid-form", f"`webhook` has no place beside `strategy: {strategy}`; remove it", key)
