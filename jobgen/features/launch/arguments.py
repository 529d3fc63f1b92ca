"""Read the arguments and files of a training script without knowing all its options, and check tables of invariants."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple

from jobgen.features.launch.values import Fault, Pods, Program, Word
from jobgen.model.data import Node
from jobgen.yamlio.read import read_shared

Number = int | float | None


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
        if not _is_option(text):
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


def _is_option(text: str) -> bool:
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
    table: Iterable[Invariant], numbers: Mapping[str, Any], options: Mapping[str, Word], program: Program, pods: Pods
) -> Iterator[Fault]:
    """Yield a fault for each invariant that does not hold. `world` is the number that the pods give."""
    for holds, text, at, is_error in table:
        code: CodeType = holds.__code__
        names = [name.lstrip("_") for name in code.co_varnames[: code.co_argcount]]
        values = [numbers.get(name) for name in names]
        if any(value is None for value in values) or holds(*values):
            continue
        word = next((options[name] for name in at.split() if name in options), None)
        related = compared_values(pods) if "world" in names else ()
        yield Fault(word.node if word else program.node, text.format(**numbers), is_error, related=related)


def compared_values(pods: Pods) -> tuple[tuple[Node, str], ...]:
    """Return the numbers of pods and GPUs as they are written, for `Fault.related`."""
    return tuple((node, "") for node in (*pods.counts, pods.container.device_node) if node is not None)


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
