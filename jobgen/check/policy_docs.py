"""What can be said of every policy: its own description, or the messages of its validations; and its cases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from jobgen.check.rule_docs import EXPECTATION, RuleDoc, documented
from jobgen.model.finding import Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.repo import layout
from jobgen.yamlio.read import read

_DESCRIPTION = "jobgen.dev/description"
_POLICY, _BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
_SEVERITIES = {"Deny": Severity.ERROR, "Warn": Severity.WARNING, "Audit": Severity.INFO}
# What stands beside the cases for their sake: params, and the labels of namespaces.
_BESIDE = ("ConfigMap", "Namespace")
_KIND = lazy_pattern(r"^kind: *(\S+)", re.MULTILINE)
_SEPARATOR = lazy_pattern(r"^---.*\n", re.MULTILINE)
_REMARK = lazy_pattern(r"\A(?:#.*\n)+")


def all_docs(root: Path | None) -> dict[str, RuleDoc]:
    """Every rule and every policy by name."""
    return {**policy_docs(root), **documented()}


def policy_docs(root: Path | None) -> dict[str, RuleDoc]:
    """The policies that travel with jobgen, and those of a repository if there is one, by name."""
    home = root or _home()
    files = (*layout.read_shipped_policies(home), *layout.read_own_policies(home))
    documents = [document.data for file in files for document in read(file.content, file.path).documents]
    bindings = [_spec(document) for document in documents if document.get("kind") == _BINDING]
    found = [_doc(document, bindings) for document in documents if document.get("kind") == _POLICY]
    return {doc.name: doc for doc in sorted(found, key=lambda doc: doc.name)}


def policy_example(root: Path | None, name: str) -> tuple[str, str] | None:
    """Of a policy's cases the shortest that it refuses, and the shortest that it takes; of one kind if it can be."""
    documents = sorted((text for home in (root, _home()) if home for text in _cases(home, name)), key=len)
    refused = [text for text in documents if _is_refused(text, name)]
    taken = [text for text in documents if not EXPECTATION.search(text) and _kind(text) not in _BESIDE]
    if not refused:
        return None
    alike = [(bad, good) for bad in refused for good in taken if _kind(bad) == _kind(good)]
    bad, good = alike[0] if alike else (refused[0], taken[0] if taken else "")
    return EXPECTATION.sub("", bad), good


def _home() -> Path:
    return layout.find_shipped("policies").parent


def _doc(document: dict[str, Any], bindings: Iterable[dict[str, Any]]) -> RuleDoc:
    metadata = _mapping(document.get("metadata"))
    name = str(metadata.get("name"))
    said = _mapping(metadata.get("annotations")).get(_DESCRIPTION) or "\n".join(dict.fromkeys(_messages(document)))
    summary, _, text = str(said).strip().partition("\n")
    return RuleDoc(name, "policy", _severity(name, bindings), f"{summary.rstrip('.')}.", text.strip())


def _severity(name: str, bindings: Iterable[dict[str, Any]]) -> Severity:
    """What the gravest of its bindings makes of it; one without a binding does nothing."""
    actions = {action for spec in bindings if spec.get("policyName") == name for action in _actions(spec)}
    return next((severity for action, severity in _SEVERITIES.items() if action in actions), Severity.INFO)


def _actions(binding: dict[str, Any]) -> list[Any]:
    return [action for action in _list(binding.get("validationActions")) if isinstance(action, str)]


def _messages(document: dict[str, Any]) -> Iterator[str]:
    for validation in map(_mapping, _list(_spec(document).get("validations"))):
        message = str(validation.get("message") or validation.get("expression") or "")
        yield f"{message[:1].upper()}{message[1:].rstrip('.')}."


def _spec(document: dict[str, Any]) -> dict[str, Any]:
    return _mapping(document.get("spec"))


# A policy with faults is still explained as well as it can be: its faults are findings of their own.
def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _cases(root: Path, name: str) -> Iterator[str]:
    for entry in layout.find_policy_tests(root):
        if f"/{name}/" in entry.path:
            text = layout.read_file(entry).content.decode("utf-8", "replace")
            yield from (_REMARK.sub("", part) for part in _SEPARATOR.split(text) if part.strip())


def _kind(text: str) -> str:
    found = _KIND.search(text)
    return found[1] if found else ""


def _is_refused(text: str, name: str) -> bool:
    return any(name in re.split(r"[:,] *", found.strip()) for found in EXPECTATION.findall(text))
