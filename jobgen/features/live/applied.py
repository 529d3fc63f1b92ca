"""What an apply sees of a live object: the fields of the manifest, and the lists that it replaces as a whole.

A client-side apply merges the lists of Kubernetes' own kinds by their keys, and sends other lists whole if they differ.
A server-side apply merges a list by its keys if the schema has some.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from jobgen.k8s.kinds import BUILTIN_GROUPS
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.config import ProjectConfig
from jobgen.repo.files import MANIFEST_SUFFIXES, read_file
from jobgen.repo.walk import walk_files
from jobgen.spec.merge import LIST_KEYS

_KEYS = tuple(dict.fromkeys(keys[0] for keys in LIST_KEYS.values()))
_OPTIONS = "argocd.argoproj.io/sync-options"
_OPTION = "ServerSideApply=true"
_MOST_REFERENCES = 8
_GENERATED = "gitops"
"""The folder in which the manifests of engines are."""


class Applied(NamedTuple):
    """How the objects of an environment are applied."""

    on_server: bool

    def project(self, live: Any, wanted: Any, group: str, schema: Mapping[str, Any] | None) -> Any:
        """Return the part of a live object that the manifest sets, and the items that an apply would remove."""
        options = as_text(as_mapping(as_mapping(wanted.get("metadata")).get("annotations")).get(_OPTIONS))
        on_server = self.on_server or _OPTION in (option.strip() for option in options.split(","))
        if group in BUILTIN_GROUPS:
            return _Lists(LIST_KEYS.keys(), {}).project(live, wanted, {})
        root = schema if on_server and schema else {}
        return _Lists((), root).project(live, wanted, root)


class _Lists(NamedTuple):
    """Which lists an apply merges, so that items of others stay: by the name of the field, or by the schema."""

    fields: Collection[str]
    root: Mapping[str, Any]

    def project(self, live: Any, wanted: Any, schema: Mapping[str, Any], field: str = "") -> Any:
        schema = self._resolve(schema)
        if isinstance(live, dict) and isinstance(wanted, dict):
            return {
                key: self.project(live[key], value, self._find_child(schema, str(key)), str(key))
                for key, value in wanted.items()
                if live.get(key) is not None
            }
        if isinstance(live, list) and isinstance(wanted, list):
            return self._project_list(live, wanted, schema, field)
        return live

    def _project_list(self, live: list[Any], wanted: list[Any], schema: Mapping[str, Any], field: str) -> list[Any]:
        keeps_others = field in self.fields or schema.get("x-kubernetes-list-type") in ("map", "set")
        items = schema.get("items") or {}
        key = next((key for key in _KEYS if _have_key(live, key) and _have_key(wanted, key)), "")
        if key:
            known = {str(item[key]): item for item in live}
            common = [
                self.project(known.pop(str(item[key])), item, items) for item in wanted if str(item[key]) in known
            ]
            return common if keeps_others else [*common, *known.values()]
        if keeps_others and not any(isinstance(item, (dict, list)) for item in live):
            return [item for item in live if item in wanted]
        if len(live) == len(wanted):
            return [self.project(*pair, items) for pair in zip(live, wanted, strict=True)]
        return live

    def _find_child(self, schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        properties = schema.get("properties") or {}
        found = properties.get(key, schema.get("additionalProperties"))
        return found if isinstance(found, Mapping) else {}

    def _resolve(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the schema that a reference names; references may follow each other."""
        for _ in range(_MOST_REFERENCES):
            if "$ref" not in schema:
                return schema
            definitions, name = self.root.get("$defs", {}), str(schema["$ref"]).rpartition("/")[2]
            schema = definitions.get(name, {})
        return {}


def _have_key(items: Sequence[Any], key: str) -> bool:
    return bool(items) and all(isinstance(item, dict) and key in item for item in items)


def find_apply(config: ProjectConfig, env: str) -> Applied:
    """Return how an environment is applied: on the server by Flux, and by Argo CD if its applications say so."""
    engine = config.environment(env, []).cluster.gitops
    if engine == "argocd":
        files = walk_files(config.root, _GENERATED, MANIFEST_SUFFIXES)
        return Applied(any(_OPTION.encode() in read_file(each).content for each in files))
    return Applied(engine == "flux")
