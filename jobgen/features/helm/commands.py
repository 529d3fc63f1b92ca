"""The uses of charts by commands in pages and scripts, with the variables and folders that these set before."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence

from jobgen.features.helm.charts import METADATA, Chart
from jobgen.features.helm.uses import Use, Values, name_release
from jobgen.model.data import Location
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.recognize.tree import FileTree
from jobgen.repo.files import File

_JOINED = lazy_pattern(r"\\\r?\n[ \t]*")
# A command, a variable that is set, or a folder that is entered.
_STATEMENT = lazy_pattern(
    r"\b(?P<helm>helm[ \t]+(?:install|upgrade|template)\b[^\n]*)"
    r"|(?m:^)[ \t]*(?:\$[ \t]+)?(?:export[ \t]+)?(?P<name>[A-Za-z_]\w*)(?:=|[ \t]*[:?]?=[ \t]*)(?P<value>[^\n]*)"
    r"|(?m:^)[ \t]*(?:\$[ \t]+)?cd[ \t]+(?P<folder>[^\s;&|]+)"
)
_TOP = lazy_pattern(r"[\"']?(?:\$\(|`)git rev-parse --show-toplevel(?:\)|`)[\"']?\Z")
_PAGES = (".md", ".mdx", ".rst", ".txt", ".adoc", ".ipynb")
_MAX_COMMANDS = 1_000
_MAX_LINE = 4_000
_MAX_TEXT = 200_000
_ENDS = ("&&", "||", "|", ";", ">", "`")
_FILE_OPTIONS = ("-f", "--values")
_SET_OPTIONS = ("--set", "--set-string", "--set-json", "--set-literal")
# A path from here, without variables.
_PLAIN = lazy_pattern(r"(?![/~])[\w./-]+\.(?:ya?ml|json)\Z")
_VARIABLE = lazy_pattern(r"\$(?:(\w+)|[({](\w+)[^(){}]*[)}])|<([\w -]+)>")
_FIRST_VARIABLE = lazy_pattern(r"\$(?:(\w+)|[({](\w+)[)}])(?=/|\Z)")


class Folders(NamedTuple):
    """Where a command is run, as far as the text before it tells."""

    tree: FileTree
    above: str
    """The path of the linted folder from the top of the repository."""
    page: str
    """The folder of the page."""
    folders: tuple[str, ...]
    """The folders that a path may begin in, the likeliest first."""
    variables: dict[str, str]
    """The variables that are paths from the linted folder."""

    def find(self, text: str) -> str | None:
        """Return the path of what a text names, if that exists."""
        first = _FIRST_VARIABLE.match(text)
        starts: tuple[str, ...] = self.folders
        if first:
            known = self.variables.get(first[1] or first[2])
            # The page of a chart often names its own folder by a variable, and others that of the repository.
            starts = (known,) if known is not None else (self.page, self.top)
            text = text[first.end() :].lstrip("/") or "."
        if "$" in text or "\0" in text or text.startswith(("/", "~")):
            return None
        paths = (posixpath.normpath(posixpath.join(start, text)) for start in starts)
        return next((path for path in paths if self.is_inside(path) and self.tree.exists(path)), None)

    @property
    def top(self) -> str:
        """The path of the top of the repository."""
        return posixpath.relpath(".", self.above) if self.above else ""

    def is_inside(self, path: str) -> bool:
        """Return True if a path is in the repository."""
        return path.split("/").count("..") <= len(list(filter(None, self.above.split("/"))))

    def set(self, name: str, text: str) -> None:
        """Remember a variable, if it is a path that exists."""
        bare = text.strip().strip("\"'")
        found = (
            self.top if _TOP.match(text.strip()) else self.find(bare) if "/" in bare or bare.startswith("$") else None
        )
        self.variables.pop(name, None)
        if found is not None:
            self.variables[name] = found

    def enter(self, text: str) -> Folders:
        """Return the place after `cd`; a folder that is not here is probably that of the repository itself."""
        found = self.find(text.strip("\"'"))
        start = self.top if found is None else "" if found == "." else found
        return self._replace(folders=tuple(dict.fromkeys((start, self.page, self.top))))


def make_folders(tree: FileTree, above: str, path: str) -> Folders:
    """Return where the commands of a page are run."""
    page = posixpath.dirname(path)
    return Folders(tree, above, page, (page,), {}).enter(".")


class MissingFile(NamedTuple):
    """A file of values that a command of a script names, and that is not there."""

    location: Location
    path: str
    chart: Chart


class Commands(NamedTuple):
    """What the commands of pages and scripts install."""

    uses: dict[str, list[Use]]
    """The uses of charts, by the folder of the chart."""
    missing: list[MissingFile]


def list_commands(tree: FileTree, above: str) -> Commands:
    """Return what the commands of pages and scripts install of the charts of a tree."""
    charts: dict[str, Chart] = {}
    found = Commands({}, [])
    count = 0
    for path in tree.list_all_texts():
        text = tree.read(path).content[:_MAX_TEXT].decode("utf-8", "replace")
        if "helm" not in text:
            continue
        place = make_folders(tree, above, path)
        joined = _JOINED.sub(lambda match: " " * len(match[0]), text)
        for match in _STATEMENT.finditer(joined):
            if match["name"]:
                place.set(match["name"], match["value"])
            elif match["folder"]:
                place = place.enter(match["folder"])
            elif len(match["helm"]) < _MAX_LINE and count < _MAX_COMMANDS:
                count += 1
                # In a text in quotes, such as a step of Jenkins, the command ends with them.
                quote = joined[match.start() - 1 : match.start()]
                line = match["helm"].partition(quote)[0] if quote in ("'", '"', "`") else match["helm"]
                use = _read_command(line, place, charts, path)
                if isinstance(use, Use):
                    use = use._replace(places=tuple(_locate_options(use, text, path, match.span("helm"))))
                    found.uses.setdefault(use.chart.folder, []).append(use)
                elif use and not path.endswith(_PAGES):
                    # Who follows a page writes the file first.
                    lacking, chart = use
                    at = max(text.find(lacking, *match.span("helm")), match.start("helm"))
                    found.missing.append(MissingFile(_locate(path, text, at), lacking, chart))
    return found._replace(missing=[each for each in found.missing if not _is_written(each.path, tree)])


def _is_written(path: str, tree: FileTree) -> bool:
    """Return True if a script may write a file, or Git leaves it out: a text names it beside the options of helm."""
    name = posixpath.basename(path)
    named = re.compile(rf"(?:-f|--values)[ \t=]+[\"']?(?:[^\s\"']*/)?{re.escape(name)}")
    for each in (*tree.list_all_texts(), *([".gitignore"] if tree.exists(".gitignore") else ())):
        text = tree.read(each).content[:_MAX_TEXT].decode("utf-8", "replace") if not each.endswith(_PAGES) else ""
        if text.count(name) > len(named.findall(text)):
            return True
    return False


def _locate(path: str, text: str, at: int) -> Location:
    return Location(path, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


def _locate_options(use: Use, text: str, path: str, span: tuple[int, int]) -> Iterator[Location]:
    """Yield where the options of a command stand in a page."""
    for argument in use.options[1::2]:
        yield _locate(path, text, max(text.find(argument.partition("=")[0], *span), span[0]))


class _Command:
    """The options of a command as they are read."""

    def __init__(self, place: Folders) -> None:
        self.place = place
        self.positional: list[str] = []
        self.values: list[Values] = []
        self.options: list[str] = []
        self.inputs: list[File] = []
        self.open: list[str] = []
        self.missing: list[str] = []
        """The files of values that are not there."""

    def add(self, name: str, argument: str) -> bool:
        """Add an option, or a word without a name; return False if it names a file that is not there."""
        if not name:
            self.positional.append(argument)
        elif name in _FILE_OPTIONS:
            file = self.read(argument)
            self.values += [Values(file)] if file else []
            self.missing += [argument] if file is None and _PLAIN.match(argument) else []
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
        found = self.place.find(path)
        file = self.place.tree.read(found) if found is not None else None
        return file if file and file.finding is None else None


def _name_variable(match: re.Match[str]) -> str:
    """Return a text in place of a variable, which most fields accept."""
    return (match[1] or match[2] or match[3]).lower().replace("_", "-").replace(" ", "-").strip("-") or "value"


def _read_command(line: str, place: Folders, charts: dict[str, Chart], page: str) -> Use | tuple[str, Chart] | None:
    """Return the use of a chart by a command, or a file of values that is missing; None if it cannot be read."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return None
    end = next((at for at, word in enumerate(words) if word.startswith(_ENDS)), len(words))
    command = _Command(place)
    are_read = [command.add(name, argument) for name, argument in _split_options(words[2:end])]
    names, is_whole = command.positional, all(are_read)
    folder = place.find(names[-1]) if (is_whole or command.missing) and len(names) in (1, 2) else None
    if folder is None or not place.tree.exists(posixpath.join(folder, METADATA)):
        return None
    folder = "" if folder == "." else folder
    chart = charts.setdefault(folder, Chart(place.tree.source, folder))
    if not is_whole:
        return command.missing[0], chart
    release = name_release(chart, names[0] if len(names) == 2 else "")
    given = (tuple(command.values), tuple(command.options), (), tuple(command.inputs), tuple(command.open))
    # Who follows a page fills values in before, as the page says in words.
    is_definite = not command.options and not page.endswith(_PAGES)
    return Use(chart, release, "", *given, Location(page), is_definite=is_definite)


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
