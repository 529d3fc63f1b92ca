"""Validate the webhooks of both kinds of webhook configurations."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from jobgen.check.admission.fields import (
    Validation,
    Validator,
    get_key,
    is_set,
    iter_items,
    iter_texts,
    report_missing,
    validate_enum,
    validate_fields,
    validate_number,
)
from jobgen.check.admission.names import (
    DNS_LABEL_1035,
    DNS_SUBDOMAIN,
    is_dns_label_1035,
    is_dns_subdomain,
)
from jobgen.check.cel import urls
from jobgen.check.cel.admission_scope import AdmissionScope
from jobgen.check.validation.admissionregistration._expressions import validate_conditions
from jobgen.check.validation.admissionregistration._matching import (
    SELECTORS,
    validate_failure_policy,
    validate_match_policy,
    validate_rule,
)
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.model.data import Node, value_of

_REVIEW_VERSIONS = ("v1", "v1beta1")
_FIELDS: dict[str, Validator] = {
    **SELECTORS,
    "failurePolicy": validate_failure_policy,
    "matchPolicy": validate_match_policy,
    "timeoutSeconds": validate_number(1, 30),
    "reinvocationPolicy": validate_enum("IfNeeded", "Never"),
}
_FORM = "write `https://host/path`"


def validate_webhooks(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate each webhook: its name, what it matches, and how it is called."""
    seen: set[str] = set()
    for hook, node in iter_items(get_key(obj, "webhooks"), obj.get("webhooks")):
        name = as_text(hook.get("name"))
        _validate_name(name, hook, node, run)
        if name and name in seen:
            run.report("duplicate-item", f"there are two webhooks named `{name}`; rename one", hook["name"])
        seen.add(name)
        validate_fields({key: value for key, value in hook.items() if is_set(value)}, _FIELDS, run)
        for rule, place in iter_items(get_key(hook, "rules"), hook.get("rules")):
            validate_rule(rule, place, run)
        if not is_set(hook.get("sideEffects")):
            report_missing("a webhook", hook, "sideEffects", node, run)
        else:
            validate_enum("None", "NoneOnDryRun")("sideEffects", hook["sideEffects"], hook, run)
        validate_client(hook, node, run)
        validate_review_versions("admissionReviewVersions", hook, node, run)
        validate_conditions(hook, AdmissionScope(has_params=False, has_variables=False), run)


def _validate_name(name: str, hook: Mapping[str, Node], node: Node, run: Validation) -> None:
    if not name:
        report_missing("a webhook", hook, "name", node, run)
    elif not is_dns_subdomain(name):
        run.report("invalid-name", f"`{name}` is not a valid name of a webhook; {DNS_SUBDOMAIN}", hook["name"])
    elif name.count(".") < 2:
        message = f"`{name}` is not a valid name of a webhook; write a domain such as `check.example.com`"
        run.report("invalid-name", message, hook["name"])


def validate_client(hook: Mapping[str, Node], node: Node, run: Validation) -> None:
    """Validate how a webhook is called: by its URL or by a Service."""
    config = as_mapping(hook.get("clientConfig"))
    has_url, has_service = is_set(config.get("url")), is_set(config.get("service"))
    if has_url == has_service:
        message = "`clientConfig` must have either `url` or `service`"
        run.report("invalid-form", message, config or get_key(hook, "clientConfig") if "clientConfig" in hook else node)
    elif has_url:
        _validate_url(as_text(config["url"]), config["url"], run)
    else:
        _validate_service(as_mapping(config["service"]), get_key(config, "service"), run)


def _validate_url(text: str, node: Node, run: Validation) -> None:
    error = urls.fault(text) if text else "`` is not a URL"
    if error:
        run.report("invalid-value", f"{error}; {_FORM}", node)
        return
    parts = urlsplit(text)
    if parts.scheme.lower() != "https" or not parts.netloc:
        run.report("invalid-value", f"`{text}` is not a URL with the scheme `https` and a host; {_FORM}", node)
    elif "@" in parts.netloc or parts.query or parts.fragment:
        run.report("invalid-value", f"`{text}` has a user, a query or a fragment; {_FORM}", node)


def _validate_service(service: Mapping[str, Node], key: Node, run: Validation) -> None:
    for field in ("name", "namespace"):
        if not as_text(service.get(field)):
            report_missing("`service`", service, field, key, run)
    if is_set(service.get("port")):
        validate_number(1, 65535, rule="invalid-port")("port", service["port"], service, run)
    path = as_text(service.get("path"))
    if not path or path == "/":
        return
    steps = path.removesuffix("/").removeprefix("/").split("/")
    if not path.startswith("/") or not all(map(is_dns_subdomain, steps)):
        message = f"`{path}` is not a path of a webhook; start with `/`, and in each part {DNS_SUBDOMAIN}"
        run.report("invalid-value", message, service["path"])


def validate_review_versions(field: str, owner: Mapping[str, Node], node: Node, run: Validation) -> None:
    """Validate the versions of reviews that a webhook understands; the API server must know one of them."""
    versions = list(iter_texts(owner.get(field)))
    seen: set[str] = set()
    for found, item in versions:
        if found in seen:
            run.report("duplicate-item", f"`{found}` is twice in `{field}`; remove one of them", item)
        elif not is_dns_label_1035(found):
            run.report("invalid-value", f"`{found}` is not a version; {DNS_LABEL_1035}", item)
        seen.add(found)
    if not as_list(owner.get(field)):
        report_missing("a webhook", owner, field, node, run)
    elif not seen & set(_REVIEW_VERSIONS):
        shown = ", ".join(f"`{found}`" for found, _ in versions)
        run.report("invalid-value", f"`{field}` is {shown}; add `v1`", value_of(owner[field])[0] or node)
