"""Files of kustomizations: resources and patches are judged in the builds that use them, fragments are not judged."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from jobgen.kustomize import build
from jobgen.kustomize.tree import Plan, SourceTree, Tool, reach
from jobgen.model.data import Location
from jobgen.model.digest import blake2b
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.recognize import FRAGMENT, INPUT, KUSTOMIZATION, PATCH, RESOURCE, Taken
from jobgen.recognize.not_applied import BUNDLE_SUFFIX
from jobgen.recognize.objects import is_sealed
from jobgen.recognize.tree import FileTree, list_folders
from jobgen.repo.files import KUSTOMIZATION_NAMES, MANIFEST_SUFFIXES, Build, Built, BuiltObject, File, is_kustomization
from jobgen.repo.walk import is_excluded, parse_patterns
from jobgen.yamlio.read import read_shared

if TYPE_CHECKING:
    from jobgen.recognize.charts import ChartOfKustomization

_PATCH_FOLDER = lazy_pattern(r"(?:\A|[-_])patch(?:es)?(?:[-_]|\Z)")
_PATCH_NAME = lazy_pattern(r"(?:\A|[-_.])patch(?:es)?(?=[-_.]|\Z)")
# Directives that only patches have.
_DIRECTIVE = lazy_pattern(
    rb"^[ \t]*(?:-[ \t]+)?[\"']?\$(?:patch|retainKeys|setElementOrder/\w+|deleteFromPrimitiveList/\w+)[\"']?:",
    re.MULTILINE,
)
_COMMENTED = "commented out"
DIRECTIVES = ("$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/")
"""What the directives of patches begin with."""
_PATH_FIELDS = frozenset(("path", "paths", "file", "files", "manifests", "resources"))
# An object can be in a file with the name of a kustomization.
_OTHER_KIND = lazy_pattern(rb"^apiVersion:[ \t]{0,8}[\"']?(?!kustomize\.config\.k8s\.io)[\w./]", re.MULTILINE)
_PATH = lazy_pattern(r"[\w.@-]+(?:/[\w.@-]+)*/?\Z")


def recognize_file(path: str, plan: Plan, tree: FileTree) -> Taken | None:
    """Return how kustomizations use a file; None if none of them mentions it."""
    if is_kustomization(path) and not _OTHER_KIND.search(tree.read(path).content):
        return Taken(KUSTOMIZATION, "it is named like a kustomization")
    uses = plan.uses.get(path, ())
    active = [use for use in uses if use.role != _COMMENTED]
    roots = plan.members.get(path, ())
    resource = next((use for use in active if use.role == "resource"), None)
    if resource is not None and roots:
        builds = "one build" if len(roots) == 1 else f"{len(roots)} builds"
        return Taken(RESOURCE, f"{resource.by}:{resource.line} lists it; it is checked in {builds}")
    if resource is not None:
        why = f"{resource.by}:{resource.line} lists it, and no build uses that kustomization"
        return None if _is_component(resource.by, tree) else Taken(FRAGMENT, why)
    if active:
        use = active[0]
        sort = PATCH if use.role == "patch" else INPUT
        return Taken(sort, f"{use.by}:{use.line} lists it ({use.role})")
    if uses:
        return Taken(FRAGMENT, f"its line in {uses[0].by}:{uses[0].line} is a comment")
    return None


_COMPONENT = lazy_pattern(rb"^kind:[ \t]*[\"']?Component\b", re.MULTILINE)


def _is_component(path: str, tree: FileTree) -> bool:
    """Return True if a kustomization is a component: what it adds to a build are finished objects."""
    return _COMPONENT.search(tree.read(path).content) is not None


def find_plugin_inputs(plan: Plan, source: SourceTree) -> dict[str, str]:
    """Return what configurations of plugins, such as PolicyGenerator, name, each with the configuration."""
    found: dict[str, str] = {}
    for file, uses in plan.uses.items():
        if any(use.role == "transformer" for use in uses):
            folder = posixpath.dirname(file)
            for document in read_shared(source.read(file).content, file).documents:
                for text in _list_texts(document.data):
                    path = posixpath.normpath(posixpath.join(folder, text))
                    if _PATH.match(text) and source.exists(path):
                        found[path] = file
    return found


def _list_texts(tree: Any) -> Iterator[str]:
    """Return the texts in a tree that are paths by the names of their fields."""
    pending = [("", tree)]
    while pending:
        name, node = pending.pop()
        if isinstance(node, str) and name in _PATH_FIELDS:
            yield node
        elif isinstance(node, (dict, list)):
            pending += node.items() if isinstance(node, dict) else [(name, each) for each in node]


def recognize_plugin_input(path: str, inputs: Mapping[str, str]) -> Taken | None:
    """Return which plugin reads a file, or the folder that it is in."""
    reader = next((inputs[each] for each in (path, *list_folders(path)) if each in inputs), "")
    return Taken(INPUT, f"a plugin reads it, as {reader} says") if reader else None


def _has_directive(tree: Any) -> bool:
    """Return True if a mapping has a directive of a patch: in a text, it is the text of something else."""
    if isinstance(tree, dict) and any(str(key).startswith(DIRECTIVES) for key in tree):
        return True
    below = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return any(map(_has_directive, below))


def recognize_fragment(path: str, content: bytes, folders: frozenset[str], tree: FileTree) -> Taken | None:
    """Return why a file that no kustomization mentions is a part of an object; `folders` have kustomizations."""
    # Most files have no directive, and need no pattern.
    directive = _DIRECTIVE.search(content) if any(each.encode() in content for each in DIRECTIVES) else None
    if directive and any(map(_has_directive, (each.data for each in read_shared(content, path).documents))):
        shown = directive[0].strip(b" \t-\"':").decode("ascii", "replace")
        return Taken(FRAGMENT, f"`{shown}` is a directive of a strategic merge patch")
    above, _, name = path.rpartition("/")
    command = tree.find_mention(path, b" patch ", name.encode("utf-8", "surrogateescape")) if "patch" in name else ""
    if command and b"metadata" not in content:
        return Taken(FRAGMENT, f"`{command}` says that `kubectl patch` applies it")
    inside = next((folder for folder in above.split("/") if _PATCH_FOLDER.search(folder)), "")
    if not (inside or _PATCH_NAME.search(name.rpartition(".")[0])) or not _has_kustomization(above, folders):
        return None
    return Taken(FRAGMENT, f"it is in `{inside}`" if inside else f"`{name}` is the name of a patch")


def find_patch_folders(plan: Plan) -> frozenset[str]:
    """Return the folders of which kustomizations elsewhere list several files, all as patches."""
    roles: dict[str, list[str]] = {}
    for path, uses in plan.uses.items():
        roles.setdefault(posixpath.dirname(path), []).extend({use.role for use in uses if use.role != _COMMENTED})
    own = {posixpath.dirname(path) for path in plan.members} | {posixpath.dirname(path) for path in plan.roots}
    return frozenset(
        folder for folder, each in roles.items() if len(each) > 1 and set(each) == {"patch"} and folder not in own
    )


def recognize_among_patches(path: str, folders: frozenset[str]) -> Taken | None:
    """Return why a file that no kustomization lists is a patch: all others of its folder are."""
    is_patch = bool(folders) and posixpath.dirname(path) in folders
    return (
        Taken(FRAGMENT, "no kustomization lists it, and the other files of its folder are patches")
        if is_patch
        else None
    )


def _has_kustomization(folder: str, folders: frozenset[str]) -> bool:
    """Return True if a folder, one above it, or one beside these has a kustomization."""
    starts = [f"{above}/" if above else "" for above in list_folders(folder)]
    return folder in folders or any(
        each.startswith(start) and each.count("/") == start.count("/") for start in starts for each in folders
    )


def find_closures(plan: Plan) -> dict[str, frozenset[str]]:
    """Return all files that the build of each root reads."""
    below: dict[str, list[str]] = {}
    for file, uses in plan.uses.items():
        for use in uses:
            if use.role != _COMMENTED:
                below.setdefault(use.by, []).append(file)
    return {root: frozenset(reach(root, below)) for root in plan.roots}


class KustomizeBuild(Build):
    """The build of a kustomization."""

    def __init__(self, source: SourceTree, file: str, files: frozenset[str], tool: Tool | None) -> None:
        super().__init__(file)
        self.source = source
        self._tool = tool
        self._files = files
        self.judged_charts: frozenset[str] = frozenset()
        """The kustomizations whose charts are all judged by themselves."""
        self.charts: Mapping[str, Sequence[ChartOfKustomization]] = {}
        """What renders the charts of the others, by their paths."""

    @property
    def closure(self) -> frozenset[str]:
        """The files that it reads."""
        return self._files

    def read(self) -> bytes:
        """Return a digest of all that it reads: its files, and the tool for what jobgen cannot build."""
        digest = blake2b(digest_size=16)
        digest.update(repr((self._tool, sorted(self.judged_charts & self._files))).encode("utf-8", "surrogatepass"))
        for chart in self._list_charts():
            digest.update(chart.read())
        for path in sorted(self._files):
            digest.update(blake2b(self.source.read(path).content, digest_size=16).digest())
        return digest.hexdigest().encode()

    def make(self) -> Built:
        """Build the objects, and report what could not be built: its objects were not judged."""
        try:
            rendered = {path: partial(self._render, charts) for path, charts in self.charts.items()}
            built = build(self.source, self.file, self._tool, rendered)
        except Exception as error:  # noqa: BLE001 -- a fault in one kustomization must not stop the rest
            message = (
                f"the build failed with {type(error).__name__}, so nothing in it was checked; report this as a bug"
            )
            return Built((), (Finding("internal-error", "meta", Severity.ERROR, message, Location(self.file)),))
        # The Operator SDK completes this base when it writes a bundle.
        objects = [each for each in built.objects if not each.file.endswith(BUNDLE_SUFFIX) and not is_sealed(each.data)]
        findings = [*built.findings, *(found for chart in self._list_charts() for found in chart().findings)]
        unbuilt = [each for each in built.unbuilt if built.charts.get(each) not in self.judged_charts]
        if unbuilt:
            count = len(unbuilt) - 1
            parts = "1 more part was" if count == 1 else f"{count} more parts were"
            more = f" and {parts} not built" if count else ""
            message = f"{unbuilt[0]}, so it was not checked{more}"
            findings.append(Finding("unbuilt-kustomization", "meta", Severity.WARNING, message, Location(built.root)))
        return Built(objects, findings)

    def _list_charts(self) -> Iterator[ChartOfKustomization]:
        return (chart for path in sorted(self.charts) for chart in self.charts[path])

    @staticmethod
    def _render(charts: Sequence[ChartOfKustomization]) -> list[BuiltObject]:
        made = [chart().objects for chart in charts]
        # If a part is missing, what is changed may be there.
        return [each for several in made for each in several] if all(made) else []

    def list_comments(self) -> Iterator[File]:
        """Return the templates of its charts whose comments suppress findings."""
        return (file for chart in self._list_charts() for file in chart.list_comments())

    def select(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings, those in the files of a chart as the chart itself reports them."""
        rest = super().select(findings)
        found: list[Finding] = []
        for chart in self._list_charts():
            own = [each for each in rest if chart.owns(each.location.file)]
            rest = [each for each in rest if each not in own]
            found += chart.select(own)
        return [*rest, *found]

    def read_sources(self, finding: Finding) -> Iterator[File]:
        """Return the files that the values of a finding may come from: where it is, and inputs of generators."""
        shown = {finding.location.file, *(related.location.file for related in finding.related)}
        inputs = {path for path in self._files if not path.endswith(MANIFEST_SUFFIXES)}
        yield from map(self.source.read, sorted((shown & self._files) | inputs))
        yield self._secrets
        for chart in self._list_charts():
            yield from chart.read_sources(finding)

    @cached_property
    def _secrets(self) -> File:
        """The values of all Secrets that it builds: a replacement can copy one to any field."""
        import base64

        secrets = [each.data for each in self().objects if each.data.get("kind") == "Secret"]
        values = [value for each in secrets for value in (each.get("data") or {}).values() if isinstance(value, str)]
        data, plain = dict(enumerate(values)), dict(enumerate(values))
        for number, value in data.items():
            with suppress(ValueError):
                plain[number] = base64.b64decode(value, validate=True).decode("utf-8", "replace")
        content = json.dumps({"apiVersion": "v1", "kind": "Secret", "data": data, "stringData": plain})
        return File("", content.encode("utf-8", "surrogatepass") if secrets else b"")


MISSING = "kustomization-file-missing"


def settle_generated(findings: Iterable[Finding], tree: FileTree) -> Iterator[Finding]:
    """Yield the findings; a file that the repository says something else creates is an info."""
    for finding in findings:
        if _is_completed(finding, tree):
            continue
        creator = _find_creator(finding, tree) if finding.rule == MISSING else ""
        if creator:
            name = finding.values[0]
            message = f"`{name}` does not exist here; the build fails until it is created, as `{creator}` says"
            yield finding._replace(severity=Severity.INFO, message=message)
        else:
            yield finding


def _is_completed(finding: Finding, tree: FileTree) -> bool:
    """Return True if a build writes what an object of a component lacks: the namespace of a ServiceAccount."""
    if finding.rule != "missing-field" or not finding.pointer.startswith("/subjects/"):
        return False
    folder = posixpath.dirname(finding.location.file)
    paths = (posixpath.join(folder, name) for name in KUSTOMIZATION_NAMES)
    return any(tree.exists(path) and _is_component(path, tree) for path in paths)


def _find_creator(finding: Finding, tree: FileTree) -> str:
    """Return the script, page or .gitignore that says that a missing file is created; empty without one."""
    folder = posixpath.dirname(finding.location.file)
    path = posixpath.normpath(posixpath.join(folder, finding.values[0]))
    names = path.split("/")
    if "." in names[-1]:
        found = tree.find_mention(finding.location.file, names[-1].encode("utf-8", "surrogateescape"))
    else:
        above = ("/".join(names[: count + 1]) for count in range(len(names)))
        missing = next((name for name, each in zip(names, above, strict=True) if not tree.exists(each)), "/")
        found = tree.find_script(finding.location.file, missing.encode("utf-8", "surrogateescape"))
    if found:
        return found
    for folder in list_folders(path):
        file = posixpath.join(folder, ".gitignore")
        lines = tree.read(file).content.decode("utf-8", "replace").split("\n") if tree.exists(file) else ()
        patterns = parse_patterns(line.strip() for line in lines if line.strip() and line[0] not in "#!")
        if is_excluded(posixpath.relpath(path, folder or "."), patterns):
            return file
    return ""
