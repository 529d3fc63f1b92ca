"""The files around a file, which say what it is: read on demand, from disk or from a commit."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from jobgen.kustomize.tree import Plan, SourceTree, Tool
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.files import File, FileEntry

if TYPE_CHECKING:
    from jobgen.spec.overlay import Cluster

# Files that fill manifests in, and pages that say how.
_SCRIPT = lazy_pattern(
    r"(?:\A|/)(?:Makefile|justfile|Justfile|Taskfile\.ya?ml|Tiltfile|Jenkinsfile)\Z"
    r"|(?:\A|/)(?:\.github/workflows/[^/]+\.ya?ml|\.gitlab-ci\.ya?ml|azure-pipelines\.ya?ml|bitbucket-pipelines\.yml)\Z"
    r"|\.(?:sh|bash|bats|zsh|fish|ps1|py|go|js|ts|rb|mk|tf)\Z"
)
_PAGE = lazy_pattern(r"\.(?:md|mdx|rst|txt|adoc|ipynb)\Z")
_YAML = (".yaml", ".yml")
_MAX_SCRIPTS = 2_000
_MAX_SCRIPT_BYTES = 200_000
"""How many scripts and pages are searched, and how much of each."""


def list_folders(path: str) -> Iterator[str]:
    """Return the folder of a file, and those above it, up to the linted one, which has no name."""
    while path not in ("", "/"):
        path = posixpath.dirname(path)
        yield path


class FileTree:
    """The files of the linted folder: those that are walked, and any other that is asked for by its path."""

    def __init__(self, source: SourceTree, paths: Iterable[str], held: Iterable[FileEntry] = ()) -> None:
        """Start with the paths of the files that are walked; `held` are those that have been read."""
        self.source = source
        self._paths = tuple(paths)
        self._lines: dict[str, list[str]] = {}
        self.images: dict[tuple[str, int, bool], str] = {}
        """The images near lines, for `read_image`."""
        self._known = {entry.path: File(entry.path, entry.content) for entry in held if entry.content is not None}

    def read(self, path: str) -> File:
        """Return a file by its path; it has a finding if it cannot be read."""
        if path not in self._known:
            self._known[path] = self.source.read(path)
        return self._known[path]

    def read_lines(self, path: str) -> list[str]:
        """Return the lines of a file."""
        if path not in self._lines:
            self._lines[path] = self.read(path).content.decode("utf-8", "replace").split("\n")
        return self._lines[path]

    @cached_property
    def gitops_files(self) -> list[str]:
        """The walked manifests that may have objects of Argo CD or Flux."""
        found: list[str] = []
        for path in self._paths:
            if path.endswith(_YAML):
                content = self.read(path).content
                if b"toolkit.fluxcd.io/" in content or b"argoproj.io/" in content:
                    found.append(path)
        return found

    def has_text(self, text: bytes) -> bool:
        """Return True if a manifest that may have objects of Argo CD or Flux has a text."""
        return any(text in self.read(path).content for path in self.gitops_files)

    @cached_property
    def is_synced(self) -> bool:
        """Return True if Argo CD or Flux keeps objects of these files running."""
        signs = (b"kind: Application", b"kustomize.toolkit.fluxcd.io/", b"helm.toolkit.fluxcd.io/")
        return any(map(self.has_text, signs))

    def list_with(self, text: bytes, suffixes: tuple[str, ...]) -> list[str]:
        """Return the walked files, with one of some endings, that have a text."""
        return [path for path in self._paths if path.endswith(suffixes) and text in self.read(path).content]

    def find_text(self, text: bytes, suffixes: tuple[str, ...]) -> str:
        """Return a walked file, with one of some endings, that has a text; empty without one."""
        for path in self._paths:
            if path.endswith(suffixes) and text in self.read(path).content:
                return path
        return ""

    def exists(self, path: str) -> bool:
        """Return True if there is a file or folder at a path."""
        return path in self._known or self.source.exists(path)

    @cached_property
    def _texts(self) -> dict[str, list[str]]:
        """The scripts and pages by the folder they are in."""
        found: dict[str, list[str]] = {}
        texts = (path for path in self._paths if _SCRIPT.search(path) or _PAGE.search(path))
        for path in islice(texts, _MAX_SCRIPTS):
            found.setdefault(posixpath.dirname(path), []).append(path)
        return found

    def find_script(self, near: str, *texts: bytes) -> str:
        """Return a script in the folder of a file, or above it, that has some texts in one line; empty without one."""
        for path in self.list_texts(near):
            lines = self._search(path).split(b"\n") if _SCRIPT.search(path) and texts[0] in self._search(path) else ()
            if any(all(text in line for text in texts) for line in lines):
                return path
        return ""

    def find_mention(self, near: str, *texts: bytes) -> str:
        """Return a script or page in the folder of a file, or above it, that has some texts; empty without one."""
        return next((path for path in self.list_texts(near) if all(text in self._search(path) for text in texts)), "")

    def list_beside(self, path: str) -> list[str]:
        """Return the walked files in the folder of a file."""
        folder = posixpath.dirname(path)
        return [each for each in self._paths if posixpath.dirname(each) == folder]

    def list_all_texts(self) -> Iterator[str]:
        """Return all scripts and pages."""
        for several in self._texts.values():
            yield from several

    def list_texts(self, near: str) -> Iterator[str]:
        """Return the scripts and pages in the folder of a file, then those above it."""
        for folder in list_folders(near):
            yield from self._texts.get(folder, ())

    def _search(self, path: str) -> bytes:
        return self.read(path).content[:_MAX_SCRIPT_BYTES]


class Surroundings(NamedTuple):
    """What is known about the files of a lint."""

    tree: FileTree
    paths: Sequence[str]
    plan: Plan
    closures: Mapping[str, frozenset[str]]
    """All files that the build of each root of the plan reads."""
    objects: frozenset[str]
    """The files whose objects are judged by themselves."""
    above: str
    """The path of the linted folder from the top of the Git repository, where the paths of Flux begin."""
    tool: Tool | None
    """What builds the kustomizations that jobgen cannot build."""


class ChartOptions(NamedTuple):
    """How charts are rendered."""

    has_tool: bool = False
    """True if other programs may be started."""
    values: Sequence[str] = ()
    """The files of values that all charts are rendered with; without them, each with those of its releases."""
    find_cluster: Callable[[], Cluster] | None = None
    """Returns the cluster that charts are rendered for; None if it is not known."""
    home: str = ""
    """The repository on disk, of which no file is run; empty if it is not known."""
    archives: Sequence[str] = ()
    """The linted files that are packaged charts by their names."""
