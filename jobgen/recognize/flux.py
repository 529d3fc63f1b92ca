"""Kustomizations of Flux: what they build of a folder, with the values that they fill in (`postBuild`).

Flux builds the kustomization of `spec.path`, or generates one that lists all manifests below it. It fills in variables
only if there are values: those of ConfigMaps and Secrets (`substituteFrom`), and over them its own (`substitute`).
The Kustomizations themselves are objects, too, which a kustomization or another Kustomization of Flux may change.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.kustomize import plan
from jobgen.kustomize.resource import read_documents
from jobgen.kustomize.tree import SourceTree
from jobgen.model.budget import RUN, TOO_MANY_STEPS, OverBudgetError
from jobgen.model.data import (
    Location,
    TracedKey,
    TracedList,
    TracedMapping,
    TracedScalar,
    location_of,
    untraced,
    value_of,
)
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.recognize.kustomize_files import KustomizeBuild, find_closures
from jobgen.recognize.substituted import Values, Variable, fill_in
from jobgen.recognize.tree import Surroundings, list_folders
from jobgen.repo.files import KUSTOMIZATION_NAMES, Build, Built, BuiltObject, File


class _VirtualFile(NamedTuple):
    """The files of a tree, and a file that is not there."""

    tree: SourceTree
    path: str
    content: bytes

    @property
    def depth(self) -> int:
        return self.tree.depth

    def read(self, path: str) -> File:
        return File(path, self.content) if path == self.path else self.tree.read(path)

    def exists(self, path: str) -> bool:
        return path in (self.path, posixpath.dirname(self.path)) or self.tree.exists(path)

    def list_names(self, path: str) -> Sequence[str]:
        """Return the names in a folder."""
        return self.tree.list_names(path)

    def is_folder(self, path: str) -> bool:
        return path == posixpath.dirname(self.path) or self.tree.is_folder(path)


def _move_nodes(built: BuiltObject, file: str, location: Location) -> BuiltObject:
    """Return an object whose nodes in a virtual file are at a location of the file that it was made from."""

    def at(place: Location) -> Location:
        return location if place.file == file else place

    def move(node: Any) -> Any:
        if isinstance(node, dict) and node:
            return {move(key): move(value) for key, value in node.items()}
        if type(node) is TracedList:
            places = map(at, node.item_locations)
            return TracedList(map(move, node), at(node.location), node.layer, move(node.overridden), places)
        if type(node) is TracedMapping:
            return TracedMapping(at(node.location), node.layer)
        if type(node) is TracedScalar and node.location.file == file:
            return TracedScalar(node.value, location, node.layer, move(node.overridden), node.written)
        if type(node) is TracedKey and node.location.file == file:
            return TracedKey.at(str(node), location, node.layer)
        return node

    return built._replace(located=move(built.traced), location=at(built.location))


GROUP = "kustomize.toolkit.fluxcd.io"
RULE = "flux-substitution-fails"

_BOOTSTRAPPED = "flux-system"
"""The source that `flux bootstrap` creates: the repository that the Kustomizations are in."""
_ARTIFACTS = frozenset(("Bucket", "ExternalArtifact", "OCIRepository"))
"""Sources whose files can be copies of a folder of the repository."""
_VALID_NAME = lazy_pattern(r"[_A-Za-z][_A-Za-z0-9]*\Z")
# Fields of a Kustomization that become fields of the kustomization of its folder.
_FIELDS = {"targetNamespace": "namespace", "namePrefix": "namePrefix", "nameSuffix": "nameSuffix"}
_LISTS = ("patches", "images")
_YAML = (".yaml", ".yml")
_MAX_LEVELS = 5
_MAX_REPEATED = 8_000_000
_FILE_BYTES = 1_000
"""How many levels of Kustomizations change those below them, how many bytes are built again, and what a file adds."""


class _FluxObject(NamedTuple):
    """A Kustomization of Flux as Flux applies it, or an object that it names; its data has locations."""

    file: str
    position: int
    location: Location
    data: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(value_of(as_mapping(self.data.get("metadata")).get("name")))

    @property
    def namespace(self) -> str:
        return str(value_of(as_mapping(self.data.get("metadata")).get("namespace")) or "")

    @property
    def spec(self) -> Mapping[str, Any]:
        return as_mapping(self.data.get("spec"))

    @property
    def post_build(self) -> Mapping[str, Any]:
        return as_mapping(self.spec.get("postBuild"))


class FluxBuild(Build):
    """What one Kustomization of Flux applies."""

    def __init__(
        self, kustomization: _FluxObject, target: _Target, values: Values | None, sources: Sequence[File]
    ) -> None:
        super().__init__(kustomization.file)
        self.kustomization = kustomization
        self.target = target
        # Without values, nothing is filled in.
        self.fills = target.files if values is not None else frozenset()
        self._values = values
        self._sources = sources

    def read(self) -> bytes:
        """Return everything that its objects depend on."""
        values = repr(self._values and (sorted(self._values.known.items()), self._values.is_complete))
        spec = repr((untraced(self.kustomization.data), sorted(self.target.files)))
        texts = (values.encode("utf-8", "replace"), spec.encode("utf-8", "replace"))
        return b"\n".join((self.target.build.read(), *(file.content for file in self._sources), *texts))

    def make(self) -> Built:
        """Build the objects and fill in their variables."""
        built = self.target.build()
        virtual = self.target.virtual
        patches = location_of(self.kustomization.spec.get("patches"))
        # A patch that a Kustomization above adds to all is not meant for the objects of this one.
        is_added = patches is not None and patches.file != self.kustomization.file
        # Flux reads files outside of the kustomization's folder.
        findings = [
            each if each.location.file != virtual else each._replace(location=self.kustomization.location)
            for each in built.findings
            if each.rule != "kustomization-load-restricted"
            and not (is_added and each.rule == "patch-matches-nothing" and each.location.file == virtual)
        ]
        try:
            with RUN.begin_file():
                objects = self._fill_objects(built, findings)
        except OverBudgetError as error:
            findings.append(Finding(TOO_MANY_STEPS, "meta", Severity.ERROR, str(error), self.kustomization.location))
            objects = []
        return Built(objects, findings)

    def _fill_objects(self, built: Built, findings: list[Finding]) -> list[BuiltObject]:
        """Fill in the variables of objects, and report what Flux cannot read."""
        virtual, objects = self.target.virtual, list[BuiltObject]()
        for each in built.objects:
            moved = _move_nodes(each, virtual, self.kustomization.location) if virtual else each
            metadata = as_mapping(moved.data.get("metadata"))
            described = (as_mapping(metadata.get(field)) for field in ("labels", "annotations"))
            if self._values is None or any(texts.get(f"{GROUP}/substitute") == "disabled" for texts in described):
                objects.append(moved)
                continue
            filled, faults = fill_in(moved, self._values)
            objects.append(filled)
            # Without values, Flux does not read the texts.
            for location, expression in faults if self._values.known else ():
                message = (
                    f"Flux cannot read `{expression}`, so it applies nothing of `{self.kustomization.name}`; "
                    f"write `$${expression[1:]}` if the text is meant for a shell"
                )
                findings.append(Finding(RULE, "gitops", Severity.ERROR, message, location))
        return objects

    def read_sources(self, finding: Finding) -> Iterator[File]:
        """Return the files that the values of a finding may come from."""
        yield from self.target.build.read_sources(finding)
        yield from self._sources


class _Target(NamedTuple):
    build: KustomizeBuild
    files: frozenset[str]
    roots: frozenset[str]
    """The kustomization files that are built, or that a generated one lists."""
    virtual: str = ""
    """The file of the kustomization that Flux writes, if it writes one."""


def find_builds(around: Surroundings) -> list[FluxBuild]:
    """Return the builds of all Kustomizations of Flux in a tree that fill in values, or change what is built."""
    finder = _Finder(around)
    builds = (finder.make(each) for several in finder.find_kustomizations().values() for each in several)
    return [each for each in builds if each is not None and _changes(each.kustomization)]


class _Finder:
    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.known: dict[tuple[str, str], list[_FluxObject]] = {}
        self.made: dict[int, FluxBuild | None] = {}
        """The builds by the identity of the data of their Kustomizations."""
        self.read: set[str] = set()
        self.repeated = 0

    def find_kustomizations(self) -> dict[tuple[str, int], list[_FluxObject]]:
        """Return the Kustomizations by their document, each as all builds make it that change it."""
        found = {(each.file, each.position): [each] for each in self.list_documents(GROUP, "Kustomization")}
        roots = dict.fromkeys(root for file, _ in found for root in self.around.plan.members.get(file, ()))
        tree = self.around.tree.source
        builds = (KustomizeBuild(tree, root, self.around.closures[root], self.around.tool) for root in roots)
        built = (build().objects for build in builds)
        found |= _collect(built, {})
        level = [each for several in found.values() for each in several]
        for _ in range(_MAX_LEVELS):
            changed = _collect((self.list_changed(each, found) for each in level), found)
            found |= changed
            level = [each for several in changed.values() for each in several]
        return found

    def list_changed(
        self, parent: _FluxObject, known: Mapping[tuple[str, int], list[_FluxObject]]
    ) -> Iterator[BuiltObject]:
        """Return the objects of a Kustomization that changes others."""
        if not _changes(parent):
            return
        made = self.make(parent)
        files = {file for file, _ in known}
        if made is not None and not files.isdisjoint(made.target.files):
            own = (parent.file, parent.position)
            yield from (each for each in made().objects if (each.file, each.position) != own)

    def list_documents(self, group: str, kind: str) -> Iterator[_FluxObject]:
        """Return the objects of a kind that files have; `group` is empty for those of the core."""
        for path in self.around.paths:
            content = self.around.tree.read(path).content if path.endswith(_YAML) else b""
            if (group or kind).encode() not in content:
                continue
            for position, data in enumerate(read_documents(content, path, "manifest").data):
                if _is_kind(data, group, kind):
                    yield _FluxObject(path, position, location_of(data) or Location(path), data)

    def make(self, kustomization: _FluxObject) -> FluxBuild | None:
        """Return the build of a Kustomization; None if it builds nothing of this repository."""
        key = id(kustomization.data)
        if key not in self.made:
            is_built = self.is_own(kustomization) and self.repeated < _MAX_REPEATED
            target = self.find_target(kustomization) if is_built else None
            values, sources = self.read_values(kustomization) if target else (None, [])
            file = self.around.tree.read(kustomization.file)
            self.made[key] = FluxBuild(kustomization, target, values, [file, *sources]) if target else None
        return self.made[key]

    # Folders

    @cached_property
    def sources(self) -> dict[str, str]:
        """The addresses of the Git repositories that the files name, by the names of their sources."""
        found = self.list_documents("source.toolkit.fluxcd.io", "GitRepository")
        return {each.name: str(value_of(each.spec.get("url"))) for each in found}

    def is_own(self, kustomization: _FluxObject) -> bool:
        """Return True if the path of a Kustomization is most likely one of this repository."""
        source = as_mapping(kustomization.spec.get("sourceRef"))
        kind, name = str(value_of(source.get("kind"))), str(value_of(source.get("name")))
        if name == _BOOTSTRAPPED or kind != "GitRepository":
            return name == _BOOTSTRAPPED
        urls = set(self.sources.values())
        return name not in self.sources or len(urls) == 1 or self.sources[name] == self.sources.get(_BOOTSTRAPPED)

    def find_folder(self, kustomization: _FluxObject) -> str | None:
        path = str(value_of(kustomization.spec.get("path")) or "")
        if "$" in path or "\0" in path:
            return None
        folder = posixpath.normpath(posixpath.join("/", path)).lstrip("/")
        above = f"{self.around.above}/" if self.around.above else ""
        if folder != self.around.above and not folder.startswith(above):
            return None
        folder = folder[len(above) :]
        is_folder = self.around.tree.source.is_folder
        if not folder or is_folder(folder):
            return folder
        return self.find_below(kustomization, folder)

    def find_below(self, kustomization: _FluxObject, folder: str) -> str | None:
        """Return a folder of an artifact that is made of a part of the repository, which the Kustomization is in."""
        kind = value_of(as_mapping(kustomization.spec.get("sourceRef")).get("kind"))
        tops = list_folders(kustomization.file) if kind in _ARTIFACTS else ()
        found = [path for top in tops if self.around.tree.source.is_folder(path := posixpath.join(top, folder))]
        return found[0] if len(found) == 1 else None

    def find_target(self, kustomization: _FluxObject) -> _Target | None:
        """Return what a Kustomization builds: the kustomization of its folder, or one that Flux writes."""
        folder = self.find_folder(kustomization)
        if folder is None:
            return None
        tree = self.around.tree.source
        file = self.find_kustomization(folder)
        # What Flux adds to the kustomization of a folder.
        spec = kustomization.spec
        fields = {field: value_of(spec[name]) for name, field in _FIELDS.items() if value_of(spec.get(name))}
        fields |= {name: untraced(spec[name]) for name in (*_LISTS, "components") if as_list(spec.get(name))}
        if file and not fields:
            return self.make_target(tree, file, frozenset((file,)), "")
        listed = self.list_manifests(folder) if not file else []
        if not file and not listed:
            return None
        inside = "kustomization-of-flux" if file else ""
        virtual = posixpath.join(folder, inside, KUSTOMIZATION_NAMES[0])
        components = [posixpath.join(".." if file else "", str(each)) for each in fields.pop("components", ())]
        resources = [".."] if file else [posixpath.relpath(each, folder or ".") for each in listed]
        content = json.dumps({"resources": resources, "components": components, **fields}).encode()
        roots = [file] if file else filter(None, map(self.find_kustomization, listed))
        return self.make_target(_VirtualFile(tree, virtual, content), virtual, frozenset(roots), virtual)

    def make_target(self, tree: SourceTree, file: str, roots: frozenset[str], virtual: str) -> _Target | None:
        files = self.around.closures.get(file) if not virtual else None
        files = files or find_closures(plan(tree, [file])).get(file)
        if files is None:
            return None
        again = (files & self.read) - {virtual}
        self.repeated += sum(_FILE_BYTES + len(self.around.tree.read(each).content) for each in again)
        self.read |= files
        build = KustomizeBuild(tree, file, files - {virtual}, self.around.tool)
        return _Target(build, files - {virtual}, roots, virtual)

    def find_kustomization(self, folder: str) -> str:
        paths = (posixpath.join(folder, name) for name in KUSTOMIZATION_NAMES)
        return next(filter(self.around.tree.exists, paths), "")

    def list_manifests(self, folder: str) -> list[str]:
        """Return what Flux lists if a folder has no kustomization: manifests, and folders that have one."""
        start = f"{folder}/" if folder else ""
        listed: dict[str, None] = {}
        for path in sorted(self.around.paths):
            if path.startswith(start) and path.endswith(_YAML):
                parts = path[len(start) :].split("/")[:-1]
                folders = (start + "/".join(parts[: count + 1]) for count in range(len(parts)))
                built = next(filter(self.find_kustomization, folders), "")
                if built or path in self.around.objects:
                    listed[built or path] = None
        return list(listed)

    # Values

    def read_values(self, kustomization: _FluxObject) -> tuple[Values | None, list[File]]:
        """Return the values that a Kustomization fills in, and the files that they come from."""
        known: dict[str, Variable] = {}
        is_complete = True
        sources: list[File] = []
        for reference in map(as_mapping, as_list(kustomization.post_build.get("substituteFrom"))):
            found = self.find_config_map(kustomization, reference)
            if found is None:
                is_complete = False
                continue
            known |= _read_pairs(as_mapping(found.data.get("data")), found.location)
            sources.append(self.around.tree.read(found.file))
        known |= _read_pairs(as_mapping(kustomization.post_build.get("substitute")), kustomization.location)
        if not known and is_complete:
            # Flux changes nothing without values.
            return None, sources
        # A value that is encrypted, or is itself filled in, is not known.
        given = {
            name: each for name, each in known.items() if "${" not in each.value and not each.value.startswith("ENC[")
        }
        return Values(given, is_complete=is_complete and len(given) == len(known)), sources

    def find_config_map(self, kustomization: _FluxObject, reference: Mapping[str, Any]) -> _FluxObject | None:
        """Return the ConfigMap that a Kustomization names; None if it is not the only one that it can be."""
        kind, name = (str(value_of(reference.get(key))) for key in ("kind", "name"))
        if kind != "ConfigMap":
            return None
        if not self.known:
            for each in self.list_documents("", kind):
                self.known.setdefault((kind, each.name), []).append(each)
        spaces = ("", kustomization.namespace) if kustomization.namespace else None
        found = [each for each in self.known.get((kind, name), ()) if spaces is None or each.namespace in spaces]
        nearest = max((_count_shared(each.file, kustomization.file) for each in found), default=0)
        found = [each for each in found if _count_shared(each.file, kustomization.file) == nearest]
        return found[0] if len(found) == 1 else None


def _collect(
    objects: Iterable[Iterable[BuiltObject]], known: Mapping[tuple[str, int], list[_FluxObject]]
) -> dict[tuple[str, int], list[_FluxObject]]:
    """Return the Kustomizations that several builds make, by their document, except for those that are known."""
    found: dict[tuple[str, int], list[_FluxObject]] = {}
    seen = {key: [untraced(each.data) for each in several] for key, several in known.items()}
    for several in objects:
        for each in several:
            key = (each.file, each.position)
            if _is_kind(each.data, GROUP, "Kustomization") and each.data not in seen.setdefault(key, []):
                seen[key].append(each.data)
                found.setdefault(key, []).append(_FluxObject(*key, each.location, each.traced))
    return found


def _is_kind(data: Any, group: str, kind: str) -> bool:
    if not isinstance(data, dict) or value_of(data.get("kind")) != kind:
        return False
    return str(value_of(data.get("apiVersion"))).rpartition("/")[0] == group


def _changes(kustomization: _FluxObject) -> bool:
    """Return True if Flux applies something else than what the folder of a Kustomization has."""
    fills_in = any(kustomization.post_build.get(field) for field in ("substitute", "substituteFrom"))
    return fills_in or any(kustomization.spec.get(field) for field in (*_LISTS, "components"))


def _read_pairs(data: Mapping[str, Any], location: Location) -> dict[str, Variable]:
    """Return the variables of a mapping; Flux removes line breaks."""
    pairs = ((key, value_of(value)) for key, value in data.items())
    return {
        str(key): Variable(value.replace("\n", ""), location_of(key) or location)
        for key, value in pairs
        if isinstance(value, str) and _VALID_NAME.match(key)
    }


def _count_shared(one: str, other: str) -> int:
    return len(posixpath.commonprefix([one.split("/")[:-1], other.split("/")[:-1]]))
