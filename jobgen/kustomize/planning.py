"""Which files the kustomizations of a tree use, as what, and which kustomizations are built: those that none uses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.kustomize.kustomization import Kustomization, load, text_of
from jobgen.kustomize.tree import Plan, SourceTree, Use, find_kustomizations, reach, resolve_path
from jobgen.model.data import Node, location_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.repo.files import is_kustomization

_ROLES = {
    **dict.fromkeys(("resources", "bases"), "resource"),
    "components": "component",
    "patchesStrategicMerge": "patch",
    "configurations": "configuration",
    "crds": "crds",
    **dict.fromkeys(("generators", "transformers", "validators"), "transformer"),
}
# A line that was turned off: an item of a list, or the path of a patch.
_ITEM = lazy_pattern(r"\s*-\s+[\"']?([\w./@-]+)[\"']?\s*(?:#.*)?$")
_COMMENTED = lazy_pattern(r"\s*#+\s*(?:-\s+|-?\s*path:\s*)(?:path:\s*)?[\"']?([\w./@-]+)[\"']?\s*(?:#.*)?$")


def plan_kustomizations(tree: SourceTree, kustomizations: Iterable[str]) -> Plan:
    """Return how the given kustomization files, and those that they lead to, use files."""
    known: dict[str, Kustomization] = {}
    uses: dict[str, list[Use]] = defaultdict(list)
    below: dict[str, list[str]] = {}
    pending = sorted(set(kustomizations), reverse=True)
    while pending:
        path = pending.pop()
        if path in known:
            continue
        known[path] = load(tree, path)
        below[path] = []
        for role, file, line in _list_uses(tree, known[path]):
            uses[file].append(Use(role, path, line))
            if role in ("resource", "component"):
                below[path].append(file)
                pending += [file] if is_kustomization(file) else []
    real = sorted(path for path, each in known.items() if not each.is_other)
    used = {file for files in below.values() for file in files}
    unused = [path for path in real if path not in used]
    roots = [path for path in unused if not known[path].is_component]
    reached = {file for path in unused if known[path].is_component for file in reach(path, below)}
    members: dict[str, list[str]] = defaultdict(list)
    # Kustomizations that use each other would have no root at all.
    for path in dict.fromkeys((*roots, *(path for path in real if not known[path].is_component))):
        if path not in used or path not in reached:
            files = reach(path, below)
            reached |= files
            roots += [path] if path in used else []
            for file in files:
                members[file].append(path)
    frozen = {file: tuple(each) for file, each in members.items() if not is_kustomization(file)}
    return Plan(tuple(sorted(roots)), {file: tuple(each) for file, each in uses.items()}, frozen)


def _list_uses(tree: SourceTree, kustomization: Kustomization) -> Iterator[tuple[str, str, int]]:
    """Yield the role and the path of each file that exists, and the line that lists it."""
    listed: set[str] = set()
    for role, node, text in _list_paths(kustomization):
        location = location_of(node)
        for file in _find_files(tree, kustomization.folder, text):
            listed.add(file)
            yield role, file, location.line if location else 1
    lines = list(enumerate(kustomization.text.split("\n"), 1))
    # Patches that are listed by their paths alone, as in older fields: the build fails, but they are patches.
    has_misplaced = any("patches" in finding.values for finding in kustomization.findings)
    for number, line in lines if has_misplaced else ():
        match = _ITEM.match(line)
        for file in _find_files(tree, kustomization.folder, match[1] if match else ""):
            if file not in listed:
                yield "patch", file, number
    for number, line in lines:
        match = _COMMENTED.match(line) if "#" in line and len(line) < 1000 else None
        if match and ("/" in match[1] or "." in match[1]):
            for file in _find_files(tree, kustomization.folder, match[1]):
                if file != kustomization.path:
                    yield "commented out", file, number


def _find_files(tree: SourceTree, folder: str, text: str) -> list[str]:
    """Return the file at a path; for a folder, its kustomization file."""
    path = resolve_path(tree, folder, text) if text and "\n" not in text else None
    if path is None or not tree.exists(path):
        return []
    return find_kustomizations(tree, path)[:1] if tree.is_folder(path) else [path]


def _list_paths(kustomization: Kustomization) -> Iterator[tuple[str, Node, str]]:
    """Yield the role, the node and the path of everything that a kustomization names."""
    for field, role in _ROLES.items():
        for item in kustomization.items(field):
            yield role, item, text_of(item)
    for field, role in (("patches", "patch"), ("patchesJson6902", "patch"), ("replacements", "replacement")):
        for item in kustomization.items(field):
            yield role, item.get("path"), text_of(item.get("path"))
    for item in kustomization.items("configMapGenerator", "secretGenerator"):
        for source in (*item.get("envs", ()), *([item["env"]] if "env" in item else ())):
            yield "generator input", source, text_of(source)
        for source in item.get("files", ()):
            yield "generator input", source, text_of(source).rpartition("=")[2]
    openapi = as_mapping(kustomization.fields.get("openapi")).get("path")
    yield "openapi", openapi, text_of(openapi)
    fields = ("helmCharts", "helmChartInflationGenerator")
    for chart in [as_mapping(each) for field in fields for each in as_list(kustomization.fields.get(field))]:
        for node in (chart.get("valuesFile"), chart.get("values"), *as_list(chart.get("additionalValuesFiles"))):
            yield "helm values", node, text_of(node)
