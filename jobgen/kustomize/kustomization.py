"""Read one kustomization file: its fields as kustomize accepts them, and findings for those that it refuses."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from jobgen.kustomize.tree import SourceTree
from jobgen.model.data import Location, Node, TracedScalar, location_of, value_of
from jobgen.model.finding import Finding, Fix, FixStep, Severity, TextEdit, add_article
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import find_closest, find_key, suggest_rename, suggest_value, takes_any_name
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
        found = _error(message, _locate(fields["kind"]))
        steps, is_safe = suggest_value(fields["kind"], ["Kustomization", COMPONENT])
        findings.append(_add_fix(found, steps, is_safe=is_safe))
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


_OTHER_WORDS = {
    ("images", "tag"): "newTag",
    ("images", "image"): "name",
    ("images", "newImage"): "newName",
    ("images", "repository"): "newName",
    ("patches", "file"): "path",
    ("replicas", "replicas"): "count",
    ("configMapGenerator", "file"): "files",
    ("configMapGenerator", "data"): "literals",
    ("secretGenerator", "file"): "files",
    ("secretGenerator", "data"): "literals",
    ("secretGenerator", "stringData"): "literals",
}
"""The fields that are meant by other words for them."""


def _check_fields(data: Any, known: dict[str, Any], of: str, findings: list[Finding]) -> dict[str, Any]:
    """Return the fields of a mapping that are valid, by their documented names: kustomize ignores case."""
    folded = {name.lower(): name for name in known}
    checked: dict[str, Any] = {}
    for key, value in data.items():
        name = folded.get(key.lower())
        if name is None:
            closest = _OTHER_WORDS.get((of.strip("`"), str(key)), "") or find_closest(key, list(known))
            advice = f"did you mean `{closest}`?" if closest else "remove it"
            found = _error(f"{quote(key)} is not a field of {of}; {advice}", _locate(key))
            steps, is_safe = suggest_rename(key, list(known), data, takes_any_name)
            findings.append(_add_fix(found, steps, is_safe=is_safe))
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
            findings.append(_error(f"`{name}` must be a list; write {_show_items(node, name)}", _locate(node)))
            return None
        checked = [_check(item, wanted[0], name, findings) for item in node]
        return [item for item in checked if item is not None]
    return (_check_mapping if isinstance(wanted, dict) else _check_scalar)(node, wanted, name, findings)


def _check_mapping(node: Node, wanted: dict[str, Any], name: str, findings: list[Finding]) -> Any:
    if not isinstance(node, dict):
        path = value_of(node)
        if name == "patches" and isinstance(path, str) and "\n" not in path:
            _refuse(node, name, f"a mapping; write {quote(f'- path: {path}')}", findings)
            return {"path": node}
        example = _EXAMPLES.get(name, "") or _show_pairs(node, wanted, name)
        return _refuse(node, name, f"a mapping{example and f'; write {example}'}", findings)
    if "*" in wanted:
        pairs = {key: _check(value, wanted["*"], f"{name}.{key}", findings) for key, value in node.items()}
        return {key: value for key, value in pairs.items() if value is not None}
    return _check_fields(node, wanted, f"`{name}`", findings)


def _check_scalar(node: Node, wanted: type, name: str, findings: list[Finding]) -> Any:
    value = value_of(node)
    if value is None and wanted is str:
        return None
    if not isinstance(node, (dict, list)) and type(value) is wanted:
        return node
    shown = _EXAMPLES.get(name, "") if isinstance(node, dict) else ""
    if wanted is str and not isinstance(node, (dict, list)):
        shown = quote(f'"{text_of(node)}"')
    elif wanted is str and isinstance(node, list) and len(node) == 1 and text_of(node[0]):
        shown = f"`{name}: {text_of(node[0])}`"
    if name == "patch" and isinstance(node, (dict, list)):
        findings.append(_error("`patch` must be text; write `patch: |-`, and keep the lines below it", _locate(node)))
        return TracedScalar("", location_of(node) or Location(""), "")
    _refuse(node, name, f"{_TYPE_NAMES[wanted]}{shown and f'; write {shown}'}", findings)
    if wanted is str and isinstance(node, TracedScalar):
        findings[-1] = _add_fix(findings[-1], (FixStep("quote", node),), is_safe=True)
    return None


def _show_items(node: Node, name: str) -> str:
    """Return what to write for a list: the pairs of a generator are text, and may be secrets."""
    if isinstance(node, dict) and name == "literals":
        return f"`{name}: [{', '.join(f'{key}=…' for key in node)}]`"
    if isinstance(node, dict) and name == "labels" and all(map(text_of, node.values())):
        pairs = ", ".join(f"{key}: {text_of(each)}" for key, each in node.items())
        return f"`labels: [{{pairs: {{{pairs}}}}}]`"
    path = text_of(node)
    return f"`{name}: [{path}]`" if path and "\n" not in path and "`" not in path else "each value after `- `"


def _show_pairs(node: Node, wanted: Mapping[str, Any], name: str) -> str:
    """Return labels that are written as a list of `key=value`, as a mapping."""
    pairs = [text_of(item).partition("=") for item in node] if isinstance(node, list) and "*" in wanted else []
    is_shown = bool(pairs) and all(sign and key and value for key, sign, value in pairs)
    return f"`{name}: {{{', '.join(f'{key}: {value}' for key, _, value in pairs)}}}`" if is_shown else ""


def _add_fix(found: Finding, steps: Iterable[FixStep], *, is_safe: bool) -> Finding:
    """Return a finding with the fix that some steps are."""
    edits = tuple(
        TextEdit(op, place, None if value is None else str(value), was=str(node) if op == "rename" else value_of(node))
        for op, node, value, _ in steps
        if (place := location_of(node))
    )
    return found._replace(fix=Fix(edits, is_safe)) if edits else found


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
