"""What an object has as text although it is data: whole objects, and patches of pods, as in a Workflow of Argo."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.model.budget import Work, charge
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At, find_at
from jobgen.yamlio.read import read_shared

Parameters = Mapping[str, str]
CREATING: Final = ("create", "apply", "replace", "patch")
"""The actions of a Workflow that create or change the object of a text."""
MAX_DEPTH: Final = 5
"""How many objects may be inside of each other as text."""
TEMPLATE_TEXT: Final = "{{"
"""What is left in a text if its value is known only when it runs."""
_MAX_FILLED = 4_000_000
_OPEN, _CLOSE = "\ue000", "\ue001"
"""Letters for private use, which stand for the braces around what is filled in."""
_expression = lazy_pattern(r"\{\{([^{}\n]*)\}\}")
_reference = lazy_pattern(r"\{\{\s*workflow\.parameters\.([\w.-]+)\s*\}\}")


def is_embedded(key: str, text: str) -> bool:
    """Return True if the text in a field is an object, or a part of a pod."""
    return key == "podSpecPatch" or ("kind" in text and (key == "manifest" or "apiVersion" in text))


def is_creating(resource: Mapping[str, Plain], parameters: Parameters) -> bool:
    """Return True if a `resource` of a Workflow may create or change an object."""
    action = fill(as_text(resource.get("action")), parameters)
    return action in CREATING or TEMPLATE_TEXT in action


def find_resource_text(resource: Mapping[str, Plain]) -> tuple[str, At]:
    """Return the field of a `resource` of a Workflow with the text of what it creates, and the place of the text.

    An artifact that is not written in the Workflow has no text; the place is then that of the artifact.
    """
    if resource.get("manifestFrom") is None:
        return "manifest", At(resource, "manifest")
    artifact = find_at(resource, "manifestFrom", "artifact")
    if artifact is None or artifact.node is None:
        return "manifestFrom", At(resource, "manifestFrom")
    text = find_at(artifact.node, "raw", "data")
    return "manifestFrom", artifact if text is None or text.node is None else text


def read_embedded(text: str) -> list[Mapping[str, Plain]] | None:
    """Return the objects in a text of YAML or JSON; None if it cannot be read."""
    charge(Work.WORKFLOW, 4 + len(text) // 8, len(text))
    source = read_shared(text.encode(errors="replace"), "text")
    if source.findings and TEMPLATE_TEXT in text:
        # What is filled in when it runs is one value, but braces without quotation marks are a mapping for YAML.
        quoted = _expression.sub(lambda match: f"{_OPEN}{match[1].strip()}{_CLOSE}", text)
        source = read_shared(quoted.encode(errors="replace"), "text")
        return None if source.findings else [as_mapping(_restore(each.data)) for each in source.documents]
    return None if source.findings else [as_mapping(document.data) for document in source.documents]


def _restore(node: Any) -> Any:
    """Return data with the braces that `read_embedded` has replaced; its depth is limited by the reader."""
    if isinstance(node, dict):
        return {_restore(key): _restore(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_restore(each) for each in node]
    return node.replace(_OPEN, "{{").replace(_CLOSE, "}}") if isinstance(node, str) else node


def list_parameters(obj: Mapping[str, Plain]) -> Parameters:
    """Return the parameters that a Workflow gives to all of its templates."""
    found: dict[str, str] = {}
    if as_text(obj.get("apiVersion")).startswith("argoproj.io/"):
        for path in (("spec",), ("spec", "workflowSpec")):
            for each in map(as_mapping, as_list(get_path(obj, *path, "arguments", "parameters"))):
                if as_text(each.get("name")) and isinstance(each.get("value"), (str, int)):
                    found[as_text(each.get("name"))] = str(each.get("value"))
    return found


def fill(text: str, parameters: Parameters) -> str:
    """Return a text with the values of a Workflow's parameters; others stay as they are."""
    if TEMPLATE_TEXT not in text or not parameters:
        return text

    def replace(match: re.Match[str]) -> str:
        return parameters.get(match[1], match[0])

    charge(Work.WORKFLOW, len(text) // 64)
    size = sum(len(replace(match)) for match in _reference.finditer(text))
    return text if size > _MAX_FILLED else _reference.sub(replace, text)
