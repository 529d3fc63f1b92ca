"""Headless Services of imported Jobs: jobgen renders an equal one with the job, and others are kept as manifests."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from jobgen.features.convert.importing.format_yaml import format_document
from jobgen.features.convert.importing.import_job import ImportedSpec, import_manifest
from jobgen.features.convert.importing.server_fields import remove_server_fields
from jobgen.features.convert.importing.verify import is_equivalent, render_objects, renderer_for
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.kinds import Kind
from jobgen.spec.replicas import find_template

ServiceKey = tuple[str, str]
"""The namespace and the name of a Service."""


class HostService(NamedTuple):
    """A Service that gives the pods of a job their DNS names."""

    job: str
    kind: Kind
    """The kind of the job."""
    spec: ImportedSpec | None
    """The spec of the job if jobgen renders the Service with it."""


def is_service(item: Any) -> bool:
    """Whether an object is a Service."""
    return isinstance(item, dict) and item.get("apiVersion") == "v1" and item.get("kind") == "Service"


def get_key(item: Any, name: str = "") -> ServiceKey:
    """Return the key of a Service, or of the one with a name in the namespace of an object."""
    metadata = item.get("metadata") if isinstance(item.get("metadata"), dict) else {}
    return str(metadata.get("namespace") or ""), name or str(metadata.get("name") or "")


def match_services(objects: Iterable[Any], kinds: Sequence[Kind]) -> dict[ServiceKey, HostService]:
    """Find the Services that the pods of jobs name as their subdomain."""
    listed = [item for item in objects if isinstance(item, dict)]
    services = {get_key(item): item for item in listed if is_service(item)}
    found: dict[ServiceKey, HostService] = {}
    for item in listed if services else ():
        kind = next(
            (each for each in kinds if each.describes(str(item.get("apiVersion")), str(item.get("kind")))), None
        )
        if kind is None or kind.network is None or not kind.network.has_service:
            continue
        key = get_key(item, _find_subdomain(item, kind))
        if key in services:
            found[key] = HostService(get_key(item)[1], kind, _render_service(item, services[key], kind, kinds))
    return found


def _find_subdomain(item: dict[str, Plain], kind: Kind) -> str:
    """The subdomain of the pods of a job; a name that no Service has if there is none."""
    templates = (find_template(each.data, kind.replicas) for each in kind.list_items(item))
    specs = (template.get("spec") for template in templates if isinstance(template, dict))
    return next((str(spec["subdomain"]) for spec in specs if isinstance(spec, dict) and "subdomain" in spec), " ")


def _render_service(item: dict[str, Plain], service: Any, kind: Kind, kinds: Sequence[Kind]) -> ImportedSpec | None:
    """The spec of a job with which jobgen renders exactly this Service; None if there is none."""
    imported = import_manifest(item, kind, kinds)
    if not isinstance(imported, ImportedSpec):
        return None
    document: Any = copy.deepcopy(imported.document)
    block = document["spec"].get(kind.platform)
    if not isinstance(block, dict) or block.pop("service", None) is None:
        return None
    if not block:
        del document["spec"][kind.platform]
    objects, problems = render_objects(document, renderer_for(kind.platform, kinds))
    wanted = [imported.manifest, remove_server_fields(service)[0]]
    if problems or len(objects) != len(wanted) or not all(map(is_equivalent, objects, wanted)):
        return None
    return imported._replace(document=document, text=format_document(document))
