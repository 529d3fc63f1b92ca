"""Name the CustomResourceDefinition that a run holds for a kind without a schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jobgen.model.finding import UNCHECKED, Finding
from jobgen.render import config
from jobgen.render.build import split_list
from jobgen.render.environment import Rendered
from jobgen.repo.files import FileEntry, read_file

_CRD = "CustomResourceDefinition"


def suggest_own_definitions(
    findings: Sequence[Finding], made: Iterable[Rendered], entries: Sequence[FileEntry]
) -> list[Finding]:
    """Return the findings; those about a kind that a file of the run defines say how to import that file."""
    if not any(finding.rule == "missing-schema" for finding in findings):
        return list(findings)
    paths = {one.location.file for one in made if one.identity.kind == _CRD}
    defined: dict[tuple[str, ...], str] = {}
    for entry in entries:
        if entry.path in paths and entry.content is None:
            for kind in _list_defined_kinds(entry):
                defined.setdefault(kind, entry.path)
    return [_name_file(finding, defined) for finding in findings]


def _list_defined_kinds(entry: FileEntry) -> Iterator[tuple[str, str]]:
    """The kinds that the CustomResourceDefinitions of a file define, each with its apiVersion."""
    for document in config.read_documents(read_file(entry), [], shared=True).documents:
        for data in split_list(document.data):
            if isinstance(data, dict) and data.get("kind") == _CRD:
                yield from _list_versions(data.get("spec"))


def _list_versions(spec: Any) -> Iterator[tuple[str, str]]:
    names = spec.get("names") if isinstance(spec, dict) else None
    versions = spec.get("versions") if isinstance(names, dict) else None
    for version in versions if isinstance(versions, list) else ():
        if isinstance(version, dict):
            yield str(spec["names"].get("kind")), f"{spec.get('group')}/{version.get('name')}"


def _name_file(finding: Finding, defined: dict[tuple[str, ...], str]) -> Finding:
    path = defined.get(finding.values, "") if finding.rule == "missing-schema" else ""
    if not path:
        return finding
    start = finding.message.partition(UNCHECKED)[0]
    return finding._replace(message=f"{start}{UNCHECKED}; run `jobgen schema import {path}`")
