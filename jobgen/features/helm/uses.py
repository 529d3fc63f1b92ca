"""Which values a chart is used with: its own, those of files beside it, and those of commands that people run."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.helm.charts import VALUES, Chart
from jobgen.model.data import Location, ValidFields
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.recognize.tree import FileTree
from jobgen.repo.files import File

_VALUES_FILE = lazy_pattern(r"(?:values[\w.-]*|[\w.-]*[-_.]values)\.ya?ml\Z")
_COMMAND = lazy_pattern(r"\bhelm[ \t]+(?:install|upgrade|template)\b[^\n]*")
_JOINED = lazy_pattern(r"\\\r?\n[ \t]*")
_RELEASE = lazy_pattern(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_MAX_COMMANDS = 20
_MAX_LINE = 4_000


class Values(NamedTuple):
    """Values from a file, or from a field of an object."""

    file: File
    """As helm reads it."""
    data: Any = None
    """With locations, for values that are not a file of the tree."""


class Use(NamedTuple):
    """A chart with the values of one release."""

    chart: Chart
    release: str
    namespace: str = ""
    values: tuple[Values, ...] = ()
    options: tuple[str, ...] = ()
    """`--set` and the like, each with its argument."""
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

    @property
    def name(self) -> str:
        """What tells it from other uses of the chart."""
        files = dict.fromkeys(each.file.path for each in (*self.base, *self.values))
        return ", ".join((*files, *([f"{self.by} {self.release}"] if self.by else ())))


def list_own_uses(chart: Chart, tree: FileTree) -> list[Use]:
    """Return the uses of a chart that its folder and the pages and scripts around it tell."""
    default = Use(chart, name_release(chart))
    # Commands with the same files of values are variants of one release.
    commands = list({each.values: each for each in reversed(list(_find_commands(chart, tree)))}.values())
    if any(each.options for each in commands):
        # Nobody uses its defaults alone.
        return [each for each in commands if each.options]
    beside = (default._replace(values=(Values(file),)) for file in _find_values_files(chart, tree))
    return list(dict.fromkeys((default, *commands, *beside)))


def name_release(chart: Chart, wanted: str = "") -> str:
    """Return the name of a release: the wanted one if it is valid, else that of the chart."""
    names = (wanted, chart.name.lower()[:53].strip("-"), "release")
    return next(each for each in names if len(each) <= 53 and _RELEASE.match(each))


def _find_values_files(chart: Chart, tree: FileTree) -> Iterator[File]:
    """Yield the values files beside a chart that a page or script names."""
    for path in tree.list_beside(chart.metadata_file):
        name = posixpath.basename(path)
        if name != VALUES and _VALUES_FILE.match(name) and tree.find_mention(path, name.encode()):
            yield tree.read(path)


def _find_commands(chart: Chart, tree: FileTree) -> Iterator[Use]:
    """Yield the uses by commands in pages and scripts of the folder of a chart, and of those above it."""
    count = 0
    for path in tree.list_texts(chart.metadata_file):
        text = tree.read(path).content[:200_000].decode("utf-8", "replace")
        if "helm" not in text:
            continue
        for match in _COMMAND.finditer(_JOINED.sub(" ", text)):
            count += 1
            if count > _MAX_COMMANDS:
                return
            use = _read_command(match[0], chart, tree, posixpath.dirname(path)) if len(match[0]) < _MAX_LINE else None
            if use:
                yield use


_ENDS = ("&&", "||", "|", ";", ">", "`")
_FILE_OPTIONS = ("-f", "--values")
_SET_OPTIONS = ("--set", "--set-string", "--set-json", "--set-literal")
_OWN_FOLDER = lazy_pattern(r"\A\$(?:\w+|\{\w+\})(?=/|\Z)|(?<==)\$(?:\w+|\{\w+\})(?=/)")
_VARIABLE = lazy_pattern(r"\$(?:(\w+)|\{(\w+)[^{}]*\})|<([\w -]+)>")


class _Command:
    """The options of a command as they are read."""

    def __init__(self, tree: FileTree, folder: str) -> None:
        self.tree = tree
        self.folder = folder
        self.positional: list[str] = []
        self.values: list[Values] = []
        self.options: list[str] = []
        self.inputs: list[File] = []
        self.open: list[str] = []

    def add(self, name: str, argument: str) -> bool:
        """Add an option, or a word without a name; return False if it names a file that is not there."""
        if not name:
            self.positional.append(argument)
        elif name in _FILE_OPTIONS:
            file = self.read(argument)
            self.values += [Values(file)] if file else []
            return file is not None
        elif name == "--set-file":
            key, _, path = argument.partition("=")
            file = self.read(path)
            self.options += ["--set-file", f"{key}={{{len(self.inputs)}}}"]
            self.inputs += [file] if file else []
            return file is not None
        elif name in _SET_OPTIONS:
            filled = _VARIABLE.sub(_name_variable, argument)
            self.open += [argument.partition("=")[0]] if filled != argument else []
            self.options += [name, filled]
        return True

    def read(self, path: str) -> File | None:
        found = posixpath.normpath(posixpath.join(self.folder, path))
        if "$" in path or found.startswith(("/", "..")) or not self.tree.exists(found):
            return None
        file = self.tree.read(found)
        return file if file.finding is None else None


def _name_variable(match: re.Match[str]) -> str:
    """Return a text in place of a variable, which most fields accept."""
    return (match[1] or match[2] or match[3]).lower().replace("_", "-").replace(" ", "-").strip("-") or "value"


def _read_command(line: str, chart: Chart, tree: FileTree, folder: str) -> Use | None:
    """Return the use of a chart by a command; None if the command is about another chart, or cannot be read."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return None
    end = next((at for at, word in enumerate(words) if word.startswith(_ENDS)), len(words))
    words = words[2:end]
    if folder == chart.folder:
        # The page of a chart often names its own folder by a variable.
        words = [_OWN_FOLDER.sub(".", word) for word in words]
    command = _Command(tree, folder)
    is_whole = all(command.add(name, argument) for name, argument in _split_options(words))
    names = command.positional
    paths = [posixpath.normpath(posixpath.join(folder, word)) for word in names[-1:]]
    if not is_whole or len(names) not in (1, 2) or paths != [chart.folder or "."]:
        return None
    release = name_release(chart, names[0] if len(names) == 2 else "")
    given = (tuple(command.values), tuple(command.options), tuple(command.inputs), tuple(command.open))
    return Use(chart, release, "", *given, Location(chart.metadata_file), is_definite=not command.options)


_FLAGS = frozenset(
    """--atomic --create-namespace --debug --dependency-update --devel --dry-run --force --generate-name -g --install -i
    --include-crds --no-hooks --replace --reset-values --reuse-values --skip-crds --wait --wait-for-jobs""".split()
)


def _split_options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the options of a command with their arguments, and its other words without a name."""
    pending = iter(words)
    for word in pending:
        name, separator, argument = word.partition("=")
        if not word.startswith("-"):
            yield "", word
        elif separator:
            yield name, argument
        elif word not in _FLAGS:
            yield word, next(pending, "")


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
