"""Read command lines: the options of launchers, and arguments and files of scripts; check tables of invariants."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any

from jobgen.features.launch.values import Fault, Pods, Program, Word
from jobgen.model.data import Location
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import Place
from jobgen.model.suggest import did_you_mean
from jobgen.repo.shipped import read_data
from jobgen.yamlio.read import read_shared


class Syntax(NamedTuple):
    """The options of a program: how many words follow each, by its name with `_` for `-` and without the first `-`."""

    counts: Mapping[str, int]
    """0: a flag. -1: one word that can be missing (`?`). -2: all words up to the next option (`*` and `+`)."""
    aliases: Mapping[str, str] = {}
    """Other names of options: the name that values are found by."""
    has_abbreviations: bool = True
    """True if the start of a long name is enough, as `argparse` has it."""
    stops: bool = False
    """True if the first word that is no option ends the options, as the script of a launcher does."""
    has_single: bool = False
    """True if a long name can have one `-` in front, as those of `mpirun`."""

    def find(self, name: str) -> str | None:
        """Return the name of an option as values are found by it; None if there is none, or there are several."""
        name = name.replace("-", "_")
        if name in self.counts or name in self.aliases:
            return self.aliases.get(name, name)
        if not self.has_abbreviations or len(name) < 2:
            return None
        found = {self.aliases.get(each, each) for each in (*self.counts, *self.aliases) if each.startswith(name)}
        return found.pop() if len(found) == 1 else None


def make_syntax(name: str, **others: bool) -> Syntax:
    """Return the options of a launcher in `jobgen/data/launch.yaml`."""
    counts: dict[str, int] = {}
    aliases: dict[str, str] = {}
    table = read_data("launch.yaml")["options"][name]
    for key, default in (("values", 1), ("flags", 0)):
        for item in table.get(key, "").split():
            names, _, count = item.replace("-", "_").partition("=")
            first, *rest = names.split("|")
            counts[first] = int(count.replace("_", "-")) if count else default
            aliases.update(dict.fromkeys(rest, first))
    return Syntax(counts, aliases, **others)


class Options(NamedTuple):
    """The options of a command line."""

    values: Mapping[str, Word]
    """The last value of each option; that of a flag is `true`."""
    lists: Mapping[str, tuple[Word, ...]]
    """All values of each option, in their order."""
    rest: tuple[Word, ...]
    """The other words; with `stops`, the first of them and everything after it."""
    is_certain: bool = True
    """False if words that are not known can be other options."""
    unknown: Word | None = None
    """The first option that is not in the syntax."""
    lacking: Word | None = None
    """The first option whose value is missing."""

    def number(self, name: str) -> int | None:
        """Return the value of an option if it is an integer."""
        word = self.values.get(name)
        return word.number if word else None


def check_unknown(options: Options, syntax: Syntax, name: str, *, is_error: bool = True) -> Iterator[Fault]:
    """Report an option that a launcher refuses; `is_error` if the syntax has the options of all releases."""
    word = options.unknown
    text = (word.text or "").partition("=")[0] if word is not None and options.is_certain else ""
    start = text[2:].replace("-", "_")
    if text[:1] == "-" and text[1:2] != "-" and word is not None and text[1:].replace("-", "_") in syntax.counts:
        message = f"`{text}` has one dash, and is not an option of {name}; write `-{text}`"
        yield Fault(word.node, message, is_error)
        return
    # The start of several options can be that of one option of another release.
    if (
        word is None
        or not text.startswith("--")
        or text in ("--help", "--version")
        or any(each.startswith(start) for each in syntax.counts)
    ):
        return
    known = [f"--{each}" for each in syntax.counts if len(each) > 1]
    hint = did_you_mean(f"--{start}", known)
    message = f"`{text}` is not an option of {name} (`unrecognized arguments: {text}`)"
    yield Fault(word.node, f"{message}{hint or '; remove it, or write it after the script'}", is_error)


def read_options(words: Sequence[Word], syntax: Syntax) -> Options:
    """Read options. A word that is not known and stands where an option can stand makes the result uncertain."""
    return _Reader(words, syntax).read()


class _Reader:
    """Reads the words of a command line one by one."""

    def __init__(self, words: Sequence[Word], syntax: Syntax) -> None:
        self.words, self.syntax, self.at = words, syntax, 0
        self.lists: dict[str, list[Word]] = {}
        self.rest: list[Word] = []
        self.is_certain = True
        self.unknown: Word | None = None
        self.lacking: Word | None = None

    def read(self) -> Options:
        while self.at < len(self.words):
            word = self.words[self.at]
            text = word.prefix if word.text is None else word.text
            if word.text is None and not text:
                # It is unknown whether it is an option or the first word after the options.
                self.is_certain = False
            if text == "--" and word.text is not None:
                self.rest += self.words[self.at + 1 :]
                break
            if not _is_option(text):
                if self.syntax.stops and not word.is_list:
                    self.rest += self.words[self.at :]
                    break
                self.rest.append(word)
                self.at += 1
            else:
                self.at += 1
                self.read_option(word, text)
        values = {name: found[-1] for name, found in self.lists.items() if found}
        lists = {name: tuple(each) for name, each in self.lists.items()}
        return Options(values, lists, tuple(self.rest), self.is_certain, self.unknown, self.lacking)

    def read_option(self, word: Word, text: str) -> None:
        written, equals, value = text.partition("=")
        name = _find_name(written, self.syntax)
        if name is None:
            self.is_certain = self.is_certain and (word.text is not None or bool(equals))
            self.unknown = self.unknown or word
            # It is not known whether a value follows.
            self.rest.append(word)
            return
        found = self.lists.setdefault(name, [])
        count = self.syntax.counts[name]
        if equals:
            found.append(Word(None if word.text is None else value, word.node, "" if word.text else value))
        elif count == 0:
            found.append(Word("true", word.node))
        elif count > 0:
            self.take(word, found, count)
        else:
            start = self.at
            while self.at < len(self.words) and not _is_next_option(self.words[self.at], self.syntax):
                self.at += 1
                if count == -1:
                    break
            found += self.words[start : self.at] or [Word("true", word.node)]

    def take(self, word: Word, found: list[Word], count: int) -> None:
        taken = self.words[self.at : self.at + count]
        if len(taken) < count or (count == 1 and _is_next_option(taken[0], self.syntax)):
            self.lacking = self.lacking or word
            return
        # It can be several words, of which the first is the value.
        self.is_certain = self.is_certain and not (count == 1 and taken[0].is_list)
        found += taken
        self.at += count


def _is_option(text: str) -> bool:
    return len(text) > 1 and text[0] == "-" and not text[1:2].isdigit() and " " not in text.partition("=")[0]


def _is_next_option(word: Word, syntax: Syntax) -> bool:
    text = word.prefix if word.text is None else word.text
    return _is_option(text) and (not syntax.has_single or _find_name(text.partition("=")[0], syntax) is not None)


def _find_name(written: str, syntax: Syntax) -> str | None:
    if written.startswith("--") or syntax.has_single:
        return syntax.find(written.lstrip("-"))
    name = written[1:]
    is_short = name[1:] == "" and name in syntax.counts
    return syntax.aliases.get(name, name) if is_short or name in syntax.aliases else None


Number = int | float | None
# A key, or the name of a table of TOML.
_KEY = r"""(?m)(?:^\s*|[{{,\s])((?:["']?{0}["']?\s*[:=])|(?:\[\[?{0}\]))"""


class Arguments(NamedTuple):
    """The arguments of a script: the last value of each option by its name, with `_` for `-`."""

    words: Mapping[str, Word]
    """An option without a value has the text `true`."""
    rest: tuple[Word, ...]
    """The words that are neither options nor their values."""
    is_closed: bool
    """False if a word that is not known can be one or several other options."""

    def text(self, name: str, default: str | None = None) -> str | None:
        """Return the value of an option, or its default; None if it is not known."""
        word = self.words.get(name)
        return (default if self.is_closed else None) if word is None else word.text

    def number(self, name: str, default: int | None = None) -> int | None:
        """Return the value of an option as an integer, or its default; None if it is not known, or is no integer."""
        word = self.words.get(name)
        return (default if self.is_closed else None) if word is None else word.number

    def has(self, name: str) -> bool | None:
        """Return True if a flag is given, False if it is not; None if that is not known."""
        word = self.words.get(name)
        if word is None:
            return False if self.is_closed else None
        return None if word.text is None else word.text.lower() not in ("false", "no", "0", "f", "n")


def read_arguments(words: Sequence[Word], flags: Collection[str] = ()) -> Arguments:
    """Read options as `--name value` and `--name=value`; `flags` have no value. One `-` is as good as two."""
    found: dict[str, Word] = {}
    rest: list[Word] = []
    is_closed = True
    name = ""  # the option that waits for its value
    for word in words:
        text = word.prefix if word.text is None else word.text
        if not _is_argument(text):
            if name:
                found[name] = word
            else:
                rest.append(word)
                # A quoted word that is not known can be an option as well.
                is_closed = is_closed and word.text is not None
            name = ""
            continue
        written, equals, value = text.partition("=")
        name = written.lstrip("-").replace("-", "_")
        if equals:
            found[name] = Word(None if word.text is None else value, word.node)
            name = ""
        elif word.text is None:
            is_closed, name = False, ""
        else:
            found[name] = Word("true", word.node)
            name = "" if name in flags else name
    return Arguments(found, tuple(rest), is_closed)


def _is_argument(text: str) -> bool:
    # `-1` and `-.5` are numbers, and a text with spaces is a value.
    return text[:1] == "-" and text[1:2] not in tuple("0123456789.") and " " not in text.partition("=")[0]


class Invariant(NamedTuple):
    """What must hold between numbers, and what to say if it does not."""

    holds: Callable[..., object]
    """Its parameters are the names of the numbers, after a `_`. If one of them is not known, nothing is said."""
    text: str
    """The message, with the names of numbers in braces."""
    at: str = ""
    """The options at fault, the first of which that is given is where the finding stands; else it is the program."""
    is_error: bool = True


def find_faults(
    table: Iterable[Invariant],
    numbers: Mapping[str, Any],
    options: Mapping[str, Word],
    program: Program,
    pods: Pods,
    config: NumbersInFile | None = None,
) -> Iterator[Fault]:
    """Yield a fault for each invariant that does not hold. `world` is the number that the pods give.

    A fault of a number in a config file stands there.
    """
    for holds, text, at, is_error in table:
        code: CodeType = holds.__code__
        names = [name.lstrip("_") for name in code.co_varnames[: code.co_argcount]]
        values = [numbers.get(name) for name in names]
        if any(value is None for value in values) or holds(*values):
            continue
        word = next((options[name] for name in at.split() if name in options), None)
        related = compared_values(pods) if "world" in names else ()
        fault = Fault(word.node if word else program.node, text.format(**numbers), is_error, related=related)
        yield fault if config is None else config.move(fault, names)


class NumbersInFile(NamedTuple):
    """Where numbers of a table are in a config file."""

    program: Program
    path: str
    """The path of the file in the container."""
    keys: Mapping[str, str]
    """The paths of the keys, by the names of the numbers that the file has."""
    is_whole: bool = True
    """True if a fault without such a number is about the file, too."""

    def move(self, fault: Fault, names: Iterable[str]) -> Fault:
        """Return a fault at the first of some numbers that the file has."""
        text = self.program.files(self.path)
        key = next((self.keys[name] for name in names if name in self.keys), None)
        if text is None or (key is None and not self.is_whole):
            return fault
        place = find_key_place(text, key) if key else None
        first = next((number for number, line in enumerate(text.splitlines(), 1) if line.strip()), 1)
        return fault._replace(file=self.path, inside=place or Location("", first, 1))


def find_key_place(text: str, path: str) -> Location | None:
    """Return where a key is in a config file in JSON, YAML or TOML, with its value; its path has dots."""
    start = at = 0
    for name in path.split("."):
        found = re.compile(_KEY.format(re.escape(name))).search(text, start)
        if found is None:
            return None
        start, at = found.end(), found.start(1)
    line = text.count("\n", 0, at) + 1
    begin = text.rfind("\n", 0, at) + 1
    end = text.find("\n", begin)
    last = len(text[begin : None if end < 0 else end].rstrip(" ,"))
    return Location("", line, at - begin + 1, line, last + 1)


def compared_values(pods: Pods) -> tuple[tuple[Place, str], ...]:
    """Return the numbers of pods and GPUs as they are written, for `Fault.related`."""
    return tuple((node, "") for node in (*pods.counts, pods.container.device_place) if node is not None)


def read_config(program: Program, path: str | None) -> Mapping[str, Any] | None:
    """Return the content of a file at a path in the container; None if it is not known, or is no mapping."""
    text = program.files(path) if path else None
    if text is None or path is None:
        return None
    if path.endswith(".toml"):
        # Imported late: most files are YAML or JSON.
        import tomllib

        try:
            return tomllib.loads(text)
        except (ValueError, RecursionError):
            return None
    return parse_config(text, path)


def parse_config(text: str, path: str) -> Mapping[str, Any] | None:
    """Return the mapping that a text in YAML or JSON is; None if it is none."""
    source = read_shared(text.encode(errors="surrogatepass"), path)
    return source.documents[0].data if len(source.documents) == 1 and not source.findings else None


def get_value(config: Mapping[str, Any] | None, path: str) -> Any:
    """Return the value at a path with dots; None if there is none."""
    value: Any = config
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


_MAX_NUMBER = 10**15


def as_number(value: Any) -> int | None:
    """Return an integer or boolean as a number; None for everything else, and for numbers out of range."""
    return int(value) if isinstance(value, int) and abs(value) < _MAX_NUMBER else None
