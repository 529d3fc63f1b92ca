"""`string.format(list)` in CEL, as Go formats values for the locale en_US."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from math import isfinite, isnan
from typing import Any

from jobgen.check.cel.values import strings
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
    "s": ("a value that can be text", ()),
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
        if allowed and kind not in (*allowed, "dyn"):
            return f"`%{letter}` requires {noun}, got {kind}"
    return ""


def format_text(form: object, arguments: object) -> str:
    """`string.format(list)`."""
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


def _decimal(value: Any, clause: Clause) -> str:
    _require(value, clause, int)
    return str(value)


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


def _binary(value: Any, clause: Clause) -> str:
    _require(value, clause, int, bool)
    return f"{value:b}"


def _octal(value: Any, clause: Clause) -> str:
    _require(value, clause, int)
    return f"{value:o}"


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
    """A value inside of a list or mapping."""
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
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hex,
    "X": _hex,
}
