"""Read one kustomization file: its fields as kustomize accepts them, and findings for those that it refuses."""

from __future__ import annotations

import posixpath
from functools import lru_cache
from typing import Any

from jobgen.kustomize.tree import SourceTree
from jobgen.model.data import Location, Node, TracedScalar, location_of, value_of
from jobgen.model.finding import Finding, Severity, add_article
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import find_closest, find_key
from jobgen.yamlio.read import Source, read
from jobgen.yamlio.read.scalars import quote

GROUP = "kustomize.config.k8s.io"
COMPONENT = "Component"

_TEXTS, _PAIRS = [str], {"*": str}
_RESOURCE = dict.fromkeys(("group", "version", "kind", "name", "namespace"), str)
_SELECTOR = {**_RESOURCE, "annotationSelector": str, "labelSelector": str}
_PATCH_OPTIONS = {"allowNameChange": bool, "allowKindChange": bool}
_PATCHES = [{"path": str, "patch": str, "target": _SELECTOR, "options": _PATCH_OPTIONS}]
_GENERATOR_OPTIONS = {"labels": _PAIRS, "annotations": _PAIRS, "disableNameSuffixHash": bool, "immutable": bool}
_GENERATOR = {
    **dict.fromkeys(("namespace", "name", "behavior", "env"), str),
    **dict.fromkeys(("literals", "files", "envs"), _TEXTS),
    "options": _GENERATOR_OPTIONS,
}
_IMAGES = [dict.fromkeys(("name", "newName", "newTag", "tagSuffix", "digest"), str)]
_FIELD_OPTIONS = {"delimiter": str, "index": int, "encoding": str, "create": bool}
REPLACEMENT = {
    "source": {**_RESOURCE, "fieldPath": str, "options": _FIELD_OPTIONS},
    "sourceValue": str,
    "targets": [{"select": _SELECTOR, "reject": [_SELECTOR], "fieldPaths": _TEXTS, "options": _FIELD_OPTIONS}],
}
_FIELDS: dict[str, Any] = {
    **dict.fromkeys(("apiVersion", "kind", "namespace", "namePrefix", "nameSuffix"), str),
    **dict.fromkeys(
        """resources bases components crds configurations generators transformers validators buildMetadata
        patchesStrategicMerge""".split(),
        _TEXTS,
    ),
    **dict.fromkeys(("commonLabels", "commonAnnotations", "openapi"), _PAIRS),
    **dict.fromkeys(("patches", "patchesJson6902"), _PATCHES),
    **dict.fromkeys(("images", "imageTags"), _IMAGES),
    **dict.fromkeys(("helmGlobals", "helmCharts", "helmChartInflationGenerator"), object),
    "metadata": {"name": str, "namespace": str, "labels": _PAIRS, "annotations": _PAIRS},
    "labels": [
        {
            "pairs": _PAIRS,
            **dict.fromkeys(("includeSelectors", "includeTemplates", "includeVolumeClaimTemplates"), bool),
            "fields": [{**dict.fromkeys(("group", "version", "kind", "path"), str), "create": bool}],
        }
    ],
    "replicas": [{"name": str, "count": int}],
    "configMapGenerator": [_GENERATOR],
    "secretGenerator": [{**_GENERATOR, "type": str}],
    "generatorOptions": _GENERATOR_OPTIONS,
    "replacements": [{**REPLACEMENT, "path": str}],
    "vars": [{"name": str, "objref": {**_RESOURCE, "apiVersion": str}, "fieldref": {"fieldPath": str}}],
    "sortOptions": {"order": str, "legacySortOptions": {"orderFirst": _TEXTS, "orderLast": _TEXTS}},
}
_TYPE_NAMES = {str: "text", bool: "`true` or `false`", int: "a whole number"}
# What to write where many people write a string.
_EXAMPLES = {
    "patches": "`- path: patch.yaml`",
    "patchesJson6902": "`- path: patch.yaml` with a `target`",
    "labels": "`- pairs: {app: name}`",
    "images": "`- name: image`",
    "components": "the path of a folder",
    "resources": "a path",
}


class Kustomization(NamedTuple):
    """A kustomization file. Its fields have the types that kustomize expects; what has not is left out."""

    path: str
    fields: dict[str, Any]
    """With locations, by the names that kustomize documents."""
    text: str = ""
    findings: tuple[Finding, ...] = ()
    is_other: bool = False
    """True if the file is an object of another program, such as a Kustomization of Flux."""

    @property
    def folder(self) -> str:
        """The folder to which its paths are relative."""
        return posixpath.dirname(self.path)

    @property
    def is_component(self) -> bool:
        """Return True if it changes the objects of the kustomization that lists it."""
        return bool(value_of(self.fields.get("kind")) == COMPONENT)

    def items(self, *names: str) -> list[Any]:
        """Return the items of some lists, in their order."""
        return [item for name in names for item in self.fields.get(name) or ()]

    def locate(self, name: str) -> Location:
        """Return the location of a field."""
        return location_of(find_key(self.fields, name)) or Location(self.path)


@lru_cache(maxsize=128)
def read_traced(content: bytes, file: str) -> Source:
    """Read a file with locations. The last files are kept, so their data must not be changed."""
    return read(content, file, traced=True)


def load(tree: SourceTree, path: str) -> Kustomization:
    """Read a kustomization file."""
    file = tree.read(path)
    if file.finding is not None:
        return Kustomization(path, {}, findings=(_error(file.finding.message, file.finding.location),))
    return _parse(file.content, path)


@lru_cache(maxsize=512)
def _parse(content: bytes, path: str) -> Kustomization:
    source = read_traced(content, path)
    text = content.decode("utf-8", "replace")
    if not source.documents:
        refused = tuple(_error(finding.message, finding.location) for finding in source.findings[:1])
        empty = _error("the kustomization is empty; list `resources`", Location(path))
        return Kustomization(path, {}, text, refused or (empty,))
    data = source.documents[0].data
    api_version = value_of(data.get("apiVersion"))
    if isinstance(api_version, str) and api_version and not api_version.startswith(f"{GROUP}/"):
        return Kustomization(path, {}, text, is_other=True)
    findings: list[Finding] = []
    fields = _check_fields(data, _FIELDS, "a kustomization", findings)
    kind, api_version = value_of(fields.get("kind")), value_of(fields.get("apiVersion"))
    wanted = f"{GROUP}/{'v1alpha1' if kind == COMPONENT else 'v1beta1'}"
    if kind not in (None, "", "Kustomization", COMPONENT):
        message = f"`{kind}` is not a kind of kustomization; write `kind: Kustomization`"
        findings.append(_error(message, _locate(fields["kind"])))
    elif api_version not in (None, "", wanted):
        shown = add_article(kind or "Kustomization")
        message = f"`{api_version}` is not the apiVersion of {shown}; write `apiVersion: {wanted}`"
        findings.append(_error(message, _locate(fields["apiVersion"])))
    if not fields.keys() - {"apiVersion", "kind"} and not findings:
        findings.append(_error("the kustomization is empty; list `resources`", source.documents[0].location))
    return Kustomization(path, fields, text, tuple(findings))


def check_replacements(node: Node, findings: list[Finding]) -> list[Any]:
    """Return the replacements of a file, which is one or a list of them, and report what kustomize refuses."""
    items = node if isinstance(node, list) else [node]
    checked = [_check(item, REPLACEMENT, "replacements", findings) for item in items]
    return [item for item in checked if isinstance(item, dict)]


def _check_fields(data: Any, known: dict[str, Any], of: str, findings: list[Finding]) -> dict[str, Any]:
    """Return the fields of a mapping that are valid, by their documented names: kustomize ignores case."""
    folded = {name.lower(): name for name in known}
    checked: dict[str, Any] = {}
    for key, value in data.items():
        name = folded.get(key.lower())
        if name is None:
            closest = find_closest(key, list(known))
            advice = f"did you mean `{closest}`?" if closest else "remove it"
            findings.append(_error(f"{quote(key)} is not a field of {of}; {advice}", _locate(key)))
        elif value_of(value) is not None:
            valid = _check(value, known[name], name, findings)
            if valid is not None:
                checked[key if key == name else name] = valid
    return checked


def _check(node: Node, wanted: Any, name: str, findings: list[Finding]) -> Any:
    """Return what is valid of a value; None if nothing is."""
    if wanted is object:
        return node
    if isinstance(wanted, list):
        if not isinstance(node, list):
            return _refuse(node, name, "a list; write each value after `- `", findings)
        checked = [_check(item, wanted[0], name, findings) for item in node]
        return [item for item in checked if item is not None]
    if isinstance(wanted, dict):
        if not isinstance(node, dict):
            example = _EXAMPLES.get(name, "")
            return _refuse(node, name, f"a mapping{example and f'; write {example}'}", findings)
        if "*" in wanted:
            pairs = {key: _check(value, wanted["*"], f"{name}.{key}", findings) for key, value in node.items()}
            return {key: value for key, value in pairs.items() if value is not None}
        return _check_fields(node, wanted, f"`{name}`", findings)
    value = value_of(node)
    if value is None and wanted is str:
        return None
    if isinstance(node, (dict, list)) or type(value) is not wanted:
        example = _EXAMPLES.get(name, "") if isinstance(node, dict) else ""
        quoted = quote(f'"{_shown(value)}"') if wanted is str and not isinstance(node, (dict, list)) else example
        return _refuse(node, name, f"{_TYPE_NAMES[wanted]}{quoted and f'; write {quoted}'}", findings)
    return node


def _refuse(node: Node, name: str, wanted: str, findings: list[Finding]) -> None:
    what = f"an item of `{name}`" if name in _EXAMPLES and not isinstance(node, list) else f"`{name}`"
    findings.append(_error(f"{what} must be {wanted}", _locate(node)))


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _locate(node: Node) -> Location:
    return location_of(node) or Location("")


def _error(message: str, location: Location) -> Finding:
    return Finding("invalid-kustomization", "gitops", Severity.ERROR, message, location)


def text_of(node: Node) -> str:
    """Return a scalar as the text that YAML has for it; empty for a missing value or a collection."""
    value = value_of(node)
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, (dict, list)):
        return ""
    return (node.written if type(node) is TracedScalar else "") or _shown(value)
