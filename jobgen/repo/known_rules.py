"""The names of all rules and policies, which settings may name. Neither is imported or compiled for its name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from jobgen.model.builtin_rules import BUILTIN_RULES, POD_RULES
from jobgen.model.features import HOME, list_rule_modules
from jobgen.model.lazy_re import lazy_pattern
from jobgen.repo import layout
from jobgen.repo.files import File
from jobgen.repo.layout import Layers
from jobgen.repo.shipped import find_shipped
from jobgen.yamlio.read import read

_RULE = lazy_pattern(rb"^@rule\([^@]*?\)\ndef (\w+)\(", re.MULTILINE)
_DEFECT_NAME = lazy_pattern(rb"\n    - name: (\S+)(?=\n)")
VALIDATING, MUTATING = "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"


def list_known_rules(layers: Layers | None) -> list[str]:
    """The names of all policies and rules: policies by name, then rules by category and name."""
    categories = {name: category for name, category, *_ in BUILTIN_RULES}
    categories |= dict.fromkeys(POD_RULES, "pod")
    categories |= _find_rules()
    documents = read_policy_files(layers)
    policies = sorted(name_policy(each) for each in documents if each.get("kind") in (VALIDATING, MUTATING))
    defects = sorted(list_defect_names(layers))
    return list(dict.fromkeys((*policies, *defects, *sorted(categories, key=lambda name: (categories[name], name)))))


@cache
def _find_rules() -> dict[str, str]:
    """Return the category of each rule by its name: that of its function, and the folder of its module."""
    found: dict[str, str] = {}
    for module in list_rule_modules():
        path = Path(HOME, *module.split(".")[1:]).with_suffix(".py")
        names = _RULE.findall(path.read_bytes())
        found |= {name.decode().replace("_", "-"): path.parent.name for name in names}
    return found


def list_defect_names(layers: Layers | None) -> Iterator[str]:
    """The names of the defects that come with jobgen, and of those of a repository if there is one."""
    for file in layout.read_shipped_defects():
        yield from _find_defect_names(file.content)
    for file in layout.read_own_defects(layers) if layers else ():
        for document in _read_documents(file.content, file.path):
            spec = document.get("spec")
            listed = spec.get("defects") if isinstance(spec, dict) else None
            entries = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
            yield from (each["name"] for each in entries if isinstance(each.get("name"), str))


@lru_cache(maxsize=32)
def _find_defect_names(content: bytes) -> list[str]:
    """The names in a shipped file; a test checks its form."""
    return [name.decode() for name in _DEFECT_NAME.findall(content)]


def read_policy_files(layers: Layers | None) -> Iterator[Mapping[str, Any]]:
    """Read the policies that come with jobgen, and those of a repository if there is one, with what they need."""
    layers = layers or layout.own_layers(find_shipped("policies").parent)
    for file in (*layout.read_shipped_policies(layers), *layout.read_own_policies(layers)):
        yield from read_policy_file(file)


def read_policy_file(file: File) -> tuple[Mapping[str, Any], ...]:
    """Read the documents of a file of policies. Nothing changes them, so a process that reports often reads it once."""
    return _read_documents(file.content, file.path)


@lru_cache(maxsize=64)
def _read_documents(content: bytes, path: str) -> tuple[Mapping[str, Any], ...]:
    return tuple(document.data for document in read(content, path).documents)


def name_policy(document: Mapping[str, Any]) -> str:
    """The name of a policy."""
    metadata = document.get("metadata")
    return str(metadata.get("name") if isinstance(metadata, dict) else None)
