"""A page in Markdown about what policies enforce, and where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

_CODE = lazy_pattern(r"(`[^`\n]*`)")
_MARKUP = lazy_pattern(r"[<\[\]]|^[ \t]*#", re.MULTILINE)
_BINDING = "Binding"
_HEAD = """\
# Policies

What the policies of this repository enforce. `Deny` rejects an object, `Warn` shows a warning, `Audit` only records it,
`Mutate` changes it.

| policy | actions | kinds | file |
|---|---|---|---|
"""


class PolicyDocument(NamedTuple):
    """A policy or a binding with its file."""

    file: str
    data: Mapping[str, Any]


def format_page(documents: Sequence[PolicyDocument], off: Iterable[str] = ()) -> str:
    """The page; policies that the settings turn off are marked."""
    bindings = [one.data for one in documents if str(one.data["kind"]).endswith(_BINDING)]
    turned_off = frozenset(off)
    rows, sections = "", ""
    for file, data in documents:
        if str(data["kind"]).endswith(_BINDING):
            continue
        name, spec, kind = str(data["metadata"]["name"]), data["spec"], f"{data['kind']}{_BINDING}"
        own = [one["spec"] for one in bindings if one["kind"] == kind and one["spec"].get("policyName") == name]
        actions = dict.fromkeys(action for one in own for action in one.get("validationActions") or ("Mutate",))
        state = "off" if name in turned_off else ", ".join(actions) or "no binding"
        rules = (spec.get("matchConstraints") or {}).get("resourceRules") or ()
        kinds = ", ".join(dict.fromkeys(each for rule in rules for each in sorted(rule.get("resources") or ())))
        rows += f"| [{name}](#{name}) | {state} | {_cell(kinds)} | {_cell(file)} |\n"
        sections += f"\n{_format_section(name, data, own, is_off=name in turned_off)}"
    return _HEAD + rows + sections


def _format_section(name: str, data: Mapping[str, Any], bindings: Sequence[Mapping[str, Any]], *, is_off: bool) -> str:
    lines = [f"## {name}", ""]
    description = (data["metadata"].get("annotations") or {}).get("jobgen.dev/description")
    lines += [_escape(str(description).strip()), ""] if description else []
    lines += ["The settings turn it off.", ""] if is_off else []
    for spec in bindings:
        actions = ", ".join(spec.get("validationActions") or ("Mutate",))
        lines.append(f"- {actions}: {_describe_place(spec)}")
    lines += [""] if bindings else ["It has no binding, so it has no effect.", ""]
    lines += [f"- {_cell(text)}" for text in dict.fromkeys(_list_messages(data["spec"]))]
    return "\n".join(lines) + "\n"


def _describe_place(spec: Mapping[str, Any]) -> str:
    """Which objects a binding applies to, in words."""
    match = spec.get("matchResources") or {}
    parts = [
        f"{words} {_format_selector(match[field])}"
        for field, words in (("namespaceSelector", "namespaces with"), ("objectSelector", "objects with"))
        if match.get(field)
    ]
    param = spec.get("paramRef") or {}
    chosen = _quote(param["name"]) if param.get("name") else _format_selector(param.get("selector") or {})
    parts += [f"params {chosen}"] if param else []
    return "; ".join(parts) or "everywhere"


def _format_selector(selector: Mapping[str, Any]) -> str:
    labels = [_quote(f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for item in selector.get("matchExpressions") or ():
        values = ", ".join(map(str, item.get("values") or ()))
        labels.append(_quote(f"{item.get('key')} {item.get('operator')}{f' ({values})' if values else ''}"))
    return ", ".join(labels) or "any labels"


def _list_messages(spec: Mapping[str, Any]) -> Iterator[str]:
    """What each validation requires, its message or the expression, and what each mutation makes."""
    for item in spec.get("validations") or ():
        yield str(item.get("message") or _quote(item["expression"]))
    for item in spec.get("mutations") or ():
        patch = item.get("jsonPatch") or item.get("applyConfiguration") or {}
        yield f"{item['patchType']} {_quote(patch.get('expression'))}"


def _quote(expression: Any) -> str:
    # A backtick would end the code.
    return f"`{' '.join(str(expression).split()).replace('`', chr(39))}`"


def _cell(text: str) -> str:
    return _escape(" ".join(text.split())).replace("|", "\\|")


def _escape(text: str) -> str:
    """Return text of a policy without markup, links, images and headings; what is in backticks stays code."""
    parts = _CODE.split(text)
    return "".join(part if index % 2 else _MARKUP.sub(r"\\\g<0>", part) for index, part in enumerate(parts))
