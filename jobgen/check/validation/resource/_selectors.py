"""Validate the selectors and the configuration of devices, which classes and claims have."""

from __future__ import annotations

import json
from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, is_set, report_missing
from jobgen.check.validation.resource._names import iter_limited, require_driver
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node, untraced, value_of

_MAX_EXPRESSION_BYTES = 10 * 1024
_MAX_PARAMETER_BYTES = 10 * 1024
MAX_ITEMS = 32
"""The size of most lists in classes and claims."""


def validate_selectors(owner: Mapping[str, Node], run: Validation) -> None:
    """Validate the CEL expression of each selector."""
    for selector, node in iter_limited(owner, "selectors", MAX_ITEMS, run):
        cel = selector.get("cel")
        if not isinstance(cel, dict):
            if not is_set(cel):
                report_missing("a selector", selector, "cel", node, run)
            continue
        expression = as_text(cel.get("expression"))
        place = cel.get("expression") if is_set(cel.get("expression")) else find_key(selector, "cel", node)
        if not expression.strip():
            message = "a CEL selector requires an `expression`, such as `device.driver == 'gpu.example.com'`"
            run.report("missing-field", message, place)
        elif len(expression.encode(errors="replace")) > _MAX_EXPRESSION_BYTES:
            message = f"`expression` has more than {_MAX_EXPRESSION_BYTES} bytes; shorten it"
            run.report("out-of-range", message, place)
        else:
            _validate_expression(expression, place, run)


def _validate_expression(expression: str, node: Node, run: Validation) -> None:
    # Imported late: few repositories have selectors of devices.
    from jobgen.check.cel.device_selector import find_selector_fault

    fault = find_selector_fault(expression, has_allow_multiple=run.release >= (1, 36))
    if fault is not None:
        # The parser lists everything that may follow, and has a symbol for the end of the text.
        reason = fault.message.partition(" expecting ")[0].replace("`<EOF>`", "the end of the text")
        message = f"the CEL expression does not compile: {reason} (line {fault.line}, column {fault.column})"
        run.report("invalid-value", message, node)


def validate_configuration(config: Mapping[str, Node], node: Node, run: Validation) -> None:
    """Validate the parameters for a driver."""
    opaque = config.get("opaque")
    if not isinstance(opaque, dict):
        if not is_set(opaque):
            report_missing("a configuration", config, "opaque", node, run)
        return
    key = find_key(config, "opaque", node)
    require_driver("`opaque`", opaque, key, run)
    parameters = opaque.get("parameters")
    if value_of(parameters) is None:
        report_missing("`opaque`", opaque, "parameters", key, run)
    elif not isinstance(parameters, dict):
        run.report("wrong-type", "`parameters` must be an object", parameters)
    elif _measure(parameters) > _MAX_PARAMETER_BYTES:
        message = f"`parameters` have more than {_MAX_PARAMETER_BYTES} bytes as JSON; shorten them"
        run.report("out-of-range", message, find_key(opaque, "parameters", key))


def _measure(parameters: Mapping[str, Node]) -> int:
    return len(json.dumps(untraced(parameters), separators=(",", ":"), ensure_ascii=False).encode(errors="replace"))
