"""Files that a command reads from ConfigMaps of the repository: those that are missing, and those that do not parse."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Iterable, Iterator

from jobgen.features.launch.mounted_files import MountedFiles, MountedFolder
from jobgen.features.launch.values import Fault, Program, Word
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container
from jobgen.model.data import Location
from jobgen.model.lazy_re import has_any, lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At
from jobgen.model.suggest import find_closest
from jobgen.yamlio.read import read_shared

RULE = "missing-mounted-file"
# Programs that look for files, or may be meant to fail.
_SEARCHING = frozenset(
    "[ awk cat chmod chown cp cut diff du echo envsubst export file find grep head jq ln ls mkdir mv printf rm sed "
    "sort stat tail tee test touch wc which xargs yq".split()
)
# Options whose file a program reads when it starts.
_READ = lazy_pattern(r"(?i)config|cfg|yaml|json|toml|recipe|deepspeed|settings|hparams|hostfile|script")
# Options that name what a program writes, or what may be missing.
_NOT_READ = tuple("out save log dir cache ckpt checkpoint export dest result board folder root prefix optional".split())
_HYDRA = {
    **dict.fromkeys(("--config-path", "-cp"), "path"),
    **dict.fromkeys(("--config-dir", "-cd"), "dir"),
    **dict.fromkeys(("--config-name", "-cn"), "name"),
}
"""Options of Hydra with the folder and the name of a config file."""
_OF_HYDRA = ("--config-name", "-cn")
_UNCLEAR = tuple("*?[{$`")
_TEMPLATE = lazy_pattern(r"\{\{|\{%|<%")
_MAX_SHOWN = 5
_MAX_CONFIG = 100_000


class _Path(NamedTuple):
    """A path in a command line."""

    text: str
    word: Word
    option: str
    """The option that it is the value of, with `_` for `-`; empty for an argument, or the program itself."""
    is_program: bool = False
    is_variable: bool = False
    """True for the value of a variable, which must not be shown."""


def check_files(program: Program, volumes: MountedFiles) -> Iterator[Fault]:
    """Yield what is wrong with the files that a command line names."""
    if program.name in _SEARCHING:
        return
    yield from _check_paths(program, volumes, _list_paths(program))
    if any((word.text or "").startswith(_OF_HYDRA) for word in program.words):
        yield from _check_paths(program, volumes, _list_configs(program, volumes))


def check_settings(program: Program, volumes: MountedFiles, container: Container) -> Iterator[Fault]:
    """Yield what is wrong with the files in variables whose names say that a program reads them."""
    values = ((name, as_text(entry.get("value")), entry) for name, entry in container.env)
    found = (each for each in values if each[1][:1] == "/" and _READ.search(each[0]))
    paths = (_Path(text, Word(text, At(entry, "value")), name.lower(), is_variable=True) for name, text, entry in found)
    yield from _check_paths(program, volumes, paths)


def _check_paths(program: Program, volumes: MountedFiles, paths: Iterable[_Path]) -> Iterator[Fault]:
    for path in paths:
        folder = volumes.find_folder(path.text)
        if folder is None or has_any(path.text, _UNCLEAR) or has_any(path.option.lower(), _NOT_READ):
            continue
        inner = posixpath.relpath(posixpath.normpath(path.text), folder.path)
        if inner in folder.files:
            text = volumes.read(path.text)
            if path.is_program and text is not None and inner.endswith(".py"):
                yield from _check_python(path, text)
                continue
            yield from _check_format(program, path, text) if text is not None else ()
        elif folder.is_complete and not any(name.startswith((f"{inner}/", inner)) for name in folder.files):
            if inner != ".":
                yield _report_missing(path, inner, folder)
            if path.is_program:
                # It gets no arguments.
                return


def _list_paths(program: Program) -> Iterator[_Path]:
    if program.path.startswith("/"):
        yield _Path(program.path, Word(program.path, program.node), "", is_program=True)
    option = ""
    for word in program.words:
        text = word.text or ""
        name, equals, value = text.partition("=")
        if text.startswith("/"):
            yield _Path(text, word, option)
        elif equals and value.startswith("/"):
            yield _Path(value, word, _to_name(name))
        option = _to_name(text) if text.startswith("-") and not equals else ""


def _list_configs(program: Program, volumes: MountedFiles) -> Iterator[_Path]:
    """Yield the config file that Hydra reads: a name in a folder, with or without its ending."""
    given: dict[str, Word] = {}
    option = ""
    for word in program.words:
        name, equals, value = (word.text or "").partition("=")
        if option and word.text is not None:
            given[option] = word
        elif equals and name in _HYDRA:
            given[_HYDRA[name]] = Word(value, word.node)
        option = "" if equals else _HYDRA.get(word.text or "", "")
    name = (given["name"].text or "") if "name" in given else ""
    for place in ("path", "dir"):
        folder = (given[place].text or "") if place in given else ""
        if not name or not folder.startswith("/"):
            continue
        path = posixpath.join(folder, name if name.endswith((".yaml", ".yml")) else f"{name}.yaml")
        # The file may be in another folder than one that is only searched, too.
        if place == "path" or volumes.read(path) is not None:
            yield _Path(path, given["name"], "config_name")


def _to_name(text: str) -> str:
    return text.lstrip("-").replace("-", "_")


def _report_missing(path: _Path, inner: str, folder: MountedFolder) -> Fault:
    names = sorted(folder.files)
    alike = [name for name in names if posixpath.splitext(name)[1] == posixpath.splitext(inner)[1]]
    close = find_closest(inner, names) or (alike[0] if len(alike) == 1 else None)
    shown = [f"`{name}`" for name in names[:_MAX_SHOWN]]
    others = f" and {len(names) - _MAX_SHOWN} others" if len(names) > _MAX_SHOWN else ""
    has = f"has only {', '.join(shown)}{others}" if names else "is empty"
    message = f"`{path.text}` does not exist: the ConfigMap at `{folder.path}` {has}"
    advice = (
        f"did you mean `{posixpath.join(folder.path, close)}`?"
        if close
        else f"add `{inner}` to it, or correct the path"
    )
    is_certain = path.is_program or (not path.is_variable and bool(_READ.search(path.option)))
    return Fault(path.word.node, f"{message}; {advice}", is_certain, rule=RULE)


def _check_python(path: _Path, text: str) -> Iterator[Fault]:
    """Check a script that Python starts."""
    from jobgen.features.launch.python_faults import find_python_fault

    fault = find_python_fault(text)
    if fault is not None:
        message = f"in line {fault.inside.line} of `{path.text}`, {fault.message}"
        yield Fault(path.word.node, message, file=path.text, inside=fault.inside)


class _Unreadable(NamedTuple):
    """Why a text cannot be read in its format, and where."""

    inside: Location
    what: str
    advice: str = ""

    @property
    def words(self) -> str:
        """What is wrong, and what to write instead if that is known."""
        return f"{self.what}; {self.advice}" if self.advice else self.what


class _Format(NamedTuple):
    """A format of config files."""

    name: str
    find_error: Callable[[str], _Unreadable | None]
    """Returns what is wrong with a text."""


def _check_format(program: Program, path: _Path, text: str) -> Iterator[Fault]:
    """Check that a config file has the format that its name says."""
    extension = posixpath.splitext(path.text)[1]
    form = _FORMATS.get(extension)
    # An argument without an option is a file that the program reads, as far as anybody can tell.
    if (
        form is None
        or path.is_program
        or (path.option and not _READ.search(path.option))
        or _TEMPLATE.search(text)
        or len(text) > _MAX_CONFIG
    ):
        return
    found = form.find_error(text)
    reading = None
    if found is not None and form is _JSON and path.option == "deepspeed_config":
        # Imported late: most files are JSON.
        from jobgen.features.launch.hjson import read_hjson

        reading = read_hjson(text)
        found = form.find_error(reading.uncommented)
    if found is None:
        return
    message = f"`{path.text}` is not {form.name}: {found.words}"
    reader = _find_reader(program, path.option)
    if reading is not None and reading.is_refused:
        message, reader = f"DeepSpeed cannot read `{path.text}`, which is not JSON or Hjson: {found.words}", "DeepSpeed"
    elif path.option == "deepspeed_config":
        refused = (
            f"`{path.text}` is not {form.name}: {found.what}, which DeepSpeed can accept and other programs cannot"
        )
        message = f"{refused}; {found.advice or 'correct it'}"
    elif reader:
        message = f"{reader} cannot read `{path.text}`, which is not {form.name}: {found.words}"
    yield Fault(path.word.node, message, bool(reader), file=path.text, inside=found.inside)


def _find_reader(program: Program, option: str) -> str:
    """Return the program that certainly reads the file of an option in its format; empty if there is none."""
    if program.name in ("accelerate", "accelerate.commands.launch"):
        return "accelerate" if option in ("config_file", "deepspeed_config_file") else ""
    if option == "job.config_file":
        return "torchtitan"
    if option == "config_name":
        return "Hydra"
    is_trainer = any((word.text or "").startswith(("--output_dir", "--output-dir")) for word in program.words)
    return "the Trainer" if option == "deepspeed" and is_trainer else ""


def _find_json_error(text: str) -> _Unreadable | None:
    try:
        json.loads(text)
    except RecursionError:
        return None
    except json.JSONDecodeError as error:
        at, sign = error.pos, text[error.pos : error.pos + 1]
        before = text[:at].rstrip()
        if before.endswith(",") and sign in ("}", "]"):
            return _Unreadable(_locate(text, len(before) - 1), f"a comma precedes `{sign}`", "remove the comma")
        if sign in ("/", "#"):
            return _Unreadable(_locate(text, at), "it has a comment", "remove it")
        if sign == "'":
            return _Unreadable(_locate(text, at), "it has single quotes", "write double quotes")
        word = _WORD.match(text, at)
        if word and word[0] in _LITERALS:
            return _Unreadable(_locate(text, at), f"it has `{word[0]}`", f"write `{_LITERALS[word[0]]}`")
        if sign in ('"', "{", "[") and before[-1:] not in (",", ":", "{", "["):
            return _Unreadable(_locate(text, max(len(before) - 1, 0)), "a comma is missing", "add it")
        return _describe_json(text, error.msg, at)
    return None


def _describe_json(text: str, found: str, at: int) -> _Unreadable:
    """Say what is wrong with brackets, quotation marks and names; otherwise, what the reader says."""
    sign = text[at : at + 1]
    opened = _list_open(text[:at])
    if sign in ("]", "}") and (not opened or opened[-1] != {"]": "[", "}": "{"}[sign]):
        if opened and {"[": "]", "{": "}"}[opened[-1]] in text[at:]:
            return _Unreadable(_locate(text, at), f"`{sign}` closes nothing", "remove it, or write its other bracket")
        if not opened:
            return _Unreadable(_locate(text, at), f"`{sign}` closes nothing", "remove it")
        wanted = "}" if opened[-1] == "{" else "]"
        return _Unreadable(_locate(text, at), f"`{opened[-1]}` is not closed", f"write `{wanted}` here")
    if found.startswith("Unterminated string") or (found.startswith("Invalid control") and sign == "\n"):
        return _Unreadable(_locate(text, at), "a quotation mark is not closed", "write the other one")
    if not text[at:].strip() and opened:
        sign = {"[": "]", "{": "}"}[opened[-1]]
        return _Unreadable(
            _locate(text, max(len(text.rstrip()) - 1, 0)), f"`{opened[-1]}` is not closed", f"write `{sign}`"
        )
    word = _WORD.match(text, at)
    if word and found.startswith("Expecting property name"):
        return _Unreadable(_locate(text, at), f"`{word[0]}` has no quotation marks", f'write `"{word[0]}"`')
    return _Unreadable(_locate(text, min(at, max(len(text.rstrip()) - 1, 0))), f"`{found}`")


_STRING = lazy_pattern(r'"(?:[^"\\]|\\.)*"')


def _list_open(text: str) -> list[str]:
    """Return the brackets that are open at the end of a text, the outermost first."""
    opened: list[str] = []
    for sign in _STRING.sub("", text):
        if sign in "[{":
            opened.append(sign)
        elif sign in "]}" and opened:
            opened.pop()
    return opened


_WORD = lazy_pattern(r"\w+")
_LITERALS = {"True": "true", "False": "false", "None": "null"}


def _find_yaml_error(text: str) -> _Unreadable | None:
    findings = read_shared(text.encode(errors="surrogatepass"), "config.yaml").findings
    found = next((each for each in findings if each.rule in ("yaml-syntax", "unknown-anchor")), None)
    return None if found is None else _Unreadable(found.location._replace(file=""), found.without_advice, found.advice)


def _find_toml_error(text: str) -> _Unreadable | None:
    # Imported late: most files are YAML or JSON.
    import tomllib

    try:
        tomllib.loads(text)
    except RecursionError:
        return None
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).partition(" (at ")
        numbers = [int(each) for each in _NUMBER.findall(place)]
        if len(numbers) == 2:
            return _Unreadable(Location("", numbers[0], numbers[1]), f"`{message}`")
        return _Unreadable(_locate(text, max(len(text.rstrip()) - 1, 0)), f"`{message}`")
    return None


_NUMBER = lazy_pattern(r"\d{1,9}")


def _locate(text: str, at: int) -> Location:
    begin = text.rfind("\n", 0, at) + 1
    line = text.count("\n", 0, at) + 1
    return Location("", line, at - begin + 1, line, at - begin + 2)


_JSON, _YAML = _Format("JSON", _find_json_error), _Format("YAML", _find_yaml_error)
_FORMATS = {".json": _JSON, ".yaml": _YAML, ".yml": _YAML, ".toml": _Format("TOML", _find_toml_error)}
