"""What a rendered tree says of itself: a kustomization, attributes for Git, and digests of what it was made from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from jobgen import __version__
from jobgen.model.data import Data, Location, Plain, untraced, value_of
from jobgen.pipeline import config
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.parallel import parallel_map
from jobgen.render.build import is_spec, split_list
from jobgen.repo import layout
from jobgen.repo.lock import ATTRIBUTES, KUSTOMIZATION, Origin, compute_digest
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_yaml

Place = tuple[str, int, int]
"""Where a job stands: its file, the document there, and the item if that is a List."""

_ATTRIBUTES = """\
# Written by jobgen: reviewers need not read these files, and their lines end alike everywhere.
*.yaml text eol=lf linguist-generated
*.json text eol=lf linguist-generated
.gitattributes text eol=lf linguist-generated
"""


def companions(env: str, objects: Sequence[str]) -> dict[str, str]:
    """The files beside the objects of an environment, which Flux, kustomize and Git read."""
    kustomization: dict[str, Plain] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        **({"metadata": {"name": env}} if env else {}),
        "sortOptions": {"order": "fifo"},
        "resources": list(objects),
    }
    return {ATTRIBUTES: _ATTRIBUTES, KUSTOMIZATION: to_yaml(kustomization)}


def origins(project: ProjectConfig, made: Mapping[str, Mapping[str, Place]]) -> dict[str, Origin]:
    """By environment, what its files were made from; `made` says which job each file is of.

    Jobs and layers count as what they say: a comment, another order of keys, or another file changes nothing.
    """
    files = {place[0] for places in made.values() for place in places.values()}
    entries = [entry for entry in layout.find_jobs(project.root) if entry.path in files]
    found: dict[Place, str] = {}
    for part in parallel_map(entries, lambda share: [_digests(share)]):
        found |= part
    own = _own_kinds(project)
    return {
        env: Origin(
            __version__,
            _digest([[untraced(list(project.overlays[name].specs)) for name in lineage(project, env)], own]),
            {path: found[place] for path, place in places.items() if place in found},
        )
        for env, places in made.items()
        if places
    }


def lineage(project: ProjectConfig, env: str) -> tuple[str, ...]:
    """An overlay and all that it extends, by name."""
    known: list[str] = []
    pending = [env]
    while pending:
        name = pending.pop()
        if name in project.overlays and name not in known:
            known.append(name)
            pending += [
                str(value_of(parent)) for spec in project.overlays[name].specs for parent in spec.get("extends", ())
            ]
    return tuple(sorted(known))


def place_of(location: Location, position: int, item: int) -> Place:
    """The place of a rendered object's job."""
    return location.file, position, item


def _digests(entries: Iterable[layout.FileEntry]) -> dict[Place, str]:
    return {
        (entry.path, position, item): _digest(data)
        for entry in entries
        for position, document in enumerate(read(layout.read_file(entry).content, entry.path).documents)
        for item, data in _items(document.data)
    }


def _items(data: Data) -> Iterable[tuple[int, Data]]:
    """The jobs of a document, numbered as they were when they were rendered: a spec has no number."""
    return [(-1, data)] if is_spec(data) else enumerate(split_list(data))


def _own_kinds(project: ProjectConfig) -> list[Data]:
    """The kind descriptions of a repository; those that travel with jobgen are its version's."""
    if layout.find_shipped("schemas").parent == project.root:
        return []
    return [
        document
        for file in layout.read_own_kinds(project.root)
        for document in config.read_valid_documents(file, "kind", [])
    ]


def _digest(data: Data) -> str:
    return compute_digest(json.dumps(data, sort_keys=True, ensure_ascii=False, default=str))
