"""Paths and names in objects of Argo CD and Flux that lead nowhere in this repository."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.k8s.nodes import as_list, as_mapping, get_path
from jobgen.model.data import Node, location_of, text_of, value_of
from jobgen.model.finding import Finding, Severity
from jobgen.model.suggest import did_you_mean, find_closest
from jobgen.recognize.argo_sources import ArgoSource, is_open, list_sources, locate_values
from jobgen.recognize.flux_sources import is_own
from jobgen.recognize.gitops_objects import (
    ARGO,
    BOOTSTRAPPED,
    FLUX,
    HELM,
    SOURCE,
    GitOpsObject,
    GitOpsTree,
    read_address,
)
from jobgen.repo.files import KUSTOMIZATION_NAMES
from jobgen.yamlio.read.scalars import quote

PATH, NAME = "gitops-path-missing", "gitops-name-missing"
GLOB = ("*", "?", "[", "{")
_LONGEST = 160
"""How much of a path is shown: its end says what is missing."""


def find_missing(tree: GitOpsTree) -> list[Finding]:
    """Return what the objects of Argo CD and Flux name in this repository, and what is not there."""
    found = [*_check_argo(tree), *_check_flux(tree), *_check_releases(tree)]
    return list(dict.fromkeys(found))


def _report(node: Node, owner: GitOpsObject, message: str, severity: Severity = Severity.ERROR) -> Finding:
    return Finding(PATH, "gitops", severity, message, location_of(node) or owner.location)


def _suggest(tree: GitOpsTree, path: str) -> str:
    """Return which path may be meant: the only one that ends with it, or one with a similar name in its place."""
    above = f"{tree.around.above}/" if tree.around.above else ""
    known = {f"{above}{folder}" for each in tree.around.paths for folder in _list_above(each)}
    # A folder with only the last name of a path says little: `kafka` of `odh/overlays/dev/kafka`.
    same = [each for each in known if each.endswith(f"/{path}") or ("/" in each and path.endswith(f"/{each}"))]
    if len(same) == 1:
        return f"; did you mean `{same[0]}`?"
    names = path.strip("/").split("/")
    beside = (each for each in sorted(known) if _differs_once(each.split("/"), names))
    return did_you_mean(path, list(beside))


def _differs_once(names: Sequence[str], others: Sequence[str]) -> bool:
    """Return True if one name of a path is similar to that of another path, and the rest are equal."""
    pairs = [(one, other) for one, other in zip(names, others, strict=False) if one != other]
    return len(names) == len(others) and len(pairs) == 1 and bool(find_closest(pairs[0][1], [pairs[0][0]], 0.75))


def _list_above(path: str) -> Iterator[str]:
    names = path.split("/")
    yield from ("/".join(names[: count + 1]) for count in range(len(names)))


# Argo CD


def _check_argo(tree: GitOpsTree) -> Iterator[Finding]:
    sources = list(list_sources(tree))
    likely = _find_likely(tree, sources)
    known = [(each, tree.is_own(each.url)) for each in sources if each.is_head and "chart" not in each.data]
    checked = [(each, is_certain) for each, is_certain in known if is_certain or read_address(each.url) in likely]
    folders = {folder for each, _ in checked if (folder := tree.find_path(each.path)) and not is_open(folder)}
    for source, is_certain in checked:
        mild = Severity.INFO if _is_left_out(tree, source.owner.file, folders) else Severity.WARNING
        yield from _check_path(tree, source, Severity.ERROR if is_certain else mild)
    for source in sources:
        yield from _check_values(tree, source)
    yield from _check_projects(tree)
    if tree.list_kind(ARGO, "AppProject"):
        # Imported late: most repositories have none.
        from jobgen.recognize.project_limits import find_forbidden

        yield from find_forbidden(tree, sources)


def _is_left_out(tree: GitOpsTree, file: str, folders: Collection[str]) -> bool:
    """Return True if nothing deploys the kustomization with the Application of a file, but what is beside it.

    `folders` are those that Applications deploy.
    """
    roots = [posixpath.dirname(root) for root in tree.around.plan.members.get(file, ())]
    if not roots:
        return False
    beside = {f"{posixpath.dirname(root)}/" for root in roots} - {"/"}
    # A folder with a kustomization deploys what that names, any other one the files below it.
    plain = [each for each in folders if not any(tree.exists(f"{each}/{name}") for name in KUSTOMIZATION_NAMES)]
    is_deployed = any(_is_around(root, folder) for folder in folders for root in roots)
    is_deployed = is_deployed or any(_is_around(folder, root) for folder in plain for root in roots)
    return not is_deployed and any(folder.startswith(above) for folder in folders for above in beside)


def _is_around(folder: str, path: str) -> bool:
    return folder == path or path.startswith(f"{folder}/")


_LEAST_PATHS, _SHARE = 4, 0.7


def _find_likely(tree: GitOpsTree, sources: Iterable[ArgoSource]) -> frozenset[str]:
    """Return the addresses that are probably those of this repository: most of the paths there are folders here."""
    paths: dict[str, set[str]] = {}
    for source in sources:
        if source.is_head and "/" in source.path and not is_open(source.path) and "chart" not in source.data:
            paths.setdefault(read_address(source.url), set()).add(source.path)
    likely = set()
    for address, several in paths.items():
        found = sum((path := tree.find_path(each)) is not None and tree.exists(path) for each in several)
        if address and found >= max(_LEAST_PATHS, _SHARE * len(several)):
            likely.add(address)
    return frozenset(likely)


def _check_path(tree: GitOpsTree, source: ArgoSource, severity: Severity) -> Iterator[Finding]:
    path = tree.find_path(source.path) if source.path and not is_open(source.path) else ""
    if path is not None and not tree.exists(path):
        message = (
            f"{quote(source.path, _LONGEST)} does not exist in this repository, so Argo CD cannot render `{source.app}`"
        )
        hint = _suggest(tree, source.path) or "; correct the path"
        yield _report(source.data.get("path"), source.owner, f"{message}{hint}", severity)


def _check_values(tree: GitOpsTree, source: ArgoSource) -> Iterator[Finding]:
    """Check the files of a source that helm is given."""
    named = [(node, ", or set `ignoreMissingValueFiles: true`") for node in as_list(source.helm.get("valueFiles"))]
    if value_of(source.helm.get("ignoreMissingValueFiles")) is True:
        named = []
    named += ((as_mapping(each).get("path"), "") for each in as_list(source.helm.get("fileParameters")))
    for node, choice in named:
        text = text_of(node)
        if not text or is_open(text) or "://" in text or any(sign in text for sign in GLOB):
            continue
        if text.startswith("$"):
            name = text[1:].partition("/")[0]
            if not any(text_of(each.get("ref")) == name for each in source.siblings):
                if len(source.siblings) > 1:
                    yield _report(node, source.owner, f"no source of `{source.app}` has `ref: {name}`; add one")
                continue
        place = locate_values(tree, source, text)
        if place is not None and not tree.exists(place):
            message = f"{quote(text)} does not exist in this repository, so Argo CD cannot render `{source.app}`"
            yield _report(node, source.owner, f"{message}; correct the path{choice}")


def _check_projects(tree: GitOpsTree) -> Iterator[Finding]:
    """Check the projects of Applications, if the repository has projects."""
    known = {each.name for each in tree.list_kind(ARGO, "AppProject")}
    if not known:
        return
    for owner in tree.list_kind(ARGO, "Application", "ApplicationSet"):
        spec = owner.spec if owner.kind == "Application" else as_mapping(get_path(owner.spec, "template", "spec"))
        node = spec.get("project")
        name = text_of(node)
        if name not in ("", "default") and not is_open(name) and name not in known:
            yield _report_name(node, owner, "AppProject", name, known)


def _report_name(node: Node, owner: GitOpsObject, kind: str, name: str, known: Iterable[str]) -> Finding:
    hint = did_you_mean(name, sorted(known)) or "; add it, or correct the name"
    message = f"no {kind} of this repository has the name {quote(name)}{hint}"
    return Finding(NAME, "gitops", Severity.WARNING, message, location_of(node) or owner.location)


# Flux


def _check_flux(tree: GitOpsTree) -> Iterator[Finding]:
    for owner in tree.list_kind(FLUX, "Kustomization"):
        reference = as_mapping(owner.spec.get("sourceRef"))
        text = text_of(owner.spec.get("path"))
        if text and not is_open(text) and is_own(tree, reference):
            path = tree.find_path(text)
            if path is not None and not tree.exists(path):
                message = f"{quote(text)} does not exist in this repository, so Flux applies nothing of `{owner.name}`"
                yield _report(owner.spec.get("path"), owner, f"{message}{_suggest(tree, path) or '; correct the path'}")
        yield from _check_source(tree, owner, reference)


def _check_releases(tree: GitOpsTree) -> Iterator[Finding]:
    for owner in tree.list_kind(HELM, "HelmRelease"):
        chart = as_mapping(get_path(owner.spec, "chart", "spec"))
        reference = as_mapping(chart.get("sourceRef") or owner.spec.get("chartRef"))
        yield from _check_source(tree, owner, reference)
        name = text_of(chart.get("chart"))
        yield from _check_references(tree, owner)
        if not name or is_open(name) or not is_own(tree, reference):
            continue
        path = tree.find_path(name)
        metadata = posixpath.join(path or "", "Chart.yaml")
        if path is not None and not name.endswith(".tgz") and not tree.exists(metadata):
            what = "has no `Chart.yaml`" if tree.exists(path) else "does not exist in this repository"
            message = f"{quote(name)} {what}, so Flux cannot install `{owner.name}`"
            yield _report(chart.get("chart"), owner, f"{message}{_suggest(tree, path) or '; correct the path'}")
        if value_of(chart.get("ignoreMissingValuesFiles")) is not True:
            yield from _check_files(tree, owner, as_list(chart.get("valuesFiles")))


def _check_references(tree: GitOpsTree, owner: GitOpsObject) -> Iterator[Finding]:
    """Check the ConfigMaps and Secrets that a release has its values from; a Secret is often made elsewhere."""
    for each in map(as_mapping, as_list(owner.spec.get("valuesFrom"))):
        kind, node = text_of(each.get("kind")), each.get("name")
        name, key = text_of(node), text_of(each.get("valuesKey")) or "values.yaml"
        if kind not in ("ConfigMap", "Secret") or not name or is_open(name) or is_open(key):
            continue
        known = tree.list_holders(kind)
        if name in known:
            yield from _check_key(tree, owner, kind, name, each.get("valuesKey") or node, key)
        elif value_of(each.get("optional")) is not True and not tree.is_generated(name):
            hint = did_you_mean(name, sorted(known))
            if not hint and kind == "Secret":
                continue
            message = (
                f"no {kind} of this repository has the name {quote(name)}, and `{owner.name}` has its values from it"
            )
            severity = Severity.WARNING if hint else Severity.INFO
            advice = hint or "; add it, or set `optional: true`, unless it is created elsewhere"
            yield Finding(NAME, "gitops", severity, f"{message}{advice}", location_of(node) or owner.location)


def _check_key(tree: GitOpsTree, owner: GitOpsObject, kind: str, name: str, node: Node, key: str) -> Iterator[Finding]:
    """Check that the object has the key: that it is optional says nothing of this."""
    held = tree.find_holder(kind, name, owner.namespace, owner)
    data = [as_mapping(held.data.get(field)) for field in ("data", "stringData", "binaryData")] if held else []
    keys = {str(each) for fields in data for each in fields}
    if held and keys and key not in keys and "sops" not in held.data:
        hint = (
            did_you_mean(key, sorted(keys)) or f"; its keys are {', '.join(quote(each) for each in sorted(keys)[:5])}"
        )
        message = f"`{kind} {name}` has no key {quote(key)}, so Flux cannot install `{owner.name}`{hint}"
        yield Finding(NAME, "gitops", Severity.ERROR, message, location_of(node) or owner.location)


def _check_files(tree: GitOpsTree, owner: GitOpsObject, nodes: Sequence[Node]) -> Iterator[Finding]:
    for node in nodes:
        text = text_of(node)
        path = tree.find_path(text) if text and not is_open(text) else None
        if path is not None and not tree.exists(path):
            message = f"{quote(text)} does not exist in this repository, so Flux cannot install `{owner.name}`"
            yield _report(node, owner, f"{message}; its path begins at the top of the repository")


def _check_source(tree: GitOpsTree, owner: GitOpsObject, reference: Mapping[str, Any]) -> Iterator[Finding]:
    """Check that the source has been defined, if the repository defines sources of its kind."""
    kind, name = text_of(reference.get("kind")), text_of(reference.get("name"))
    known = {each.name for each in tree.list_kind(SOURCE, kind)}
    if known and name and name not in known and name != BOOTSTRAPPED and not is_open(name):
        yield _report_name(reference.get("name"), owner, kind, name, known)
