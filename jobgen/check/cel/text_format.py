"""Strings in CEL where Go differs from the engine: functions, `string.format`, and regular expressions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from math import isfinite, isnan
from typing import Any

from jobgen.check.cel import engine
from jobgen.check.cel.values import NO_OVERLOAD, OFFLINE, Failed, strings
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

_CLAUSE = lazy_pattern(r"%(?:\.([0-9]{1,3}))?(.?)")
_DEFAULT_PRECISION = 6
_WIDTH = 6
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_NEEDS = {
    "d": ("an integer", ("int", "uint")),
    "f": ("a double", ("double", "string")),
    "e": ("a double", ("double", "string")),
    "b": ("an integer or a boolean", ("int", "uint", "bool")),
    "x": ("an integer, a string or bytes", ("int", "uint", "string", "bytes")),
    "X": ("an integer, a string or bytes", ("int", "uint", "string", "bytes")),
    "o": ("an integer", ("int", "uint")),
    "s": (
        "a value that can be text",
        tuple("bool bytes double duration int list map null string timestamp type uint".split()),
    ),
}


class Clause(NamedTuple):
    """A part of a format: its letter and precision; `%` stands for itself."""

    letter: str
    precision: int
    start: int
    end: int


def read_clauses(form: str) -> Iterator[Clause]:
    """The clauses of a format, without escaped percent signs; raise for one that does not exist."""
    for match in _CLAUSE.finditer(form):
        letter = match[2]
        if letter not in _NEEDS and letter != "%":
            raise ValueError(f"`{match[0]}` is not a formatting clause")
        yield Clause(letter, int(match[1]) if match[1] else _DEFAULT_PRECISION, match.start(), match.end())


def find_fault(form: str, types: list[str]) -> str:
    """Why a literal format does not fit arguments of these types; empty if it does."""
    try:
        letters = [clause.letter for clause in read_clauses(form) if clause.letter != "%"]
    except ValueError as error:
        return str(error)
    if len(letters) > len(types):
        return f"index {len(types)} out of range"
    if len(types) > len(letters):
        return f"too many arguments supplied to format: expected {len(letters)}, got {len(types)}"
    for letter, kind in zip(letters, types, strict=True):
        noun, allowed = _NEEDS[letter]
        if kind.partition("<")[0] not in (*allowed, "dyn", "any"):
            return f"`%{letter}` requires {noun}, got {kind}"
    return ""


def can_be_text(kind: str) -> bool:
    """Return True if values of a type can be written as text."""
    return kind.partition("<")[0] in (*_NEEDS["s"][1], "dyn", "any")


def _format(form: object, arguments: object) -> str:
    (text,) = strings(form)
    values = arguments if isinstance(arguments, list) else []
    pieces, last, index = [], 0, 0
    for clause in read_clauses(text):
        pieces.append(text[last : clause.start])
        last = clause.end
        if clause.letter == "%":
            pieces.append("%")
            continue
        if index >= len(values):
            raise ValueError(f"index {index} out of range")
        pieces.append(_FORMATS[clause.letter](values[index], clause))
        index += 1
    return "".join(pieces) + text[last:]


def _require(value: Any, clause: Clause, *types: type) -> None:
    # A boolean is an integer in Python.
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise TypeError(f"`%{clause.letter}` requires {_NEEDS[clause.letter][0]}")


def _integer(value: Any, clause: Clause) -> str:
    _require(value, clause, int, *((bool,) if clause.letter == "b" else ()))
    return format(value, clause.letter)


def _to_double(value: Any, clause: Clause) -> float:
    if value in ("NaN", "Infinity", "-Infinity") and isinstance(value, str):
        return float(value)
    _require(value, clause, float)
    return float(value)


def _fixed(value: Any, clause: Clause) -> str:
    number = _to_double(value, clause)
    return f"{number:,.{clause.precision}f}" if isfinite(number) else _infinite(number)


def _scientific(value: Any, clause: Clause) -> str:
    number = _to_double(value, clause)
    if not isfinite(number):
        return _infinite(number).rjust(_WIDTH)
    digits, _, exponent = f"{number:.{_DEFAULT_PRECISION}e}".partition("e")
    return f"{digits}×10{exponent.removeprefix('+').translate(_SUPERSCRIPTS)}"


def _infinite(number: float) -> str:
    return "NaN" if isnan(number) else "∞" if number > 0 else "-∞"


def _hex(value: Any, clause: Clause) -> str:
    _require(value, clause, int, str, bytes, bytearray)
    if isinstance(value, int):
        shown = f"{value:x}"
    else:
        shown = (value.encode() if isinstance(value, str) else bytes(value)).hex()
    return shown.upper() if clause.letter == "X" else shown


def _text(value: Any, clause: Clause | None = None) -> str:
    """A value as `string(value)` shows it; lists and mappings as literals."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return _double(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode(errors="replace")
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z") if value.tzinfo else f"{value.isoformat()}Z"
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(sorted(f'{_literal(key)}:{_literal(item)}' for key, item in value.items()))}}}"
    if isinstance(value, (str, int)):
        return str(value)
    # A type, which the library shows in capitals.
    return str(value).partition("<")[0].lower()


def _double(value: float) -> str:
    if not isfinite(value):
        return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"
    return repr(value).removesuffix(".0")


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (bytes, bytearray)):
        return f"b{json.dumps(_text(value), ensure_ascii=False)}"
    if isinstance(value, float):
        return f"{value:.{_DEFAULT_PRECISION}f}" if isfinite(value) else json.dumps(_double(value))
    if isinstance(value, (datetime, timedelta)):
        return f'{"timestamp" if isinstance(value, datetime) else "duration"}("{_text(value)}")'
    return _text(value)


_FORMATS: dict[str, Callable[[Any, Clause], str]] = {
    "s": _text,
    "d": _integer,
    "f": _fixed,
    "e": _scientific,
    "b": _integer,
    "o": _integer,
    "x": _hex,
    "X": _hex,
}


def _substring(text: object, start: object, end: object = None) -> str:
    """`string.substring(start)` and `string.substring(start, end)`; the end may be the size of the text."""
    (found,) = strings(text)
    last = len(found) if end is None else end
    if type(start) is not int or type(last) is not int:
        raise TypeError(NO_OVERLOAD)
    if start < 0 or start > len(found):
        raise ValueError(f"index out of range: {start}")
    if last < 0 or last > len(found):
        raise ValueError(f"index out of range: {last}")
    if start > last:
        raise ValueError(f"invalid substring range. start: {start}, end: {last}")
    return found[start:last]


def _with_type(kind: object, name: object, value: object) -> object:
    """A value that the type checker found to have a type; Go has no conversion from another one to call then."""
    if _TYPES.get(type(value)) not in (None, kind) and not (kind == "uint" and type(value) is int):
        raise TypeError(f"{NO_OVERLOAD}: {name}({_TYPES[type(value)]})")
    return value


_TYPES: dict[type, str] = {bool: "bool", int: "int", float: "double", str: "string", type(None): "null_type"}


# An escape, quoted text, a class, or a group: the tokens needed to find capturing groups.
_PARTS = lazy_pattern(r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\((?:\?P?<\w+>|(?!\?))", re.DOTALL)

_CATEGORY = lazy_pattern(r"\\([pP])\{(\^?)([A-Za-z_ -]+)\}|\\.", re.DOTALL)
_CATEGORIES = dict(
    entry.split(":")
    for entry in """letter:L uppercaseletter:Lu lowercaseletter:Ll titlecaseletter:Lt modifierletter:Lm otherletter:Lo
    mark:M combiningmark:M nonspacingmark:Mn spacingmark:Mc enclosingmark:Me number:N decimalnumber:Nd digit:Nd
    letternumber:Nl othernumber:No punctuation:P punct:P connectorpunctuation:Pc dashpunctuation:Pd openpunctuation:Ps
    closepunctuation:Pe initialpunctuation:Pi finalpunctuation:Pf otherpunctuation:Po symbol:S mathsymbol:Sm
    currencysymbol:Sc modifiersymbol:Sk othersymbol:So separator:Z spaceseparator:Zs lineseparator:Zl
    paragraphseparator:Zp other:C control:Cc cntrl:Cc format:Cf privateuse:Co""".split()
)


def matches(text: object, pattern: object) -> bool:
    """`string.matches(pattern)`, cached, because the engine compiles a pattern on each call."""
    return bool(_matches(*strings(text, pattern)))


def _find(text: object, pattern: object) -> str:
    """`string.find(pattern)`: the first match, or nothing."""
    found, wanted = strings(text, pattern)
    return str(_native("regex.extract(text, pattern).orValue('')", found, uncaptured(wanted)))


def _find_all(text: object, pattern: object, most: object = -1) -> list[str]:
    """`string.findAll(pattern)`, and with the number of matches that is enough."""
    found, wanted = strings(text, pattern)
    if type(most) is not int:
        raise TypeError(NO_OVERLOAD)
    if _matches("", f"^(?:{wanted})$"):
        raise ValueError(f"all matches of `{wanted}`, which also matches nothing, {OFFLINE}")
    every: list[str] = _native("regex.extractAll(text, pattern)", found, uncaptured(wanted))
    return every if most < 0 else every[:most]


def _abbreviate_categories(pattern: str) -> str:
    """The same pattern with the short names of Unicode categories; the engine does not know the long ones."""

    def abbreviate(part: re.Match[str]) -> str:
        name = re.sub("[_ -]", "", part[3] or "").lower()
        return f"\\{part[1]}{{{part[2]}{_CATEGORIES[name]}}}" if name in _CATEGORIES else part[0]

    return _CATEGORY.sub(abbreviate, pattern) if "{" in pattern else pattern


def fault(pattern: str) -> str:
    """Why a text is not a pattern; empty if it is."""
    try:
        _matches("", pattern)
    except ValueError as error:
        return str(error)
    return ""


def uncaptured(pattern: str) -> str:
    """The same pattern without capturing groups, which change the result of the engine but not the match."""
    return _PARTS.sub(lambda part: "(?:" if part[0].startswith("(") else part[0], _abbreviate_categories(pattern))


@lru_cache(maxsize=16384)
def _matches(text: str, pattern: str) -> Any:
    return _native("text.matches(pattern)", text, _abbreviate_categories(pattern))


def _native(asked: str, text: str, pattern: str) -> Any:
    answer = engine.question(asked, ("text", "pattern"))({"text": text, "pattern": pattern})
    if isinstance(answer, Failed):
        raise ValueError(answer.message)  # noqa: TRY004
    return answer


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "matches": matches,
    "find": _find,
    "findAll": _find_all,
    "jsonpatch.escapeKey": lambda text: strings(text)[0].replace("~", "~0").replace("/", "~1"),
    "substring": _substring,
    "format": _format,
    "@withType": _with_type,
}
