"""Where Applications of Argo CD, and those that ApplicationSets write, get their manifests from."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from jobgen.k8s.nodes import as_list, as_mapping, get_path
from jobgen.model.data import Location, Node, TracedList, TracedScalar, location_of, text_of, untraced, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.recognize.gitops_objects import ARGO, GitOpsObject, GitOpsTree
from jobgen.yamlio.read import read_shared

_AS_JSON = " | toJson"
"""What follows a list in an expression for its text."""
_EXPRESSION = lazy_pattern(r"\{\{([^{}\n]*+)\}\}")
_PIPE = lazy_pattern(r"\s*\|\s*toJson\Z")
_SEGMENT = lazy_pattern(r"index\s+\.path\.segments\s+(\d+)\Z")
_MAX_ELEMENTS = 200
"""The Applications of one ApplicationSet."""

_WHOLE = "\0"
"""The name of no parameter: where it is, all parameters are known."""

Parameters = Mapping[str, str]


class _Written(str):
    """A parameter as an element of a list has it, with its location."""

    __slots__ = ("location",)
    location: Location | None


class ArgoSource(NamedTuple):
    """A source of an Application."""

    owner: GitOpsObject
    """The Application, or the ApplicationSet that writes it."""
    app: str
    namespace: str
    """Where it installs its objects."""
    data: Mapping[str, Any]
    siblings: Sequence[Mapping[str, Any]]
    """All sources of the Application."""

    @property
    def url(self) -> str:
        """The address of its repository."""
        return text_of(self.data.get("repoURL"))

    @property
    def path(self) -> str:
        """The folder in the repository; empty for a chart of a chart repository."""
        return text_of(self.data.get("path"))

    @property
    def revision(self) -> str:
        """The branch, tag or commit."""
        return text_of(self.data.get("targetRevision"))

    @property
    def is_head(self) -> bool:
        """Return True if the files are those of the branch that is linted, as far as names of branches tell."""
        return self.revision in ("", "HEAD", "main", "master")

    @property
    def helm(self) -> Mapping[str, Any]:
        """How helm renders it."""
        return as_mapping(self.data.get("helm"))


def is_open(text: str) -> bool:
    """Return True if a text has a variable whose value is not known."""
    return "{{" in text or "${" in text


def list_sources(tree: GitOpsTree) -> Iterator[ArgoSource]:
    """Yield the sources of all Applications."""
    for owner in tree.list_kind(ARGO, "Application"):
        yield from _read_application(owner, owner.name, owner.spec)
    for owner in tree.list_kind(ARGO, "ApplicationSet"):
        template = as_mapping(owner.spec.get("template"))
        for parameters in islice(_list_elements(tree, owner), _MAX_ELEMENTS):
            filled = fill(template, parameters)
            name = text_of(get_path(filled, "metadata", "name"))
            yield from _read_application(owner, name, as_mapping(filled.get("spec")))


def has_too_many(tree: GitOpsTree, owner: GitOpsObject) -> bool:
    """Return True if an ApplicationSet writes more Applications than are read."""
    return len(_list_elements(tree, owner)) > _MAX_ELEMENTS


def _read_application(owner: GitOpsObject, name: str, spec: Mapping[str, Any]) -> Iterator[ArgoSource]:
    single = as_mapping(spec.get("source"))
    sources = [each for each in map(as_mapping, as_list(spec.get("sources"))) if each] or ([single] if single else [])
    hydrated = as_mapping(as_mapping(spec.get("sourceHydrator")).get("drySource"))
    sources += [hydrated] if hydrated else []
    namespace = text_of(get_path(spec, "destination", "namespace"))
    for each in sources:
        yield ArgoSource(owner, name, namespace, each, sources)


def locate_values(tree: GitOpsTree, source: ArgoSource, text: str) -> str | None:
    """Return the path of a values file from the linted folder; None if it is not in this repository for certain."""
    if text.startswith("$"):
        name, _, rest = text[1:].partition("/")
        named = [each for each in source.siblings if text_of(each.get("ref")) == name]
        place, owner = rest, source._replace(data=named[0]) if named else None
    else:
        folder = source.path.strip("/")
        is_inside = folder and not is_open(folder)
        place = text.lstrip("/") if text.startswith("/") else posixpath.join(folder, text)
        owner = source if is_inside and tree.exists(tree.find_path(folder) or "") else None
    if owner is None or not tree.is_own(owner.url) or not owner.is_head:
        return None
    return tree.find_path(place)


# Generators


def _list_elements(tree: GitOpsTree, owner: GitOpsObject) -> list[Parameters]:
    """Return the parameters of each Application; unknown ones are left out."""
    # A patch of a template is text with statements.
    generators = [] if owner.spec.get("templatePatch") else as_list(owner.spec.get("generators"))
    found: list[Parameters] = []
    for generator in map(as_mapping, generators):
        found += _generate(tree, generator)
        if len(found) > _MAX_ELEMENTS:
            break
    return found if generators else [{}]


_KNOWN = frozenset(("list", "git", "matrix", "merge"))


def _generate(tree: GitOpsTree, generator: Mapping[str, Any]) -> list[Parameters]:
    names = [name for name in generator if name != "selector"]
    settings = as_mapping(generator[names[0]]) if len(names) == 1 and names[0] in _KNOWN else {}
    # A generator may change the template of its Applications.
    found = _GENERATORS[names[0]](tree, settings) if settings and not settings.get("template") else [{}]
    selector = as_mapping(generator.get("selector"))
    return [each for each in found if _may_match(selector, each)] if selector else found


def _may_match(selector: Mapping[str, Any], parameters: Parameters) -> bool:
    """Return True if a selector selects parameters, or if it is about one that is not known."""
    checks: list[tuple[str, str, Sequence[Node]]] = [
        (key, "In", [value]) for key, value in as_mapping(selector.get("matchLabels")).items()
    ]
    for each in map(as_mapping, as_list(selector.get("matchExpressions"))):
        checks.append((text_of(each.get("key")), text_of(each.get("operator")), as_list(each.get("values"))))
    is_known = _WHOLE in parameters
    for key, operator, nodes in checks:
        value, values = parameters.get(str(key)), [text_of(node) for node in nodes]
        if (value is None and not is_known) or is_open(value or ""):
            continue
        is_in = value is not None and (operator in ("Exists", "DoesNotExist") or value in values)
        if is_in is operator.startswith(("Not", "DoesNot")):
            return False
    return True


def _generate_from_list(_: GitOpsTree, listed: Mapping[str, Any]) -> list[Parameters]:
    elements = as_list(listed.get("elements"))
    if "elementsYaml" in listed:
        text = text_of(listed["elementsYaml"])
        found = None if is_open(text) else _read_list(text)
        if found is None:
            return [{}]
        elements = [*elements, *found]
    return [{**dict(_flatten("", each)), _WHOLE: ""} for each in map(as_mapping, elements)]


def _read_list(text: str) -> list[Any] | None:
    """Return the items of a text that is a list; None if it is none."""
    bare = text.strip().removeprefix("---").strip()
    # A list by itself is no document here.
    document = f"elements: {bare}" if bare.startswith("[") else f"elements:\n{bare}"
    read = read_shared(document.encode("utf-8", "surrogatepass"), "").documents
    found = read[0].data.get("elements") if len(read) == 1 else None
    return found if isinstance(found, list) else None


def _combine(tree: GitOpsTree, matrix: Mapping[str, Any]) -> list[Parameters]:
    combined: list[Parameters] = [{_WHOLE: ""}]
    for each in as_list(matrix.get("generators")):
        # A later generator may use the parameters of those before it.
        pairs = ((known, own) for known in combined for own in _generate(tree, as_mapping(fill(each, known))))
        combined = [_join(known, own) for known, own in islice(pairs, _MAX_ELEMENTS + 1)]
    return combined


def _join(one: Parameters, other: Parameters) -> Parameters:
    joined = {**one, **other}
    if not (_WHOLE in one and _WHOLE in other):
        joined.pop(_WHOLE, None)
    return joined


def _merge(tree: GitOpsTree, merge: Mapping[str, Any]) -> list[Parameters]:
    """Return the parameters of the first generator, with those of the others that have the same keys over them."""
    first, *others = [_generate(tree, as_mapping(each)) for each in as_list(merge.get("generators"))] or [[{}]]
    keys = [text_of(key) for key in as_list(merge.get("mergeKeys"))]
    found = [dict(each) for each in first]
    for over in (each for several in others for each in several):
        for own in found:
            if all(key in own and own[key] == over.get(key) for key in keys):
                own.update(over)
    # What is not known of a generator may be over any of these.
    if any(_WHOLE not in each for several in (first, *others) for each in several):
        return [{key: own[key] for key in keys if key in own} for own in found]
    return list(found)


def _generate_from_git(tree: GitOpsTree, git: Mapping[str, Any]) -> list[Parameters]:
    if not tree.may_be_own(text_of(git.get("repoURL"))):
        return [{}]
    directories = [as_mapping(each) for each in as_list(git.get("directories"))]
    files = [as_mapping(each) for each in as_list(git.get("files"))]
    above = f"{tree.around.above}/" if tree.around.above else ""
    paths = [f"{above}{path}" for path in tree.around.paths if not path.startswith("../")]
    values = dict(_flatten("values", untraced(as_mapping(git.get("values")))))
    found: list[Parameters] = []
    if directories:
        folders = sorted({folder for path in paths for folder in _list_above(path)})
        wanted = [_match(text_of(each.get("path"))) for each in directories if not value_of(each.get("exclude"))]
        refused = [_match(text_of(each.get("path"))) for each in directories if value_of(each.get("exclude"))]
        for folder in folders:
            if any(match(folder) for match in wanted) and not any(match(folder) for match in refused):
                found.append({**_describe(folder), **values, _WHOLE: ""})
    left_out = [_match(text_of(each.get("path"))) for each in files if value_of(each.get("exclude"))]
    for pattern in (text_of(each.get("path")) for each in files if not value_of(each.get("exclude"))):
        for path in filter(_match(pattern), paths):
            if not any(match(path) for match in left_out):
                content = tree.read(tree.find_path(path) or path).content
                described = {**_describe(posixpath.dirname(path)), **values}
                found += ({**own, **described, **whole} for own, whole in _read_parameters(content, path))
    return [{key: _replace(value, each) for key, value in each.items()} for each in found]


def _read_parameters(content: bytes, path: str) -> Iterator[tuple[Parameters, Parameters]]:
    """Yield the parameters of a file, those of each item if it is a list, and whether they are all that are known."""
    documents = read_shared(content, path).documents
    # Argo CD reads the first document.
    items = [each.data for each in documents[:1]] or _read_list(content.decode("utf-8", "replace"))
    if items is None:
        yield {}, {}
    for item in items or ():
        yield dict(_flatten("", untraced(item))), {_WHOLE: ""}


_GENERATORS: Mapping[str, Callable[[GitOpsTree, Mapping[str, Any]], list[Parameters]]] = {
    "list": _generate_from_list,
    "git": _generate_from_git,
    "matrix": _combine,
    "merge": _merge,
}


def _match(pattern: str) -> Callable[[str], Any]:
    """Return a function that matches paths as Argo CD does: `*` stands for a part of one name."""
    text = re.escape(pattern.strip("/")).replace(r"\*\*/", "(?:[^/]+/)*").replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
    return re.compile(rf"{text}\Z").match


def _list_above(path: str) -> Iterator[str]:
    names = path.split("/")[:-1]
    yield from ("/".join(names[: count + 1]) for count in range(len(names)))


def _describe(folder: str) -> dict[str, str]:
    names = folder.split("/")
    described = {
        "path": folder,
        "path.path": folder,
        "path.basename": names[-1],
        "path.basenameNormalized": re.sub(r"[^a-z0-9.-]", "-", names[-1].lower()),
    }
    for at, name in enumerate(names):
        described |= {f"path[{at}]": name, f"path.segments.{at}": name}
    return described


def _flatten(prefix: str, fields: Any) -> Iterator[tuple[str, str]]:
    for key, value in fields.items() if isinstance(fields, dict) else ():
        name = f"{prefix}.{key}" if prefix else str(key)
        plain = value_of(value)
        if isinstance(value, dict):
            yield from _flatten(name, value)
        elif isinstance(value, list):
            yield f"{name}{_AS_JSON}", json.dumps(untraced(value), default=str)
        elif isinstance(plain, (str, int, float, bool)):
            text = _Written(str(plain).lower() if isinstance(plain, bool) else str(plain))
            text.location = location_of(value)
            yield name, text


def fill(tree: Any, parameters: Parameters) -> Any:
    """Return a template with parameters in place of expressions; those without a known value stay."""
    if isinstance(tree, dict):
        return {key: fill(value, parameters) for key, value in tree.items()} if tree else tree
    if type(tree) is TracedList:
        items = [fill(item, parameters) for item in tree]
        return TracedList(items, tree.location, tree.layer, item_locations=tree.item_locations)
    if type(tree) is TracedScalar and isinstance(tree.value, str) and "{{" in tree.value:
        filled = _replace(tree.value, parameters)
        # A value that is nothing but a parameter was written where the parameter is.
        place = filled.location if isinstance(filled, _Written) else None
        return TracedScalar(str(filled), place or tree.location, tree.layer, tree.overridden)
    return tree


def _replace(text: str, parameters: Parameters) -> str:
    def find(match: re.Match[str]) -> str:
        # A dash beside the braces trims the text around the expression.
        expression = match[1].removeprefix("-").removesuffix("-").strip()
        segment = _SEGMENT.match(expression)
        name = f"path.segments.{segment[1]}" if segment else expression.removeprefix(".")
        return parameters.get(_PIPE.sub(_AS_JSON, name), match[0])

    whole = _EXPRESSION.fullmatch(text.strip())
    return find(whole) if whole else _EXPRESSION.sub(find, text) if "{{" in text else text
