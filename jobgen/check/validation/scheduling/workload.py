"""Validate Workloads."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, iter_items, require_fields, validate_string
from jobgen.check.admission.names import DNS_SUBDOMAIN, PATH_SEGMENT, is_dns_subdomain, is_path_segment
from jobgen.check.validation.scheduling._pod_groups import is_validated, validate_group, validate_short_name
from jobgen.k8s.nodes import as_list, as_text
from jobgen.model.data import Node

_MAX_TEMPLATES = 8
_validate_segment = validate_string("invalid-object-name", "name", is_path_segment, PATH_SEGMENT)
_validate_group_name = validate_string("invalid-value", "API group", is_dns_subdomain, DNS_SUBDOMAIN)


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the controller and the templates of groups of pods."""
    if not is_validated(obj):
        return
    spec, key = run.spec, find_key(obj, "spec", obj)
    controller = spec.get("controllerRef")
    if isinstance(controller, dict):
        require_fields("`controllerRef`", controller, ("kind", "name"), find_key(spec, "controllerRef", key), run)
        _validate_group_name("apiGroup", controller.get("apiGroup"), controller, run)
        for field in ("kind", "name"):
            _validate_segment(field, controller.get(field), controller, run)
    require_fields("a Workload", spec, ("podGroupTemplates",), key, run)
    templates = spec.get("podGroupTemplates")
    if len(as_list(templates)) > _MAX_TEMPLATES:
        count = len(as_list(templates))
        run.report("out-of-range", f"`podGroupTemplates` has `{count}` items; it can have at most 8", templates)
        return
    names: set[str] = set()
    for template, node in iter_items("podGroupTemplates", templates):
        require_fields("a template", template, ("name",), node, run)
        validate_short_name("name", template.get("name"), template, run)
        name = as_text(template.get("name"))
        if name and name in names:
            run.report("duplicate-item", f"two templates are named `{name}`; rename one of them", template["name"])
        names.add(name)
        validate_group(template, node, run)
