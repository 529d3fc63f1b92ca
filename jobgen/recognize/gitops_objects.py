"""The objects of Argo CD and Flux in a tree, as the builds that change them make them, and its repository."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jobgen.k8s.nodes import as_mapping
from jobgen.kustomize.resource import read_documents
from jobgen.kustomize.tree import FolderTree
from jobgen.model.data import Location, location_of, text_of, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.recognize import NOT_JUDGED, Taken
from jobgen.recognize.tree import Surroundings
from jobgen.repo import git
from jobgen.repo.files import Build, File

ARGO, FLUX, HELM, SOURCE = (
    "argoproj.io",
    "kustomize.toolkit.fluxcd.io",
    "helm.toolkit.fluxcd.io",
    "source.toolkit.fluxcd.io",
)
BOOTSTRAPPED = "flux-system"
"""The source that `flux bootstrap` creates: the repository that the Kustomizations are in."""
_SSH = lazy_pattern(r"(?:[\w.-]+@)?([\w.-]+):(?!/)(.*)\Z")
_SCHEME = lazy_pattern(r"[a-z][a-z0-9+.-]*://(?:[^/@]*@)?([^/:]+)(?::\d+)?/(.*)\Z")


class GitOpsObject(NamedTuple):
    """An object of Argo CD or Flux, or one that it names; its data has locations."""

    file: str
    position: int
    location: Location
    data: Mapping[str, Any]
    build: Build | None = None
    """The kustomization that makes it; None if it is as its file has it."""

    @property
    def group(self) -> str:
        """The group of its kind."""
        return text_of(self.data.get("apiVersion")).rpartition("/")[0]

    @property
    def kind(self) -> str:
        """Its kind."""
        return text_of(self.data.get("kind"))

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Its metadata."""
        return as_mapping(self.data.get("metadata"))

    @property
    def name(self) -> str:
        """Its name."""
        return text_of(self.metadata.get("name"))

    @property
    def namespace(self) -> str:
        """Its namespace; empty if it has none."""
        return text_of(self.metadata.get("namespace"))

    @property
    def spec(self) -> Mapping[str, Any]:
        """Its spec."""
        return as_mapping(self.data.get("spec"))


def read_address(url: str) -> str:
    """Return the host and the path of a repository, however its address is written; empty for a path on disk."""
    match = _SCHEME.match(url.strip()) or _SSH.match(url.strip())
    if match is None:
        return ""
    return f"{match[1]}/{match[2].strip('/').removesuffix('.git')}".lower()


class GitOpsTree:
    """The objects of Argo CD and Flux in a tree."""

    def __init__(
        self,
        around: Surroundings,
        taken: Mapping[str, Taken],
        builds: Mapping[str, Build],
        filling: Mapping[str, Sequence[Build]] = MappingProxyType({}),
    ) -> None:
        """Start with the tree; `builds` are those of kustomizations, by their files.

        `filling` has the builds that fill in the variables of files, by these files.
        """
        self.around = around
        self._taken = taken
        self._builds = builds
        self._filling = filling

    @cached_property
    def objects(self) -> list[GitOpsObject]:
        """All objects of Argo CD and Flux; one that several builds make differently is there several times."""
        found: list[GitOpsObject] = []
        roots: dict[str, None] = {}
        files = set()
        filling: dict[int, Build] = {}
        for path in self.around.tree.gitops_files:
            taken = self._taken.get(path)
            if path in self._filling and b"${" in self.read(path).content:
                files.add(path)
                filling |= {id(build): build for build in self._filling[path]}
                continue
            members = [each for each in self.around.plan.members.get(path, ()) if each in self._builds]
            if members:
                files.add(path)
                roots.update(dict.fromkeys(members))
            elif taken is None or taken.sort.treatment != NOT_JUDGED:
                found += (each for each in self._read(path) if _is_gitops(each))
        for build in (*(self._builds[root] for root in roots), *filling.values()):
            for made in build().objects:
                if made.file in files and _is_gitops_data(made.data):
                    found.append(GitOpsObject(made.file, made.position, made.location, made.traced, build))
        unique: dict[tuple[str, int, str], GitOpsObject] = {}
        for each in found:
            unique.setdefault((each.file, each.position, repr(each.data)), each)
        return list(unique.values())

    def list_kind(self, group: str, *kinds: str) -> list[GitOpsObject]:
        """Return the objects of some kinds of a group."""
        return [each for each in self.objects if each.group == group and each.kind in kinds]

    def _read(self, path: str) -> Iterator[GitOpsObject]:
        documents = read_documents(self.around.tree.read(path).content, path, "manifest")
        for position, data in enumerate(documents.data):
            if isinstance(data, dict):
                yield GitOpsObject(path, position, location_of(data) or Location(path), data)

    # The repository

    @cached_property
    def _own_addresses(self) -> frozenset[str]:
        """The addresses that are certainly those of this repository."""
        source = self.around.tree.source
        remotes = git.read_remotes(Path(str(source.folder))) if isinstance(source, FolderTree) else []
        bootstrapped = (each for each in self.list_kind(SOURCE, "GitRepository") if each.name == BOOTSTRAPPED)
        urls = (*remotes, *(text_of(each.spec.get("url")) for each in bootstrapped))
        return frozenset(filter(None, map(read_address, urls)))

    def is_own(self, url: str) -> bool:
        """Return True if an address is certainly that of this repository."""
        return read_address(url) in self._own_addresses

    def may_be_own(self, url: str) -> bool:
        """Return True if an address may be that of this repository, or of what it is a copy of."""
        address = read_address(url)
        names = {each.rpartition("/")[2] for each in self._own_addresses}
        return not names or address in self._own_addresses or address.rpartition("/")[2] in names

    def find_path(self, path: str) -> str | None:
        """Return a path from the top of the repository as one from the linted folder; None if it is outside."""
        if "\0" in path:
            return None
        wanted = posixpath.normpath(posixpath.join("/", path)).lstrip("/") or "."
        found = posixpath.relpath(wanted, self.around.above or ".")
        return "" if found == "." else found

    def exists(self, path: str) -> bool:
        """Return True if there is a file or folder at a path from the linted folder."""
        return path == "" or self.around.tree.exists(path)

    # Values in objects of the cluster

    def find_holder(self, kind: str, name: str, namespace: str, near: GitOpsObject) -> GitOpsObject | None:
        """Return the ConfigMap or Secret of a name; None if it is not the only one that it can be."""
        if near.build is not None:
            made = [each for each in near.build().objects if _is_holder(each.data, kind, name, namespace)]
            if len(made) == 1:
                return GitOpsObject(made[0].file, made[0].position, made[0].location, made[0].traced, near.build)
        found = [each for each in self._holders.get((kind, name), ()) if each.namespace in ("", namespace)]
        nearest = max((_count_shared(each.file, near.file) for each in found), default=0)
        found = [each for each in found if _count_shared(each.file, near.file) == nearest]
        return found[0] if len(found) == 1 else None

    def list_holders(self, kind: str) -> set[str]:
        """Return the names of the ConfigMaps or Secrets of the tree."""
        return {name for known, name in self._holders if known == kind}

    def is_generated(self, name: str) -> bool:
        """Return True if a kustomization, or another object, may write a ConfigMap or Secret of a name."""
        text = name.encode()
        return any(text in content for content in self._generators)

    @cached_property
    def _generators(self) -> list[bytes]:
        contents = (
            self.around.tree.read(path).content for path in self.around.paths if path.endswith((".yaml", ".yml"))
        )
        signs = (b"Generator", b"ExternalSecret", b"SealedSecret", b"namePrefix", b"nameSuffix")
        return [content for content in contents if any(sign in content for sign in signs)]

    @cached_property
    def _holders(self) -> dict[tuple[str, str], list[GitOpsObject]]:
        found: dict[tuple[str, str], list[GitOpsObject]] = {}
        for path in self.around.paths:
            content = self.around.tree.read(path).content if path.endswith((".yaml", ".yml")) else b""
            if b"ConfigMap" in content or b"Secret" in content:
                for each in self._read(path):
                    if each.kind in ("ConfigMap", "Secret"):
                        found.setdefault((each.kind, each.name), []).append(each)
        return found

    def read_lines(self, file: str) -> list[str]:
        """Return the lines of a file."""
        return self.read(file).content.decode("utf-8", "replace").split("\n")

    def read(self, path: str) -> File:
        """Return a file by its path from the linted folder."""
        return self.around.tree.read(path)


def _is_gitops(found: GitOpsObject) -> bool:
    return _is_gitops_data(found.data)


def _is_gitops_data(data: Mapping[str, Any]) -> bool:
    group = str(value_of(data.get("apiVersion"))).rpartition("/")[0]
    return group in (ARGO, FLUX, HELM, SOURCE)


def _is_holder(data: Mapping[str, Any], kind: str, name: str, namespace: str) -> bool:
    metadata = as_mapping(data.get("metadata"))
    return (
        data.get("kind") == kind
        and metadata.get("name") == name
        and (metadata.get("namespace") or "") in ("", namespace)
    )


def _count_shared(one: str, other: str) -> int:
    return len(posixpath.commonprefix([one.split("/")[:-1], other.split("/")[:-1]]))
