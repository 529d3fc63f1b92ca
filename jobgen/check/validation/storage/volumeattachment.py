"""Validate VolumeAttachments."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, list_set_keys, report_missing
from jobgen.check.admission.names import DNS_SUBDOMAIN, is_dns_subdomain
from jobgen.check.validation.core._volume_spec import validate_inline_volume_spec
from jobgen.check.validation.storage._drivers import validate_driver_name
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node

_SOURCES = ("inlineVolumeSpec", "persistentVolumeName")


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the driver, the volume and the node; the status is not kept."""
    spec, key = run.spec, find_key(obj, "spec", obj)
    validate_driver_name("a VolumeAttachment", spec, "attacher", key, run)
    _validate_name(spec, "nodeName", key, run)
    source = as_mapping(spec.get("source"))
    given = list_set_keys(source, _SOURCES)
    if len(given) != 1:
        message = "`source` requires exactly one of `inlineVolumeSpec` and `persistentVolumeName`"
        run.report("invalid-form", message, given[-1] if given else find_key(spec, "source", key))
    elif given[0] == "persistentVolumeName":
        _validate_name(source, "persistentVolumeName", given[0], run)
    elif isinstance(source["inlineVolumeSpec"], dict):
        validate_inline_volume_spec(source["inlineVolumeSpec"], given[0], run)


def _validate_name(owner: Mapping[str, Node], field: str, parent: Node, run: Validation) -> None:
    name = as_text(owner.get(field))
    if not name:
        report_missing("a VolumeAttachment", owner, field, parent, run)
    elif not is_dns_subdomain(name):
        run.report("invalid-object-name", f"`{name}` is not a valid object name; {DNS_SUBDOMAIN}", owner[field])
