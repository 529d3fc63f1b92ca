"""What all imported jobs share, said once in an overlay; only what leaves every job as it was."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from jobgen.convert.importing.common_fields import with_types
from jobgen.convert.importing.format_yaml import format_document
from jobgen.convert.importing.import_job import ImportedSpec
from jobgen.convert.importing.verify import SpecRenderer, is_equivalent, render_spec
from jobgen.model.data import API_VERSION, Data
from jobgen.render.expand import Expander
from jobgen.spec.kinds import Kind
from jobgen.spec.overlay import Overlay, compose_environment

# What makes a job this job; and what is merged in later, where order would begin to matter.
_OWN = frozenset(("framework", "replicas", "roles", "manifest", "podTemplate", "description"))


def extract_overlay(
    name: str, platform: str, jobs: Sequence[ImportedSpec], kinds: Sequence[Kind]
) -> tuple[dict[str, Data], list[dict[str, Data]]]:
    """An overlay with what the jobs share, and the jobs without it; proven field by field."""
    documents = [copy.deepcopy(job.document) for job in jobs]
    overlay = build_overlay(name, platform, [job.name for job in jobs])
    for field, value in _shared(documents):
        tried, thinner = _with(overlay, field, value), [_without(each, field, value) for each in documents]
        if all(_proven(tried, name, each, job, kinds) for each, job in zip(thinner, jobs, strict=True)):
            overlay, documents = tried, thinner
    return overlay, documents


def build_overlay(name: str, platform: str, jobs: Sequence[str]) -> dict[str, Data]:
    """An environment for imported jobs."""
    spec = {"cluster": {"platform": platform}, "jobs": {"names": sorted(set(jobs))}}
    return {"apiVersion": API_VERSION, "kind": "Overlay", "metadata": {"name": name}, "spec": spec}


def overlay_text(overlay: dict[str, Data]) -> str:
    """The text of an overlay."""
    return format_document(overlay)


def _shared(documents: list[dict[str, Data]]) -> list[tuple[str, Data]]:
    """Fields and parts of maps that all jobs have alike; a namespace too."""
    found: list[tuple[str, Data]] = []
    namespaces = [document["metadata"].get("namespace") for document in documents]
    if namespaces[0] is not None and len(set(namespaces)) == 1:
        found.append(("namespace", namespaces[0]))
    first, *others = (document["spec"] for document in documents)
    for field, value in first.items():
        if field in _OWN or value is None or not all(field in other for other in others):
            continue
        part = _part(value, [other[field] for other in others], field)
        if part is not None:
            found.append((field, part))
    return found


def _part(value: Data, others: list[Data], field: str) -> Data:
    """What is alike; of maps, their entries."""
    if all(with_types(value) == with_types(other) for other in others):
        return value
    if field == "resources" or not all(isinstance(each, dict) for each in (value, *others)):
        return None
    said = {key: each for key, each in value.items() if each is not None}
    return {key: each for key, each in said.items() if all(_has(other, key, each) for other in others)} or None


def _has(mapping: dict[str, Data], key: str, value: Data) -> bool:
    return key in mapping and bool(with_types(mapping[key]) == with_types(value))


def _with(overlay: dict[str, Data], field: str, value: Data) -> dict[str, Data]:
    spec = overlay["spec"]
    if field == "namespace":
        return {**overlay, "spec": {**spec, "namespace": value}}
    return {**overlay, "spec": {**spec, "defaults": {**spec.get("defaults", {}), field: value}}}


def _without(document: dict[str, Data], field: str, value: Data) -> dict[str, Data]:
    if field == "namespace":
        metadata = {key: each for key, each in document["metadata"].items() if key != field}
        return {**document, "metadata": metadata}
    own = document["spec"][field]
    rest = {key: each for key, each in own.items() if key not in value} if isinstance(own, dict) else None
    spec = {key: each for key, each in document["spec"].items() if key != field}
    if rest:
        # In its old place, for people look for it there.
        spec = {key: rest if key == field else each for key, each in document["spec"].items()}
    return {**document, "spec": spec}


def _proven(
    overlay: dict[str, Data], name: str, document: dict[str, Data], job: ImportedSpec, kinds: Sequence[Kind]
) -> bool:
    environment = compose_environment(name, {name: Overlay(name, (overlay["spec"],))}, [])
    made, problems = render_spec(document, SpecRenderer(Expander(environment, list(kinds))))
    return not problems and is_equivalent(made, job.manifest)
