"""An object that does not fit."""

import json
from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.argocd_annotations import SYNC_OPTIONS, split_annotation
from jobgen.k8s.objects import Manifest, as_mapping, as_text
from jobgen.model.data import Data, untraced

_APPLIED = 256 * 1024
_STORED = 1536 * 1024
# Only texts make an object large; what has fewer characters of them is not measured.
_MUCH = 100_000


@rule("manifest", WARNING)
def object_too_large(manifest: Manifest) -> Iterator[Violation]:
    """An object of more than 256 KiB, which client-side apply cannot take, or of more than 1.5 MiB.

    `kubectl apply` and Argo CD keep the whole object in an annotation of at most 256 KiB; etcd takes 1.5 MiB at most.
    Mount data and scripts from a volume or put them into the image; else apply on the server's side.
    """
    said = sum(len(container.search_text) for role in manifest.roles for container in role.pod.containers)
    if said < _MUCH and sum(len(as_text(value)) for value in _data(manifest)) < _MUCH:
        return
    longest = max(_texts(manifest), key=lambda leaf: len(as_text(leaf)), default=None)
    written = json.dumps(untraced(manifest.object), ensure_ascii=False, separators=(",", ":"))
    size = len(written.encode(errors="replace"))
    if size > _STORED:
        yield Violation(longest, f"the object has {size // 1024} KiB, and etcd takes 1536 KiB at most", severity=ERROR)
    elif size > _APPLIED and not _is_applied_by_server(manifest):
        yield Violation(longest, f"the object has {size // 1024} KiB, and client-side apply takes 256 KiB at most")


def _is_applied_by_server(manifest: Manifest) -> bool:
    return manifest.cluster.gitops == "flux" or "ServerSideApply=true" in split_annotation(manifest, SYNC_OPTIONS)


def _texts(manifest: Manifest) -> Iterator[Data]:
    """Where long texts stand: the words of containers, and the data of ConfigMaps and Secrets."""
    for role in manifest.roles:
        for container in role.pod.containers:
            yield from container.command_line
    yield from _data(manifest)


def _data(manifest: Manifest) -> Iterator[Data]:
    for field in ("data", "binaryData", "stringData"):
        yield from as_mapping(manifest.object.get(field)).values()
