"""The fields and values of jobgen's own formats: jobs, overlays, teams, tests, settings and kind descriptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from jobgen.features.editor.completion.schema_nodes import (
    SchemaNode,
    list_forms,
    list_types,
    read_definitions,
    read_pointers,
    walk_path,
)
from jobgen.model.path import Step
from jobgen.render.config import complete_schemas
from jobgen.repo.root import SETTINGS
from jobgen.schema.types_of_release import Types
from jobgen.spec.frameworks import Frameworks

_KINDS = {"TrainingJob": "trainingjob", "Overlay": "overlay", "Team": "team", "JobTests": "jobtests"}
_FOLDERS = {"jobs/": "trainingjob", "overlays/": "overlay", "teams/": "team", "tests/": "jobtests"}
_PARTS_OF_PODS = {
    "a container": ("core_v1.Container",),
    "a job": ("core_v1.PodSpec", "core_v1.Container"),
    "a role": ("core_v1.PodSpec", "core_v1.Container"),
    "a volume": ("core_v1.Volume",),
    "an env entry": ("core_v1.EnvVar",),
    "resources": ("core_v1.ResourceRequirements",),
}
"""By the title of a part of a job: the types of Kubernetes whose fields it takes over as they are."""
_WHOLE_TYPES = {
    "env": "core_v1.EnvVarSource",
    "managedJobsNamespaceSelector": "meta_v1.LabelSelector",
    "podTemplate": "core_v1.PodTemplateSpec",
}
"""Fields of jobgen that are a type of Kubernetes; below `env`, values from elsewhere."""


_TESTED: Mapping[Step, tuple[Step, ...]] = {"given": (), "change": ("spec",)}
"""Fields of a test that are a job, or a part of one."""


def find_format(file: str, kind: str) -> str:
    """Return the format of a document by its kind and the path of its file; empty if it is a manifest."""
    if file == SETTINGS:
        return "settings"
    if file.startswith("schemas/") and file.count("/") > 1:
        return "kind"
    if kind:
        return _KINDS.get(kind, "")
    return next((name for folder, name in _FOLDERS.items() if file.startswith(folder)), "")


@lru_cache(maxsize=16)
def read_format(name: str, frameworks: Frameworks) -> tuple[SchemaNode, ...]:
    """Return the schema of one of jobgen's formats."""
    file = f"{name}_v1.json"
    schemas = complete_schemas(frameworks)
    return list_forms(SchemaNode(schemas[file], read_pointers(schemas, file)))


def find_forms(
    name: str, frameworks: Frameworks, path: Sequence[Step], manifests: Sequence[SchemaNode] = ()
) -> tuple[SchemaNode, ...]:
    """Return the schema at a path. `manifests` has those of the objects that `manifest` is merged into."""

    def refine(parent: SchemaNode, step: Step, form: SchemaNode) -> Sequence[SchemaNode]:
        if step == "manifest" and parent.title in ("a job", "a patch"):
            return manifests
        if parent.title == "a test" and step in _TESTED:
            return walk_path(read_format("trainingjob", frameworks), _TESTED[step])
        if list_types([form]) == ("array",) and isinstance(form.schema.get("items"), dict):
            return (form, *find_pod_types(parent, step)) if not form.schema["items"].keys() - {"type"} else (form,)
        is_open = list_types([form]) == ("object",) and not form.schema.keys() & {"properties", "additionalProperties"}
        return find_pod_types(parent, step) or (form,) if is_open else (form,)

    return walk_path(read_format(name, frameworks), path, refine)


def find_pod_types(parent: SchemaNode, step: Step) -> tuple[SchemaNode, ...]:
    """Return the types of Kubernetes that a field of a job has."""
    owners = _PARTS_OF_PODS.get(parent.title, ())
    found = [form for owner in owners for form in walk_path(_read_type(owner), (step,))]
    name = _WHOLE_TYPES.get(parent.title) or _WHOLE_TYPES.get(str(step))
    return (*found, *(_read_type(name) if name and not found else ()))


@lru_cache(maxsize=64)
def _read_type(name: str) -> tuple[SchemaNode, ...]:
    types: Mapping[str, Any] = Types("", in_crd=True)
    node = read_definitions(types)(name)
    return list_forms(node) if node else ()
