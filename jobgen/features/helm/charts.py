"""A chart of the tree: its files, its metadata, and the charts that it depends on."""

from __future__ import annotations

import gzip
import io
import posixpath
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import IO, Any, cast

from jobgen.features.helm.marked_chart import MarkedChart
from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.kustomize.tree import FolderTree, SourceTree, resolve_path
from jobgen.model.data import untraced
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.files import File
from jobgen.repo.walk import walk_all
from jobgen.yamlio.read import read

METADATA = "Chart.yaml"
VALUES = "values.yaml"
SCHEMA = "values.schema.json"
_TEMPLATES, _CRDS, _CHARTS = "templates", "crds", "charts"
_REQUIREMENTS = "requirements.yaml"
_TOP = (METADATA, VALUES, SCHEMA, ".helmignore", "Chart.lock", _REQUIREMENTS, "requirements.lock")
_ARCHIVES = (".tgz", ".tar.gz")
MAX_FILES, MAX_BYTES = 2_000, 32 * 1024 * 1024
"""The files of a chart with its subcharts, and their bytes; vendored charts of large applications have a tenth."""
_MAX_DEPTH = 5
# A file in the action of a template that gets it, also if a part of its path is filled in.
_READ = lazy_pattern(r"\.Files\.\w+[ \t]+(?:\(?printf[ \t]+)?\"([\w./%*-]+)\"")
_WILD = lazy_pattern(r"%\w|\\\*(?:\\\*)?")
_MAX_READS = 100
_ASKED = lazy_pattern(rb"APIVersions\.Has[ \t]+[\"`]([\w./-]+)[\"`]")


class Dependency(NamedTuple):
    """A chart that another one names in its metadata."""

    name: str
    alias: str
    repository: str
    condition: str


class ChartFault(NamedTuple):
    """Why a chart is not rendered: a file that is not read, or too much of them."""

    file: str
    message: str


class Chart:
    """A folder with a `Chart.yaml`."""

    def __init__(self, tree: SourceTree, folder: str) -> None:
        """Start with a folder; its files are read when they are needed."""
        self.tree = tree
        self.folder = folder

    def join(self, path: str) -> str:
        """Return the path of a file of the chart from the linted folder."""
        return posixpath.join(self.folder, path)

    @property
    def metadata_file(self) -> str:
        """The path of its `Chart.yaml`."""
        return self.join(METADATA)

    @cached_property
    def metadata(self) -> Any:
        """The fields of its `Chart.yaml`; empty if it cannot be read."""
        return read_fields(self.tree.read(self.metadata_file))

    @property
    def name(self) -> str:
        """The name in its metadata."""
        return read_name(self.metadata)

    @property
    def is_library(self) -> bool:
        """Return True if the chart has named templates only, which other charts use."""
        return str(self.metadata.get("type")) == "library"

    @cached_property
    def dependencies(self) -> list[Dependency]:
        """The charts that it names, in its metadata or, in older charts, in a file of their own."""
        listed = as_list(self.metadata.get("dependencies"))
        if not listed and self.tree.exists(self.join(_REQUIREMENTS)):
            listed = as_list(read_fields(self.tree.read(self.join(_REQUIREMENTS))).get("dependencies"))
        fields = ("name", "alias", "repository", "condition")
        return [Dependency(*(read_name(as_mapping(each), name) for name in fields)) for each in listed]

    @property
    def local_folders(self) -> set[str]:
        """The folders of the charts that it names by their folders, and of those that these name."""
        found: set[str] = set()
        pending: list[tuple[Chart, int]] = [(self, 0)]
        while pending:
            chart, depth = pending.pop()
            for each in chart.dependencies if depth < _MAX_DEPTH else ():
                folder = each.repository.removeprefix("file://")
                place = resolve_path(self.tree, chart.folder, folder) if folder != each.repository else None
                if place is not None and place not in found and self.tree.exists(posixpath.join(place, METADATA)):
                    found.add(place)
                    pending.append((Chart(self.tree, place), depth + 1))
        return found

    @cached_property
    def files(self) -> Mapping[str, bytes]:
        """The files that helm reads, by their path in the chart; charts in archives are unpacked."""
        return self._loaded[0]

    @property
    def fault(self) -> ChartFault | None:
        """Why not all of its files can be read; None if they can."""
        return self._loaded[1]

    @cached_property
    def origins(self) -> Mapping[str, str]:
        """The path of each file from the linted folder; that of the archive for what was unpacked."""
        return self._loaded[2]

    @cached_property
    def _loaded(self) -> tuple[dict[str, bytes], ChartFault | None, dict[str, str]]:
        loader = _Loader(self.tree)
        loader.load(self, "", 0)
        return loader.files, loader.fault, loader.origins

    @cached_property
    def missing(self) -> list[Dependency]:
        """The charts that it depends on and that are not there: they must be downloaded."""
        present = self._list_present()
        return [each for each in self.dependencies if each.name not in present]

    def _list_present(self) -> set[str]:
        found: set[str] = set()
        for path, content in self.files.items():
            names = path.split("/")
            if len(names) == 3 and names[0] == _CHARTS and names[2] == METADATA:
                found.add(read_name(read_fields(File(path, content))) or names[1])
        return found

    @cached_property
    def sources(self) -> dict[str, str]:
        """The paths of its files by the paths that helm prints, in which a folder has the name of its chart."""
        names: dict[str, str] = {}
        for path, content in self.files.items():
            folder, _, name = path.rpartition("/")
            if name == METADATA and posixpath.basename(posixpath.dirname(folder)) == _CHARTS:
                names[folder] = read_name(read_fields(File(path, content))) or posixpath.basename(folder)
        aliases = {each.name: each.alias for each in self.dependencies if each.alias}
        found: dict[str, str] = {}
        for path in self.files:
            shown = _rename_folders(path, names)
            found[shown] = path
            parts = shown.split("/")
            if parts[0] == _CHARTS and len(parts) > 2 and parts[1] in aliases:
                found["/".join((_CHARTS, aliases[parts[1]], *parts[2:]))] = path
        return found

    @cached_property
    def asked_apis(self) -> frozenset[str]:
        """The versions and kinds that its templates ask the cluster for by their names."""
        texts = (content for content in self.files.values() if b"APIVersions" in content)
        return frozenset(name.decode() for text in texts for name in _ASKED.findall(text))

    def reads_file(self, path: str) -> bool:
        """Return True if a template names a file of the chart: what it becomes is a part of what helm renders."""
        return any(pattern.match(path) for pattern in self._read_patterns)

    @cached_property
    def _read_patterns(self) -> list[re.Pattern[str]]:
        texts = (content.decode("utf-8", "replace") for content in self.files.values() if b".Files" in content)
        named = dict.fromkeys(name for text in texts for name in _READ.findall(text))
        return [re.compile(_WILD.sub("[^/]*", re.escape(name)) + r"\Z") for name in islice(named, _MAX_READS)]

    @cached_property
    def templates(self) -> dict[str, str]:
        """The text of the templates, also those of charts in it, by path."""
        return {
            path: content.decode("utf-8", "replace")
            for path, content in self.files.items()
            if is_template(path) and not path.endswith(("NOTES.txt", ".png"))
        }

    @cached_property
    def marked(self) -> MarkedChart:
        """The copy of the chart whose output tells the lines of its templates."""
        texts = {path: text for path, text in self.templates.items() if "\ufffd" not in text}
        return MarkedChart(texts, [content for path, content in self.files.items() if is_crd(path)])


def read_name(fields: Mapping[str, Any], key: str = "name") -> str:
    """Return a text of metadata as helm reads it: also what YAML takes for a number or for true."""
    value = fields.get(key)
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def is_packaged(content: bytes) -> bool:
    """Return True if an archive begins with the metadata of a chart, as `helm package` writes it."""
    try:
        with gzip.open(io.BytesIO(content)) as stream:
            start = stream.read(tarfile.BLOCKSIZE)
        name = tarfile.TarInfo.frombuf(start, "utf-8", "replace").name
    except (OSError, EOFError, zlib.error, tarfile.TarError):
        return False
    return posixpath.basename(name) == METADATA


def is_archive(path: str) -> bool:
    """Return True if a file has the name of an archive."""
    return path.endswith(_ARCHIVES)


def is_template(path: str) -> bool:
    """Return True if a file of a chart is a template of it, or of a chart in it."""
    names = path.split("/")
    while len(names) > 2 and names[0] == _CHARTS:
        names = names[2:]
    return len(names) > 1 and names[0] == _TEMPLATES


def is_crd(path: str) -> bool:
    """Return True if a file is one that helm prints as it is, because it defines kinds."""
    names = path.split("/")
    while len(names) > 2 and names[0] == _CHARTS:
        names = names[2:]
    return len(names) > 1 and names[0] == _CRDS


def read_fields(file: File) -> Any:
    """Return the fields of a file that has one mapping; none if it cannot be read."""
    source = read(file.content, file.path)
    return untraced(source.documents[0].data) if len(source.documents) == 1 else {}


def _rename_folders(path: str, names: Mapping[str, str]) -> str:
    parts = path.split("/")
    return "/".join(names.get("/".join(parts[: at + 1]), part) for at, part in enumerate(parts))


class _Unpacked:
    """What is in a compressed archive, up to a limit."""

    def __init__(self, content: bytes) -> None:
        self._stream = gzip.GzipFile(fileobj=io.BytesIO(content))
        self._left = 2 * MAX_BYTES

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        found = self._stream.read(size)
        self._left -= len(found)
        if self._left < 0:
            raise OSError(f"it has more than {2 * MAX_BYTES >> 20} MiB")
        return found


class _Loader:
    """Reads the files of a chart and of those that it depends on, up to a limit."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self.files: dict[str, bytes] = {}
        self.origins: dict[str, str] = {}
        self.fault: ChartFault | None = None
        self.is_full = False
        """True if there are too many files, so that no further ones are read."""
        self.size = 0

    def load(self, chart: Chart, prefix: str, depth: int) -> None:
        """Add the files of a chart at a place in the first one."""
        for path in self.list_paths(chart):
            if self.is_full:
                return
            inside = path[len(chart.folder) + 1 :] if chart.folder else path
            file = self.tree.read(path)
            if file.finding:
                self.fault = self.fault or ChartFault(path, file.finding.message)
            elif inside.startswith(f"{_CHARTS}/") and inside.endswith(_ARCHIVES):
                self.unpack(file.content, path, f"{prefix}{_CHARTS}/")
            elif not inside.startswith(f"{_CHARTS}/") or inside.count("/") > 1:
                self.add(f"{prefix}{inside}", file.content, path)
        for each in chart.dependencies:
            self.load_local(chart, each, prefix, depth)

    def load_local(self, chart: Chart, wanted: Dependency, prefix: str, depth: int) -> None:
        """Add a chart that another one names by its folder, as `helm dependency build` does."""
        folder = wanted.repository.removeprefix("file://")
        place = f"{prefix}{_CHARTS}/{wanted.name}/"
        if folder == wanted.repository or depth >= _MAX_DEPTH or "/" in wanted.name or not wanted.name:
            return
        found = resolve_path(self.tree, chart.folder, folder)
        is_there = f"{place}{METADATA}" in self.files
        if found is not None and not is_there and self.tree.exists(posixpath.join(found, METADATA)):
            self.load(Chart(self.tree, found), place, depth + 1)

    def list_paths(self, chart: Chart) -> Iterator[str]:
        """Yield the files of a chart that helm may read; all of them only if a template asks for others."""
        yield from (path for path in map(chart.join, _TOP) if self.tree.exists(path))
        found = [path for name in (_TEMPLATES, _CRDS, _CHARTS) for path in self.walk(chart.join(name))]
        yield from found
        templates = (self.tree.read(path).content for path in found if f"/{_TEMPLATES}/" in f"/{path}")
        if any(b".Files" in content for content in templates):
            known = {*found, *map(chart.join, _TOP)}
            yield from (path for path in self.walk(chart.folder or ".") if path not in known)

    def walk(self, folder: str) -> Iterator[str]:
        """Yield the paths of the files below a folder; what leads out of the repository is a fault."""
        if not isinstance(self.tree, FolderTree) or not self.tree.is_folder(folder):
            return
        for count, entry in enumerate(walk_all(self.tree.folder, folder, ("",))):
            path = posixpath.normpath(entry.path)
            if count > MAX_FILES:
                self.fault, self.is_full = ChartFault(path, f"the chart has more than {MAX_FILES:,} files"), True
                return
            if entry.finding:
                # Its other files say which files are those of the chart.
                self.fault = self.fault or ChartFault(path, entry.finding.message)
            elif not entry.skipped:
                yield path

    def add(self, path: str, content: bytes, origin: str) -> None:
        """Add a file, if there is room for it."""
        self.size += len(content)
        if len(self.files) >= MAX_FILES or self.size > MAX_BYTES:
            limit = f"{MAX_FILES:,} files or {MAX_BYTES >> 20} MiB"
            self.fault, self.is_full = ChartFault(origin, f"the chart has more than {limit}"), True
        else:
            self.files[path] = content
            self.origins[path] = origin

    def unpack(self, content: bytes, origin: str, prefix: str, depth: int = 0) -> None:
        """Add the files of an archive, also those of archives in it."""
        try:
            # The reader of `r|gz` does not know the comment that helm writes into an archive.
            with tarfile.open(fileobj=cast("IO[bytes]", _Unpacked(content)), mode="r|") as archive:
                for member in archive:
                    if self.fault:
                        break
                    if member.issym() or member.islnk():
                        self.fault = ChartFault(origin, "the archive has a link; it is not followed")
                    elif member.isfile():
                        self.unpack_member(archive, member, origin, prefix, depth)
        except (tarfile.TarError, OSError, EOFError, ValueError, zlib.error) as error:
            self.fault = self.fault or ChartFault(origin, f"the archive cannot be read: {error}")

    def unpack_member(
        self, archive: tarfile.TarFile, member: tarfile.TarInfo, origin: str, prefix: str, depth: int
    ) -> None:
        path = posixpath.normpath(member.name)
        if path.startswith(("/", "../")) or "/" not in path:
            self.fault = ChartFault(origin, "the archive has a file that is not in the folder of a chart")
            return
        if member.size > MAX_BYTES - self.size:
            self.fault, self.is_full = ChartFault(origin, f"the chart has more than {MAX_BYTES >> 20} MiB"), True
            return
        stream = archive.extractfile(member)
        text = stream.read() if stream else b""
        inner = path.partition("/")[2]
        if inner.startswith(f"{_CHARTS}/") and inner.endswith(_ARCHIVES) and depth < _MAX_DEPTH:
            self.unpack(text, origin, f"{prefix}{path.partition('/')[0]}/{_CHARTS}/", depth + 1)
        else:
            self.add(f"{prefix}{path}", text, origin)
