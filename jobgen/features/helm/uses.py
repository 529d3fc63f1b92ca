"""Which values a chart is used with: its own, those of files beside it, and those of its releases."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any

from jobgen.features.helm.charts import VALUES, Chart
from jobgen.model.data import Location, TracedKey, TracedScalar, ValidFields, untraced
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.recognize.tree import FileTree
from jobgen.repo.files import File, Release
from jobgen.yamlio.read import read

_VALUES_FILE = lazy_pattern(r"(?:values[\w.-]*|[\w.-]*[-_.]values)\.ya?ml\Z")
_RELEASE = lazy_pattern(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")


class Values(NamedTuple):
    """Values from a file, or from a field of an object."""

    file: File
    """As helm reads it."""
    data: Any = None
    """With locations, for values that are not a file of the tree."""
    is_secret: bool = False
    """True if a Secret has them: nothing shows them."""

    def read(self) -> Any:
        """Return the values with locations; None if there are none. They must not be changed."""
        return _read_shared(self.file.content, self.file.path) if self.data is None else self.data


@lru_cache(maxsize=128)
def _read_shared(content: bytes, path: str) -> Any:
    """Return what helm reads of a file: its first document."""
    documents = read(content, path, traced=True).documents
    return documents[0].data if documents else None


_KEYS = lazy_pattern(r"[^.\[\]\\=,{}]+(?:\.[^.\[\]\\=,{}]+)*\Z")
_INTEGER = lazy_pattern(r"(?:0|-?[1-9]\d{0,17})\Z")
_SIGNS = frozenset("{},\\")


def is_plain(name: str, text: str) -> bool:
    """Return True if `--set` sets a field to a text as it stands."""
    return _KEYS.match(name) is not None and _SIGNS.isdisjoint(text)


def set_at(name: str, leaf: TracedScalar, at: Location | None = None, *, is_exact: bool = False) -> Values | None:
    """Return a value as the values that set it at a path; None if the path is not plain, or the value if not exact.

    `at` is where the path stands.
    """
    if not is_plain(name, "" if is_exact else str(leaf.value)):
        return None
    data: Any = leaf
    for key in reversed(name.split(".")):
        data = {TracedKey.at(key, at or leaf.location): data}
    return Values(File(leaf.location.file, json.dumps(untraced(data)).encode("utf-8", "surrogatepass")), data)


def read_typed(text: str) -> Any:
    """Return the value that `--set` reads from a text."""
    words = {"true": True, "false": False, "null": None}
    lowered = text.lower()
    if lowered in words:
        return words[lowered]
    return int(text) if _INTEGER.match(text) else text


class Part(Enum):
    """A part of what a chart installs that a release can leave out."""

    CRDS = "crds"
    HOOKS = "hooks"
    TESTS = "tests"


class Use(NamedTuple):
    """A chart with the values of one release."""

    chart: Chart
    release: str
    namespace: str = ""
    values: tuple[Values, ...] = ()
    options: tuple[str, ...] = ()
    """`--set` and the like, each with its argument."""
    places: tuple[Location, ...] = ()
    """Where the options stand."""
    inputs: tuple[File, ...] = ()
    """The files that the options name."""
    open: tuple[str, ...] = ()
    """The paths of values that the options set to something that is not known here."""
    by: Location | None = None
    """What uses the chart; None for its default values, and for a file of values beside it."""
    is_definite: bool = False
    """True if all values are those of a release, so that it fails if they do."""
    is_replaced: bool = False
    """True if releases of the repository have other values, so that nothing is installed with these alone."""
    base: tuple[Values, ...] = ()
    """The values that the release has instead of the chart's own; empty if it has these."""
    sources: tuple[File, ...] = ()
    """The files of the objects that say what is released."""
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()
    is_merged: bool = False
    """True if what installs it applies each object by itself, as Argo CD does."""
    without: frozenset[Part] = frozenset()
    """What of the chart is not installed."""

    @property
    def given(self) -> Iterator[Values]:
        """The options that set plain fields, as values."""
        # Those of objects have no places: they are no plain fields.
        for name, argument, place in zip(self.options[::2], self.options[1::2], self.places, strict=False):
            path, sign, text = argument.partition("=")
            if name in ("--set", "--set-string") and sign and path not in self.open:
                value: Any = text if name == "--set-string" else read_typed(text)
                found = set_at(path, TracedScalar(value, place))
                yield from [found] if found else []

    @property
    def name(self) -> str:
        """What tells it from other uses of the chart."""
        files = dict.fromkeys(each.file.path for each in (*self.base, *self.values))
        return ", ".join((*files, *([f"{self.by} {self.release}"] if self.by else ())))

    def release_of(self, *, is_installed: bool) -> Release:
        """Return what is installed, in words of the repository."""
        own = self.chart.join(VALUES)
        files = dict.fromkeys(each.file.path for each in (*self.base, *self.values) if each.file.path != own)
        by = self.by.file if self.by else ""
        known = (self.chart.folder, self.release, self.namespace, tuple(files), by)
        return Release(*known, is_installed, is_declared=bool(self.sources))


def list_own_uses(chart: Chart, tree: FileTree, commands: Sequence[Use]) -> list[Use]:
    """Return the uses of a chart by its folder and by commands."""
    default = Use(chart, name_release(chart))
    # Commands with the same files of values are variants of one release.
    commands = list({tuple(one.file for one in each.values): each for each in reversed(commands)}.values())
    if any(each.options for each in commands):
        # What is documented never uses the defaults alone.
        return [each for each in commands if each.options or each.values]
    beside = (default._replace(values=(Values(file),)) for file in _find_values_files(chart, tree))
    return [default, *commands, *beside]


def name_release(chart: Chart, wanted: str = "") -> str:
    """Return the name of a release: the wanted one if it is valid, else that of the chart."""
    names = (wanted, chart.name.lower()[:53].strip("-"), "release")
    return next(each for each in names if len(each) <= 53 and _RELEASE.match(each))


def _find_values_files(chart: Chart, tree: FileTree) -> Iterator[File]:
    """Yield the values files beside a chart that a page or script names."""
    for path in tree.list_beside(chart.metadata_file):
        name = posixpath.basename(path)
        if name != VALUES and is_values_file(path) and tree.find_mention(path, name.encode()):
            yield tree.read(path)


def is_values_file(path: str) -> bool:
    """Return True if a file has the name of one with values."""
    return _VALUES_FILE.match(posixpath.basename(path)) is not None


def merge_values(fields: Mapping[str, Any], over: Mapping[str, Any]) -> ValidFields:
    """Return values with others over them, as helm merges them: mappings are merged, and null removes a key."""
    merged = dict(fields)
    for key, value in over.items():
        known = merged.get(key)
        merged[key] = merge_values(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return merged


def split_path(text: str) -> tuple[str, ...]:
    """Return the steps of the path that `--set` names."""
    return tuple(re.split(r"(?<!\\)\.|\[", text.replace("]", "")))
