"""Where Applications of Argo CD, and those that ApplicationSets write, get their manifests from."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.model.data import TracedList, TracedScalar, untraced, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.recognize.gitops_objects import ARGO, GitOpsObject, GitOpsTree
from jobgen.yamlio.read import read_shared

_EXPRESSION = lazy_pattern(r"\{\{([^{}\n]*+)\}\}")
_SEGMENT = lazy_pattern(r"index\s+\.path\.segments\s+(\d+)\Z")
_MAX_ELEMENTS = 200
"""The Applications of one ApplicationSet."""

Parameters = Mapping[str, str]


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
        return as_text(self.data.get("repoURL"))

    @property
    def path(self) -> str:
        """The folder in the repository; empty for a chart of a chart repository."""
        return as_text(self.data.get("path"))

    @property
    def revision(self) -> str:
        """The branch, tag or commit."""
        return as_text(self.data.get("targetRevision"))

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
        # A patch of a template is text with statements.
        elements = [{}] if owner.spec.get("templatePatch") else _list_elements(tree, owner)
        for parameters in islice(elements, _MAX_ELEMENTS):
            filled = fill(template, parameters)
            name = as_text(get_path(filled, "metadata", "name"))
            yield from _read_application(owner, name, as_mapping(filled.get("spec")))


def _read_application(owner: GitOpsObject, name: str, spec: Mapping[str, Any]) -> Iterator[ArgoSource]:
    single = as_mapping(spec.get("source"))
    sources = [each for each in map(as_mapping, as_list(spec.get("sources"))) if each] or ([single] if single else [])
    hydrated = as_mapping(as_mapping(spec.get("sourceHydrator")).get("drySource"))
    sources += [hydrated] if hydrated else []
    namespace = as_text(get_path(spec, "destination", "namespace"))
    for each in sources:
        yield ArgoSource(owner, name, namespace, each, sources)


def locate_values(tree: GitOpsTree, source: ArgoSource, text: str) -> str | None:
    """Return the path of a values file from the linted folder; None if it is not in this repository for certain."""
    if text.startswith("$"):
        name, _, rest = text[1:].partition("/")
        named = [each for each in source.siblings if as_text(each.get("ref")) == name]
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
    found: list[Parameters] = []
    for generator in map(as_mapping, as_list(owner.spec.get("generators"))):
        found += _generate(tree, generator)
    return found or [{}]


def _generate(tree: GitOpsTree, generator: Mapping[str, Any]) -> list[Parameters]:
    if "list" in generator:
        listed = as_mapping(generator["list"])
        elements = as_list(listed.get("elements"))
        if "elementsYaml" in listed:
            return [{}]
        return [dict(_flatten("", untraced(each))) for each in map(as_mapping, elements)]
    if "git" in generator:
        return _generate_from_git(tree, as_mapping(generator["git"]))
    if "matrix" in generator:
        combined: list[Parameters] = [{}]
        for each in as_list(as_mapping(generator["matrix"]).get("generators")):
            # A later generator may use the parameters of those before it.
            pairs = ((known, own) for known in combined for own in _generate(tree, as_mapping(fill(each, known))))
            combined = [{**known, **own} for known, own in islice(pairs, _MAX_ELEMENTS)]
        return combined
    if "merge" in generator:
        return _merge(tree, as_mapping(generator["merge"]))
    return [{}]


def _merge(tree: GitOpsTree, merge: Mapping[str, Any]) -> list[Parameters]:
    """Return the parameters of the first generator, with those of the others that have the same keys over them."""
    first, *others = [_generate(tree, as_mapping(each)) for each in as_list(merge.get("generators"))] or [[{}]]
    keys = [as_text(key) for key in as_list(merge.get("mergeKeys"))]
    found = [dict(each) for each in first]
    for over in (each for several in others for each in several):
        for own in found:
            if all(key in own and own[key] == over.get(key) for key in keys):
                own.update(over)
    # What is not known of a generator may be over any of these.
    if any(not each for several in others for each in several):
        return [{key: own[key] for key in keys if key in own} for own in found]
    return list(found)


def _generate_from_git(tree: GitOpsTree, git: Mapping[str, Any]) -> list[Parameters]:
    if not tree.may_be_own(as_text(git.get("repoURL"))):
        return [{}]
    directories = [as_mapping(each) for each in as_list(git.get("directories"))]
    files = [as_text(as_mapping(each).get("path")) for each in as_list(git.get("files"))]
    above = f"{tree.around.above}/" if tree.around.above else ""
    paths = [f"{above}{path}" for path in tree.around.paths if not path.startswith("../")]
    values = dict(_flatten("values", untraced(as_mapping(git.get("values")))))
    found: list[Parameters] = []
    if directories:
        folders = sorted({folder for path in paths for folder in _list_above(path)})
        wanted = [_match(as_text(each.get("path"))) for each in directories if not value_of(each.get("exclude"))]
        refused = [_match(as_text(each.get("path"))) for each in directories if value_of(each.get("exclude"))]
        for folder in folders:
            if any(match(folder) for match in wanted) and not any(match(folder) for match in refused):
                found.append({**_describe(folder), **values})
    for pattern in files:
        for path in filter(_match(pattern), paths):
            local = tree.find_path(path)
            for document in read_shared(tree.read(local or path).content, path).documents:
                own = dict(_flatten("", untraced(document.data)))
                found.append({**own, **_describe(posixpath.dirname(path)), **values})
    return [{key: _replace(value, each) for key, value in each.items()} for each in found]


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
        if isinstance(value, dict):
            yield from _flatten(name, value)
        elif isinstance(value, (str, int, float, bool)):
            yield name, str(value).lower() if isinstance(value, bool) else str(value)


def fill(tree: Any, parameters: Parameters) -> Any:
    """Return a template with parameters in place of expressions; those without a known value stay."""
    if isinstance(tree, dict):
        return {key: fill(value, parameters) for key, value in tree.items()} if tree else tree
    if type(tree) is TracedList:
        items = [fill(item, parameters) for item in tree]
        return TracedList(items, tree.location, tree.layer, item_locations=tree.item_locations)
    if type(tree) is TracedScalar and isinstance(tree.value, str) and "{{" in tree.value:
        return TracedScalar(_replace(tree.value, parameters), tree.location, tree.layer, tree.overridden)
    return tree


def _replace(text: str, parameters: Parameters) -> str:
    def find(match: re.Match[str]) -> str:
        # A dash beside the braces trims the text around the expression.
        expression = match[1].removeprefix("-").removesuffix("-").strip()
        segment = _SEGMENT.match(expression)
        name = f"path.segments.{segment[1]}" if segment else expression.removeprefix(".")
        return parameters.get(name, match[0])

    return _EXPRESSION.sub(find, text) if "{{" in text else text
