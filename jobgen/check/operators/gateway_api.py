"""What the CRDs of the Gateway API refuse besides the types of fields: listeners, routes and filters that do not fit.

These are the rules that all releases since 1.0 have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.operators.checks import REJECTED, Check, Checks, Violations, field_place
from jobgen.check.rules import Violation
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Plain
from jobgen.model.place import At
from jobgen.model.sentence import Sentence

OPERATOR = "gateway-api"

# The field of each type of filter.
_FILTERS = {
    "ExtensionRef": "extensionRef",
    "RequestHeaderModifier": "requestHeaderModifier",
    "RequestMirror": "requestMirror",
    "RequestRedirect": "requestRedirect",
    "ResponseHeaderModifier": "responseHeaderModifier",
    "URLRewrite": "urlRewrite",
}
_ONCE = frozenset(("RequestHeaderModifier", "RequestRedirect", "ResponseHeaderModifier", "URLRewrite"))
_PATHS = frozenset(("", "Exact", "PathPrefix"))
_FORBIDDEN = ("//", "/./", "/../", "%2f", "%2F", "#")
_WITHOUT_TLS = frozenset(("HTTP", "TCP", "UDP"))
_WITHOUT_NAMES = frozenset(("TCP", "UDP"))


def _list_rules(manifest: Manifest) -> Iterator[Mapping[str, Plain]]:
    return map(as_mapping, as_list(manifest.spec.get("rules")))


def _check_backends(manifest: Manifest) -> Violations:
    """Check that references to Services have a port."""
    for rule in _list_rules(manifest):
        filters = list(map(as_mapping, as_list(rule.get("filters"))))
        listed = list(map(as_mapping, as_list(rule.get("backendRefs"))))
        listed += [as_mapping(as_mapping(each.get("requestMirror")).get("backendRef")) for each in filters]
        for backend in listed:
            is_service = as_text(backend.get("kind")) in ("", "Service") and not as_text(backend.get("group"))
            if is_service and as_text(backend.get("name")) and backend.get("port") is None:
                yield Violation(At(backend, "name"), "a reference to a Service needs a `port`; add it")


def _check_filters(manifest: Manifest) -> Violations:
    """Check that a filter has the field of its type only, and that filters can be combined."""
    for rule in _list_rules(manifest):
        filters = [as_mapping(each) for each in as_list(rule.get("filters"))]
        types = [as_text(each.get("type")) for each in filters]
        for kind, each in zip(types, filters, strict=True):
            if kind not in _FILTERS:
                continue
            field = _FILTERS[kind]
            other = next((name for name in _FILTERS.values() if name in each and name != field), "")
            if other:
                message = Sentence(
                    "a filter of type `{}` cannot have `{}`; write `{}`, or another type", kind, other, field
                )
                yield Violation(At(each, other, is_key=True), message)
            elif each.get(field) is None:
                yield Violation(At(each, "type"), Sentence("a filter of type `{}` needs `{}`; add it", kind, field))
        repeated = next((kind for kind in _ONCE if types.count(kind) > 1), "")
        if repeated:
            last = [each for kind, each in zip(types, filters, strict=True) if kind == repeated][-1]
            yield Violation(
                At(last, "type"), Sentence("the filter `{}` cannot be repeated in a rule; join the two", repeated)
            )
        if "RequestRedirect" in types and "URLRewrite" in types:
            yield Violation(
                At(rule, "filters", is_key=True), "a rule cannot have `RequestRedirect` and `URLRewrite`; keep one"
            )
        if "RequestRedirect" in types and as_list(rule.get("backendRefs")):
            message = Sentence("a rule with the filter `RequestRedirect` cannot have `backendRefs`; remove one of them")
            yield Violation(At(rule, "backendRefs", is_key=True), message)


def _check_paths(manifest: Manifest) -> Violations:
    """Check the paths that a route matches."""
    for rule in _list_rules(manifest):
        for match in map(as_mapping, as_list(rule.get("matches"))):
            path = as_mapping(match.get("path"))
            value = as_text(path.get("value"))
            if not value or as_text(path.get("type")) not in _PATHS:
                continue
            wrong = next((part for part in _FORBIDDEN if part in value), "")
            wrong = wrong or next((end for end in ("/..", "/.") if value.endswith(end)), "")
            if not value.startswith("/"):
                yield Violation(At(path, "value"), Sentence("`{}` must begin with `/`", value))
            elif wrong:
                yield Violation(
                    At(path, "value"), Sentence("`{}` cannot have `{}`; write the path without it", value, wrong)
                )


def _check_methods(manifest: Manifest) -> Violations:
    for rule in _list_rules(manifest):
        for match in map(as_mapping, as_list(rule.get("matches"))):
            method = match.get("method")
            if isinstance(method, dict) and not {"service", "method"} & method.keys():
                message = "a match of methods needs `service` or `method`; add one of them"
                yield Violation(At(match, "method", is_key=True), message)


def _check_listeners(manifest: Manifest) -> Violations:
    listeners = [as_mapping(each) for each in as_list(manifest.spec.get("listeners"))]
    seen: dict[tuple[object, ...], Mapping[str, Plain]] = {}
    for each in listeners:
        protocol, tls = as_text(each.get("protocol")), as_mapping(each.get("tls"))
        mode = as_text(tls.get("mode")) or "Terminate"
        if protocol in _WITHOUT_TLS and "tls" in each and each["tls"] is not None:
            message = Sentence("a listener of `{}` cannot have `tls`; write `protocol: HTTPS`, or remove it", protocol)
            yield Violation(At(each, "tls", is_key=True), message)
        elif protocol == "HTTPS" and mode != "Terminate":
            yield Violation(
                field_place(tls, "mode"),
                Sentence("a listener of `HTTPS` cannot have `mode: {}`; use `Terminate`", mode),
            )
        elif (
            tls and mode == "Terminate" and not (as_list(tls.get("certificateRefs")) or as_mapping(tls.get("options")))
        ):
            yield Violation(
                At(each, "tls", is_key=True), "`tls` that terminates needs `certificateRefs` or `options`; add one"
            )
        if protocol in _WITHOUT_NAMES and as_text(each.get("hostname")):
            yield Violation(
                At(each, "hostname"), Sentence("a listener of `{}` cannot have a `hostname`; remove it", protocol)
            )
        key = each.get("port"), protocol, as_text(each.get("hostname"))
        if all(key[:2]) and key in seen:
            message = Sentence("two listeners have the same port, protocol and hostname; change one of them")
            yield Violation(field_place(each, "port"), message, ((field_place(seen[key], "port"), "the other one"),))
        seen.setdefault(key, each)


CHECKS: Checks = {
    "GRPCRoute": tuple(Check(REJECTED, find) for find in (_check_backends, _check_filters, _check_methods)),
    "Gateway": (Check(REJECTED, _check_listeners),),
    "HTTPRoute": tuple(Check(REJECTED, find) for find in (_check_backends, _check_filters, _check_paths)),
    "TCPRoute": (Check(REJECTED, _check_backends),),
    "TLSRoute": (Check(REJECTED, _check_backends),),
    "UDPRoute": (Check(REJECTED, _check_backends),),
}
