"""Kinds, API versions and frameworks of a document that are deprecated, and what to use instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobgen.features.editor.completion.known import Known
from jobgen.features.editor.completion.manifests import describe_framework, describe_kind
from jobgen.features.editor.cursor import read_text
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import API_VERSION, Location, TracedScalar
from jobgen.model.named_tuple import NamedTuple
from jobgen.render.build import split_list


class Deprecation(NamedTuple):
    """A value that is deprecated."""

    location: Location
    hint: str
    """Since when, and what to use instead."""


def list_deprecated(text: str, file: str, known: Known) -> Iterator[Deprecation]:
    """Yield the deprecated values of a file: kinds and versions of manifests, and frameworks of jobs."""
    for document in read_text(text, file).documents:
        for data in split_list(document.data) if isinstance(document.data, dict) else ():
            yield from _check_object(data, known)


def _check_object(data: Any, known: Known) -> Iterator[Deprecation]:
    """Yield what is deprecated in an object; it may have any form."""
    fields = as_mapping(data)
    version, kind = fields.get("apiVersion"), fields.get("kind")
    if as_text(version) == API_VERSION:
        framework = as_mapping(fields.get("spec")).get("framework")
        if isinstance(framework, TracedScalar):
            reason = describe_framework(as_text(framework), known.kinds, known.clusters)
            yield from [Deprecation(framework.location, reason)] if reason else []
        return
    reason = describe_kind(as_text(version), as_text(kind), known.kinds, known.clusters)
    # The version is at fault if another one of the kind is served, which the reason then names.
    node = version if "use `" in reason else kind
    if reason and isinstance(node, TracedScalar):
        yield Deprecation(node.location, reason)
