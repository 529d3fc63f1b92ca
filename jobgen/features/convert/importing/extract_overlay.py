"""Move fields that all imported jobs share to an overlay, if every job still renders to its manifest."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from jobgen.features.convert.importing.common_fields import Fields, with_types
from jobgen.features.convert.importing.import_job import ImportedSpec
from jobgen.features.convert.importing.verify import SpecRenderer, is_equivalent, render_spec
from jobgen.model.data import API_VERSION, Plain
from jobgen.render.expand import Expander
from jobgen.spec.kinds import Kind
from jobgen.spec.overlay import Overlay, compose_environment

# Fields that identify a job, and fields that are merged later, so that the order would matter.
_NOT_SHARED = frozenset(("framework", "replicas", "roles", "manifest", "podTemplate", "description"))


def extract_overlay(
    name: str, platform: str, jobs: Sequence[ImportedSpec], kinds: Sequence[Kind]
) -> tuple[dict[str, Plain], list[dict[str, Plain]]]:
    """An overlay with the fields that the jobs share, and the jobs without them; each field is verified."""
    documents: list[Fields] = [copy.deepcopy(job.document) for job in jobs]
    overlay: Fields = build_overlay(name, platform, [job.name for job in jobs])
    for field, value in _find_shared_fields(documents):
        new_overlay = _with_field(overlay, field, value)
        new_documents = [_without_field(each, field, value) for each in documents]
        pairs = zip(new_documents, jobs, strict=True)
        if all(_renders_to_manifest(new_overlay, name, document, job, kinds) for document, job in pairs):
            overlay, documents = new_overlay, new_documents
    return overlay, documents


def build_overlay(name: str, platform: str, jobs: Sequence[str]) -> dict[str, Plain]:
    """An overlay that selects some jobs for a platform."""
    spec: Plain = {"cluster": {"platform": platform}, "jobs": {"names": sorted(set(jobs))}}
    return {"apiVersion": API_VERSION, "kind": "Overlay", "metadata": {"name": name}, "spec": spec}


def _find_shared_fields(documents: list[Fields]) -> list[tuple[str, Any]]:
    """The fields, and the parts of maps, that all jobs share; also the namespace."""
    found: list[tuple[str, Any]] = []
    namespaces = [document["metadata"].get("namespace") for document in documents]
    if namespaces[0] is not None and len(set(namespaces)) == 1:
        found.append(("namespace", namespaces[0]))
    first, *others = (document["spec"] for document in documents)
    for field, value in first.items():
        if field in _NOT_SHARED or value is None or not all(field in other for other in others):
            continue
        part = _find_shared_part(value, [other[field] for other in others], field)
        if part is not None:
            found.append((field, part))
    return found


def _find_shared_part(value: Any, others: list[Any], field: str) -> Any:
    """The value if all jobs have it; of maps, the entries that all jobs have."""
    if all(with_types(value) == with_types(other) for other in others):
        return value
    if field == "resources" or not all(isinstance(each, dict) for each in (value, *others)):
        return None
    entries = {key: each for key, each in value.items() if each is not None}
    return {key: each for key, each in entries.items() if all(_has(other, key, each) for other in others)} or None


def _has(mapping: Fields, key: str, value: Any) -> bool:
    return key in mapping and with_types(mapping[key]) == with_types(value)


def _with_field(overlay: Fields, field: str, value: Any) -> Fields:
    spec = overlay["spec"]
    if field == "namespace":
        return {**overlay, "spec": {**spec, "namespace": value}}
    return {**overlay, "spec": {**spec, "defaults": {**spec.get("defaults", {}), field: value}}}


def _without_field(document: Fields, field: str, value: Any) -> Fields:
    if field == "namespace":
        metadata = {key: each for key, each in document["metadata"].items() if key != field}
        return {**document, "metadata": metadata}
    own = document["spec"][field]
    rest = {key: each for key, each in own.items() if key not in value} if isinstance(own, dict) else None
    # The rest of a map keeps its position.
    spec = {key: rest if key == field else each for key, each in document["spec"].items() if key != field or rest}
    return {**document, "spec": spec}


def _renders_to_manifest(
    overlay: Fields, name: str, document: dict[str, Plain], job: ImportedSpec, kinds: Sequence[Kind]
) -> bool:
    environment = compose_environment(name, {name: Overlay(name, (overlay["spec"],))}, [])
    rendered, problems = render_spec(document, SpecRenderer(Expander(environment, list(kinds))))
    return not problems and is_equivalent(rendered, job.manifest)
