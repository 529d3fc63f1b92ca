"""Validate the kinds of `admissionregistration.k8s.io`: webhooks, policies and their bindings."""

from __future__ import annotations

from urllib.parse import urlsplit

from jobgen.check.admission.fields import (
    Entry,
    Fields,
    Kind,
    Table,
    Validation,
    choice,
    dns_subdomain,
    each,
    fields,
    find_entry,
    find_mapping,
    find_value,
    is_set,
    items,
    iter_items,
    iter_texts,
    mapping,
    number,
    one_of,
    path_segment,
    qualified_name,
    require_set,
    spec,
    texts,
)
from jobgen.check.admission.names import (
    DNS_LABEL_1035,
    DNS_SUBDOMAIN,
    LABEL_KEY,
    PATH_SEGMENT,
    is_dns_label_1035,
    is_dns_subdomain,
    is_label_key,
    is_path_segment,
)
from jobgen.check.admission.scheduling import validate_label_selector
from jobgen.check.cel import networks
from jobgen.check.cel.admission_scope import AdmissionScope
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At
from jobgen.model.sentence import Sentence

_MAX_CONDITIONS = 64
_FORM = "write `https://host/path`"
_LISTS = ("apiGroups", "apiVersions", "operations")
_condition_name = qualified_name("invalid-name", "name of a match condition")
_check_condition = fields("a match condition", {"name": _condition_name}, "name")
_RULE: Table = {
    "operations": each(one_of("*", "CONNECT", "CREATE", "DELETE", "UPDATE", name="operations")),
    "scope": one_of("*", "Cluster", "Namespaced"),
}
MATCH: Table = {
    "matchPolicy": one_of("Equivalent", "Exact"),
    "namespaceSelector": validate_label_selector,
    "objectSelector": validate_label_selector,
}
"""The fields by which both policies and webhooks match."""
failure_policy = one_of("Fail", "Ignore")
_MAX_ANNOTATIONS = 20
_MAX_EXPRESSION_BYTES = 5 * 1024
_IDENTIFIER = lazy_pattern("[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED = frozenset(
    """as break const continue else false for function if import in let loop namespace null package return true
    var void while""".split()
)
_RESULTS = {"JSONPatch": ("jsonPatch", "list<JSONPatch>"), "ApplyConfiguration": ("applyConfiguration", "Object")}
_PARAM_REF: Table = {"name": path_segment("invalid-name", "object name"), "selector": validate_label_selector}
_reason = one_of("Forbidden", "Invalid", "RequestEntityTooLarge")
_check_patch_type = choice("a mutation", "patchType", *_RESULTS)


def validate_expression(
    owner: Fields, field: str, scope: AdmissionScope, entry: Entry, run: Validation, *results: str
) -> None:
    """Validate that a field is an expression with one of some types."""
    written = as_text(owner.get(field))
    if not written.strip():
        place = find_value(owner, field, entry)
        run.report("missing-field", Sentence("`{}` is empty; write an expression", field), place)
    elif error := scope.find_error(written, *results):
        run.invalid(Sentence("`{}` does not compile: {}", field, error), At(owner, field))


def validate_conditions(owner: Fields, scope: AdmissionScope, run: Validation) -> None:
    """Validate the match conditions of a policy or a webhook; they cannot read variables."""
    conditions, scope = owner.get("matchConditions"), scope.without(variables=True)
    size = len(as_list(conditions))
    if size > _MAX_CONDITIONS:
        message = Sentence("`{}` match conditions are too many; the limit is {}", size, _MAX_CONDITIONS)
        run.report("out-of-range", message, At(as_list(conditions), _MAX_CONDITIONS))
    seen: set[str] = set()
    for item, place in iter_items(conditions):
        validate_expression(item, "expression", scope, place, run, "bool")
        _check_condition(item, place, run)
        name = as_text(item.get("name"))
        if name in seen and is_label_key(name):
            run.report(
                "duplicate-item",
                Sentence("there are two match conditions named `{}`; rename one", name),
                At(item, "name"),
            )
        seen.add(name)


def _check_lists(rule: Fields, entry: Entry, run: Validation) -> None:
    for field in _LISTS:
        values = list(iter_texts(rule.get(field)))
        wildcard = next((item for found, item in values if found == "*"), None)
        if len(values) > 1 and wildcard is not None:
            run.invalid(Sentence("`*` in `{}` stands for all values; remove it or the others", field), wildcard)
    for found, item in iter_texts(rule.get("apiVersions")):
        if not found:
            run.report("missing-field", "a version in `apiVersions` is empty; write a version or `*`", item)


def _check_resources(rule: Fields, entry: Entry, run: Validation) -> None:
    values = list(iter_texts(rule.get("resources")))
    names = [found for found, _ in values]
    owners: set[str] = set()
    subresources: set[str] = set()
    for found, item in values:
        owner, slash, subresource = found.partition("/")
        if not found:
            run.report("missing-field", "a resource in `resources` is empty; write its name or `*`", item)
        if not slash:
            continue
        if owner in owners:
            run.invalid(Sentence("`{}` is part of `{}/*`; remove one of them", found, owner), item)
        if subresource in subresources:
            run.invalid(Sentence("`{}` is part of `*/{}`; remove one of them", found, subresource), item)
        owners |= {owner} if subresource == "*" else set()
        subresources |= {subresource} if owner == "*" else set()
    if len(values) > 1 and "*/*" in names:
        message = "`*/*` in `resources` stands for all resources; remove it or the others"
        run.invalid(message, values[names.index("*/*")][1])
    plain = [found for found in names if found and "/" not in found]
    # The API server looks only at the last resource without a subresource.
    if "*" in plain and plain[-1] != "*":
        message = "`*` in `resources` stands for all resources without subresources; remove it or the others"
        run.invalid(message, values[names.index("*")][1])


def _check_webhook(hook: Fields, entry: Entry, run: Validation) -> None:
    name = as_text(hook.get("name"))
    if is_dns_subdomain(name) and name.count(".") < 2:
        message = Sentence("`{}` is not a valid name of a webhook; write a domain such as `check.example.com`", name)
        run.report("invalid-name", message, At(hook, "name"))
    validate_client(hook, entry, run)
    validate_review_versions("admissionReviewVersions", hook, entry, run)
    validate_conditions(hook, AdmissionScope(has_params=False, has_variables=False, server=run.release), run)


def validate_client(hook: Fields, entry: Entry, run: Validation) -> None:
    """Validate how a webhook is called: by its URL or by a Service."""
    config = as_mapping(hook.get("clientConfig"))
    given = [name for name in ("url", "service") if is_set(config.get(name))]
    if len(given) != 1:
        place = config or (hook, "clientConfig") if "clientConfig" in hook else entry
        run.report("invalid-form", "`clientConfig` must have either `url` or `service`", place)
        return
    if given[0] == "service":
        _service(given[0], config["service"], config, run)
        return
    url = as_text(config["url"])
    error = networks.fault(url) if url else "`` is not a URL"
    parts = urlsplit("" if error else url)
    if error:
        run.invalid(Sentence("{}; {}", error, _FORM), At(config, "url"))
    elif parts.scheme.lower() != "https" or not parts.netloc:
        run.invalid(Sentence("`{}` is not a URL with the scheme `https` and a host; {}", url, _FORM), At(config, "url"))
    elif "@" in parts.netloc or parts.query or parts.fragment:
        run.invalid(Sentence("`{}` has a user, a query or a fragment; {}", url, _FORM), At(config, "url"))


def _validate_path(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    path = as_text(value)
    steps = path.removesuffix("/").removeprefix("/").split("/")
    if path not in ("", "/") and not (path.startswith("/") and all(map(is_dns_subdomain, steps))):
        run.invalid(
            Sentence("`{}` is not a path of a webhook; start with `/`, and in each part {}", path, DNS_SUBDOMAIN),
            At(owner, key),
        )


def validate_review_versions(field: str, owner: Fields, entry: Entry, run: Validation) -> None:
    """Validate the versions of reviews that a webhook understands; the API server must know one of them."""
    versions = list(iter_texts(owner.get(field)))
    seen: set[str] = set()
    for found, item in versions:
        if found in seen:
            run.report(
                "duplicate-item", Sentence("`{}` is listed twice in `{}`; remove one of them", found, field), item
            )
        elif not is_dns_label_1035(found):
            run.invalid(Sentence("`{}` is not a version; {}", found, DNS_LABEL_1035), item)
        seen.add(found)
    if not as_list(owner.get(field)):
        run.report_missing("a webhook", owner, field, entry)
    elif not seen & {"v1", "v1beta1"}:
        shown = ", ".join(f"`{found}`" for found, _ in versions)
        run.invalid(Sentence("`{}` is {}; add `v1`", field, shown), (owner[field], 0))


def _validate_resource_names(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    seen: set[str] = set()
    for found, item in iter_texts(value):
        if not is_path_segment(found):
            run.report(
                "invalid-name", Sentence("`{}` is not a valid name of a resource; {}", found, PATH_SEGMENT), item
            )
        if found in seen:
            run.report("duplicate-item", Sentence("`{}` is listed twice in `{}`; remove one of them", found, key), item)
        seen.add(found)


def _check_match(policy: Fields, entry: Entry, run: Validation) -> None:
    match = as_mapping(policy.get("matchConstraints"))
    if not is_set(policy.get("matchConstraints")):
        run.report_missing("a policy", policy, "matchConstraints", entry)
    elif not as_list(match.get("resourceRules")):
        message = "`matchConstraints` requires `resourceRules`; list the resources that the policy applies to"
        run.report("missing-field", message, find_entry(match, "resourceRules", (policy, "matchConstraints")))


def _validate_mutating_operations(match: Plain, run: Validation) -> None:
    for rule, _ in iter_items(as_mapping(match).get("resourceRules")):
        for found, node in iter_texts(rule.get("operations")):
            if found == "DELETE":
                run.report_unsupported("operations", node, ("*", "CONNECT", "CREATE", "UPDATE"))


def _validate_version(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    written = as_text(value)
    group, _, version = written.rpartition("/")
    if not written:
        return
    if "/" in group or not version:
        run.invalid(Sentence("`{}` is not an API version; write `v1` or `group/version`", written), At(owner, key))
    elif group and not is_dns_subdomain(group):
        run.invalid(Sentence("`{}` is not an API group; {}", group, DNS_SUBDOMAIN), At(owner, key))
    elif not is_dns_label_1035(version):
        run.invalid(Sentence("`{}` is not a version; {}", version, DNS_LABEL_1035), At(owner, key))


def _validate_kind(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    kind = as_text(value)
    if kind and not is_dns_label_1035(kind.lower()):
        run.invalid(Sentence("`{}` is not a kind; in lower case, {}", kind, DNS_LABEL_1035), At(owner, key))


def _check_param_ref(reference: Fields, entry: Entry, run: Validation) -> None:
    name, has_selector = as_text(reference.get("name")), is_set(reference.get("selector"))
    if name and has_selector:
        message = "`paramRef` must have either `name` or `selector`; remove one of them"
        run.report("invalid-form", message, (reference, "selector"))
    if not name and not has_selector:
        message = "`paramRef` must have either `name` or `selector`; set one of them"
        run.report("missing-field", message, find_mapping(reference, entry))


def _validate_variables(policy: Fields, scope: AdmissionScope, run: Validation) -> None:
    """Validate the variables of a policy, and add them to the scope; each can read those above it."""
    for item, place in iter_items(policy.get("variables")):
        name, written = as_text(item.get("name")), as_text(item.get("expression"))
        if not name.strip():
            run.report_missing("a variable", item, "name", place)
        elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
            message = Sentence(
                "`{}` is not a valid name of a variable in CEL; use letters, digits and underscores", name
            )
            run.report("invalid-name", message, At(item, "name"))
        if not written.strip():
            run.report(
                "missing-field", "`expression` is empty; write an expression", find_value(item, "expression", place)
            )
        elif error := scope.add_variable(name, written):
            run.invalid(Sentence("`expression` does not compile: {}", error), At(item, "expression"))


def _check_expressions(policy: Fields, entry: Entry, run: Validation) -> None:
    """Check the expressions of a validating policy with the types that they have in the API server."""
    validations, annotations = policy.get("validations"), policy.get("auditAnnotations")
    has_params = is_set(policy.get("paramKind"))
    has_variables = bool(as_list(policy.get("variables")))
    scope = AdmissionScope(has_params=has_params, has_variables=has_variables, server=run.release)
    validate_conditions(policy, scope, run)
    _validate_variables(policy, scope, run)
    if not as_list(validations) and not as_list(annotations):
        message = "the policy has neither `validations` nor `auditAnnotations`; add one of them"
        run.report("missing-field", message, find_mapping(policy, entry))
    for item, node in iter_items(validations):
        validate_expression(item, "expression", scope, node, run, "bool")
        if as_text(item.get("messageExpression")):
            validate_expression(item, "messageExpression", scope.without(authorizer=True), node, run, "string")
        message = as_text(item.get("message"))
        if message and not message.strip():
            run.invalid("`message` is blank; write a message or remove it", At(item, "message"))
        elif "\n" in message.strip() or "\r" in message.strip():
            run.invalid("`message` must be one line", At(item, "message"))
        _reason("reason", item.get("reason"), item, run)
    size = len(as_list(annotations))
    if size > _MAX_ANNOTATIONS:
        message = f"`{size}` audit annotations are too many; the limit is {_MAX_ANNOTATIONS}"
        run.report("out-of-range", message, At(as_list(annotations), _MAX_ANNOTATIONS))
    _validate_annotations(annotations, scope, run)


def _validate_annotations(value: Plain, scope: AdmissionScope, run: Validation) -> None:
    seen: set[str] = set()
    for item, place in iter_items(value):
        key = as_text(item.get("key"))
        if not is_label_key(f"{as_text(run.metadata.get('name'))}/{key}"):
            message = Sentence(
                "`{}` is not a valid key of an audit annotation, after the policy's name and `/`; {}", key, LABEL_KEY
            )
            run.report("invalid-name", message, find_value(item, "key", place))
        elif key in seen:
            run.report(
                "duplicate-item", Sentence("there are two audit annotations with the key `{}`", key), At(item, "key")
            )
        seen.add(key)
        written = as_text(item.get("valueExpression")).strip()
        if len(written.encode(errors="replace")) > _MAX_EXPRESSION_BYTES:
            message = Sentence("`valueExpression` is longer than {} bytes; shorten it", _MAX_EXPRESSION_BYTES)
            run.report("out-of-range", message, At(item, "valueExpression"))
        else:
            validate_expression(item, "valueExpression", scope, place, run, "string", "null")


def _check_mutations(policy: Fields, entry: Entry, run: Validation) -> None:
    """Check the expressions of a mutating policy with the types that they have in the API server."""
    _validate_mutating_operations(policy.get("matchConstraints"), run)
    scope = AdmissionScope(has_params=is_set(policy.get("paramKind")), has_variables=True, server=run.release)
    validate_conditions(policy, scope, run)
    _validate_variables(policy, scope, run)
    if not as_list(policy.get("mutations")):
        run.report_missing("a policy", policy, "mutations", entry)
    for item, node in iter_items(policy.get("mutations")):
        _check_patch_type(item, node, run)
        kind = as_text(item.get("patchType"))
        for name, (field, result) in _RESULTS.items() if kind in _RESULTS else ():
            if name != kind and is_set(item.get(field)):
                message = Sentence("`{}` cannot be set with `patchType: {}`; remove one of them", field, kind)
                run.report("invalid-form", message, (item, field))
            elif name == kind and not is_set(item.get(field)):
                run.report_missing(f"`patchType: {kind}`", item, field, node)
            elif name == kind:
                patch = as_mapping(item[field])
                validate_expression(patch, "expression", scope, (item, field), run, result)


def _check_mutating_binding(binding: Fields, entry: Entry, run: Validation) -> None:
    _validate_mutating_operations(binding.get("matchResources"), run)


def _check_actions(binding: Fields, entry: Entry, run: Validation) -> None:
    actions = [found for found, _ in iter_texts(binding.get("validationActions"))]
    nodes = dict(reversed(list(iter_texts(binding.get("validationActions")))))
    if {"Deny", "Warn"} <= nodes.keys():
        message = "`Deny` and `Warn` cannot be combined, because a denial is shown anyway; remove one"
        last = max((found for found in nodes if found != "Audit"), key=actions.index)
        run.invalid(message, nodes[last])
    if not actions:
        message = "the binding has no actions; list at least one of `Deny`, `Warn` and `Audit`"
        run.report("missing-field", message, find_entry(binding, "validationActions", entry))


check_rule = fields("a rule", _RULE, *_LISTS, "resources", _check_lists, _check_resources)
_service = mapping({"path": _validate_path, "port": number(1, 65535, rule="invalid-port")}, "name", "namespace")
_WEBHOOK: Table = {
    **MATCH,
    "failurePolicy": failure_policy,
    "name": dns_subdomain("invalid-name", "name of a webhook"),
    "reinvocationPolicy": one_of("IfNeeded", "Never"),
    "rules": items("a rule", {}, check_rule),
    "sideEffects": one_of("None", "NoneOnDryRun"),
    "timeoutSeconds": number(1, 30),
}
_webhooks = items(
    "a webhook",
    _WEBHOOK,
    "name",
    require_set("a webhook", "sideEffects"),
    _check_webhook,
    unique=("name", "there are two webhooks named `{}`; rename one"),
)
_CONFIGURATION = Kind(fields("a webhook configuration", {"webhooks": _webhooks}))
_policy_rules = items("a rule", {"resourceNames": _validate_resource_names}, check_rule)
_match = mapping({**MATCH, "excludeResourceRules": _policy_rules, "resourceRules": _policy_rules})
_POLICY: Table = {
    "failurePolicy": failure_policy,
    "matchConstraints": _match,
    "paramKind": mapping({"apiVersion": _validate_version, "kind": _validate_kind}, "apiVersion", "kind"),
}
_BINDING: Table = {
    "matchResources": _match,
    "paramRef": mapping(_PARAM_REF, choice("`paramRef`", "parameterNotFoundAction", "Allow", "Deny"), _check_param_ref),
    "policyName": dns_subdomain("invalid-name", "name of a policy"),
}

_actions = texts("Audit", "Deny", "Warn", twice="there are two actions named `{}`; remove one of them")

KINDS = {
    "MutatingWebhookConfiguration": _CONFIGURATION,
    "ValidatingWebhookConfiguration": _CONFIGURATION,
    "MutatingAdmissionPolicy": Kind(
        spec(
            "a policy",
            {**_POLICY, "reinvocationPolicy": one_of("", "IfNeeded", "Never")},
            "reinvocationPolicy",
            _check_match,
            _check_mutations,
        )
    ),
    "MutatingAdmissionPolicyBinding": Kind(spec("a binding", _BINDING, "policyName", _check_mutating_binding)),
    "ValidatingAdmissionPolicy": Kind(spec("a policy", _POLICY, _check_match, _check_expressions)),
    "ValidatingAdmissionPolicyBinding": Kind(
        spec("a binding", {**_BINDING, "validationActions": _actions}, "policyName", _check_actions)
    ),
}
