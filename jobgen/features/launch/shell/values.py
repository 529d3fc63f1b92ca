"""Values of scripts that are interpreted: words, calls of programs, variables, and what is not known of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from jobgen.features.launch.shell.patterns import Pattern
from jobgen.model.budget import Work, charge
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import Place

UNKNOWN, SPLIT = "\ue000", "\ue001"
"""What stands in a text for something that is not known; the second one can also be none or several words."""
SENTINELS = lazy_pattern("[\ue000\ue001]")
STARTED, PERHAPS = -2, -1
"""The status of a program, which is taken to succeed, and that of a condition that is not known."""
MAX_STEPS = 4000
MAX_BYTES = 1_000_000
"""The length of all words that a command makes, and of what its subshells copy."""
MAX_TEXT = 16_000
MAX_DEPTH = 30
_MAX_CALLS = 200
_WORD_BYTES = 16
_MAX_DIGITS = 18
# Programs that are no replacement for one that failed.
_MINOR = frozenset(
    """sleep curl wget kill pkill killall touch rm mkdir cp mv ls ps df du free date sync tail head grep dmesg logger
    nvidia-smi ifconfig ip ibstat hostname uname id whoami find chmod chown gsutil aws tar gzip sed awk pip""".split()
)


class Word(NamedTuple):
    """One argument as the program gets it, or the value of a variable."""

    text: str | None
    """None if it is not known."""
    node: Place
    """Where it was written."""
    prefix: str = ""
    """Of an unknown word, what is known of its start: `--rdzv-id=`."""
    is_list: bool = False
    """True if an unknown word can also be none or several, as `$ARGS` without quotes."""

    @property
    def number(self) -> int | None:
        """The integer that it is, as `int()` of Python reads it; None if it is not known or not an integer."""
        try:
            return None if self.text is None or len(self.text) > _MAX_DIGITS else int(self.text)
        except ValueError:
            return None


_PROGRAMS = frozenset(
    "arch cat date echo expr free grep head hostname id ls nproc printf pwd seq tail uname wc whoami".split()
)


def runs_program(text: str) -> bool:
    """Return True if what stands in `$(…)` is a command for a shell, and no name of a variable."""
    return not text.isidentifier() or text in _PROGRAMS


def find_variable(env: Mapping[str, Word], name: str) -> Word | None:
    """Return the value of a variable; None if it is certainly not set.

    The key `*` says that there are others that are not known: any, or those whose names start with one of the words of
    its `prefix`.
    """
    found = env.get(name)
    if found is None and (others := env.get("*")) is not None and name.startswith(list_openings(others)):
        return Word(None, None)
    return found


def list_openings(others: Word) -> tuple[str, ...]:
    """Return how the names of variables start that the key `*` of an environment stands for."""
    return tuple(others.prefix.split()) or ("",)


Files: TypeAlias = "Callable[[str], str | None]"
"""Returns the text of a file at a path in the container; None if it is not known."""


class Environment(Mapping[str, Word]):
    """The exported variables of a shell; values become words when they are read."""

    def __init__(self, variables: Mapping[str, Value], openings: tuple[str, ...] = ()) -> None:
        self._variables = variables
        self._openings = openings

    def __getitem__(self, name: str) -> Word:
        value = self._variables.get(name)
        if value is None or not value.exported:
            if name == "*" and self._openings:
                return Word(None, None, " ".join(self._openings))
            raise KeyError(name)
        return to_word(value.items[0] if value.items else "", value.node)

    @property
    def all_texts(self) -> dict[str, str]:
        """The known values of all variables, also of those that are not exported."""
        texts = {name: " ".join(value.items) for name, value in self._variables.items()}
        return {name: text for name, text in texts.items() if is_known(text)}

    def __iter__(self) -> Iterator[str]:
        yield from (name for name, value in self._variables.items() if value.exported)
        if self._openings:
            yield "*"

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Call(NamedTuple):
    """A program that a container starts."""

    words: tuple[Word, ...]
    """The program and its arguments."""
    env: Mapping[str, Word]
    """The environment that it sees, as `find_variable` reads it."""
    is_certain: bool
    files: Files


def to_word(text: str, node: Place) -> Word:
    """Return a word with a text that can have parts that are not known."""
    if UNKNOWN not in text and SPLIT not in text:
        return Word(text, node)
    found = SENTINELS.search(text)
    assert found is not None
    return Word(None, node, text[: found.start()], text.startswith(SPLIT))


def to_text(word: Word) -> str:
    """Return the text of a word, with marks for what is not known."""
    if word.text is not None:
        return word.text if is_known(word.text) else SENTINELS.sub(UNKNOWN, word.text)
    return word.prefix + (SPLIT if word.is_list else UNKNOWN)


def is_known(text: str) -> bool:
    """Return True if all of a text is known."""
    return UNKNOWN not in text and SPLIT not in text


class TooMuch(Exception):  # noqa: N818 -- it is not an error
    """A script that runs too long, or makes too much."""


class Exit(Exception):  # noqa: N818 -- it is not an error
    """The shell ends."""

    def __init__(self, status: int) -> None:
        self.status = status


class Leave(Exception):  # noqa: N818 -- it is not an error
    """A function returns, or a loop ends or goes on."""

    def __init__(self, word: str, status: int = 0, levels: int = 1) -> None:
        self.word, self.status, self.levels = word, status, levels


class Value(NamedTuple):
    """The value of a variable, or the values of an array."""

    text: str | tuple[str, ...]
    node: Place = None
    exported: bool = False
    kind: str = ""
    """`i` for an integer, which is computed when it is set; `?` for one whose later values are not known."""

    @property
    def items(self) -> tuple[str, ...]:
        """The values; one for a variable that is no array."""
        return (self.text,) if isinstance(self.text, str) else self.text


Field: TypeAlias = "tuple[str, Place]"


class Run:
    """What all shells of a container share."""

    def __init__(self, files: Files) -> None:
        self.calls: list[Call] = []
        self.steps = 0
        self.bytes = 0
        self.written: dict[str, str] = {}
        self._files = files
        self._excuses: list[tuple[int, int, int, int | None]] = []

    def step(self) -> None:
        """Count a step; end a run with too many."""
        self.steps += 1
        if self.steps > MAX_STEPS or len(self.calls) > _MAX_CALLS:
            raise TooMuch

    def spend(self, size: int) -> None:
        """Count what was made; end a run with too much."""
        self.bytes += size + _WORD_BYTES
        if self.bytes > MAX_BYTES:
            raise TooMuch

    def match(self, pattern: Pattern, text: str) -> None:
        """Count the match of a pattern; end a run with too many."""
        self.spend(len(text) * (1 + pattern.width // 64))

    def charge(self) -> None:
        """Charge the budget of the file with what the shells have done."""
        charge(Work.COMMANDS, 8 * self.steps + self.bytes // 64, self.bytes)

    def excuse(self, start: int, end: int, after: int, stop: int | None = None) -> None:
        """Note that some calls may be meant to fail, if others follow that can stand in for them."""
        if start < end:
            self._excuses.append((start, end, after, stop))

    def drop(self, count: int) -> None:
        """Forget the calls from a position on."""
        del self.calls[count:]
        self._excuses = [each for each in self._excuses if each[0] < count]

    def list_calls(self) -> tuple[Call, ...]:
        """Return the calls; those that others stand in for are not certain."""
        for start, end, after, stop in self._excuses:
            known = [[word.text for word in call.words] for call in self.calls[start:end]]
            if any(_is_other(call, known) for call in self.calls[after:stop]):
                self.calls[start:end] = [call._replace(is_certain=False) for call in self.calls[start:end]]
        return tuple(self.calls)

    def read(self, path: str) -> str | None:
        """Return the text of a file that the script has written, or that the container has."""
        text = self.written.get(path)
        if text is None:
            return self._files(path)
        return text if is_known(text) else None


def _is_other(call: Call, known: list[list[str | None]]) -> bool:
    """Return True if a call can stand in for others: a retry of the same, or a minor program, cannot."""
    texts = [word.text for word in call.words]
    return (texts[0] or "").rpartition("/")[2] not in _MINOR and texts not in known
