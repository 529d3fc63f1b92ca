"""Objects that are too large to apply or store."""

import json
from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.argocd_annotations import uses_server_side_apply
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node, untraced

_APPLIED = 256 * 1024
_STORED = 1536 * 1024
# Only long strings make an object large; an object with fewer characters in them is not measured.
_MEASURED_FROM = 100_000


@rule("manifest", WARNING)
def object_too_large(manifest: Manifest) -> Iterator[Violation]:
    """An object larger than 256 KiB, the limit of client-side apply, or 1.5 MiB, the limit of etcd.

    `kubectl apply` and Argo CD keep the whole object in an annotation of at most 256 KiB, and etcd stores at most 1.5
    MiB. An object above the limit of etcd is an error.

    Mount data and scripts from a volume, or put them into the image. Above 256 KiB, server-side apply also works.
    """
    characters = sum(len(container.search_text) for pod in manifest.pods for container in pod.containers)
    if characters < _MEASURED_FROM and sum(len(as_text(value)) for value in _data_values(manifest)) < _MEASURED_FROM:
        return
    longest = max(_long_strings(manifest), key=lambda leaf: len(as_text(leaf)), default=None)
    serialized = json.dumps(untraced(manifest.object), ensure_ascii=False, separators=(",", ":"))
    size = len(serialized.encode(errors="replace"))
    if size > _STORED:
        message = f"the object has {size // 1024} KiB, but etcd stores at most 1536 KiB; move long strings to a volume"
        yield Violation(longest, message, severity=ERROR)
    elif size > _APPLIED and not uses_server_side_apply(manifest):
        message = f"the object has {size // 1024} KiB, but client-side apply accepts at most 256 KiB"
        message += "; move long strings to a volume or use server-side apply"
        yield Violation(longest, message)


def _long_strings(manifest: Manifest) -> Iterator[Node]:
    """Yield the strings that may be long: commands and arguments, and the data of ConfigMaps and Secrets."""
    for pod in manifest.pods:
        for container in pod.containers:
            yield from container.command_line
    yield from _data_values(manifest)


def _data_values(manifest: Manifest) -> Iterator[Node]:
    for field in ("data", "binaryData", "stringData"):
        yield from as_mapping(manifest.object.get(field)).values()
