"""The CEL engine: parse texts, build programs from trees, run programs. Only this module imports the library."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from jobgen.check.cel.values import (
    OFFLINE,
    THAN_ALLOWED,
    CompileError,
    Failed,
    drop_repeated_parentheses,
    is_too_deep,
)
from jobgen.model.lazy_re import lazy_pattern

Native = Any
"""A value of the library: a compiled expression, or bound variables."""

Functions = Mapping[str, Callable[..., Any]]

PREFIX = "jobgen_"
"""The prefix of our functions at run time, so that none clashes with one of the engine's."""

_FAULT = lazy_pattern(r"ERROR: <input>:(-?\d+):(-?\d+): (.*)")
_CODE = lazy_pattern(r"^(?:[A-Z_]+: )+|\s*\[[A-Z_]+\]$|\s*\(in container ''\)")
_QUOTED = lazy_pattern(r"'((?:_?[^\s']+_?)|\([^']*\))'")
_HAS = "has() argument must be a field selection"
TOO_MANY_STEPS = "its loops take more steps"
TOO_DEEP = f"an expression that is nested more deeply than the CEL library reads {OFFLINE}"
_WORDS = (
    (lazy_pattern(r"Key not found in map : (.*)"), r"no such key: `\1`"),
    (lazy_pattern(r"No matching overloads found : (.*)"), r"no such overload: `\1`"),
    (lazy_pattern(r"Applying SELECT to non-message type"), "no such overload: a field of what is not a mapping"),
    (lazy_pattern(r"Iteration budget exceeded"), f"{TOO_MANY_STEPS} {THAN_ALLOWED}, or more than 10000"),
    (lazy_pattern(r"Index error: index=(\S+) size=(\S+)"), r"index out of bounds: `\1` of `\2`"),
)
_LOOPS = ("optional", "sets", "lists", "two-var-comprehensions")


def missing() -> str:
    """Why the engine cannot be imported; empty if it can."""
    try:
        from cel_expr_python import cel  # noqa: F401
    except ImportError as error:
        return f"CEL cannot be evaluated here: {error}; `pip install cel-expr-python` (there is no wheel for musl)"
    return ""


class _Work:
    """The steps of all evaluations of this process that are counted: those in Python, which take the most time."""

    steps = 0
    last = sys.maxsize
    """The number of steps after which an evaluation ends."""


WORK = _Work()
_CALL_STEPS, _RUN_STEPS = 8, 16


def parse(text: str, extensions: tuple[str, ...]) -> bytes | CompileError:
    """The serialized tree of a text, with the macros of some extensions expanded; its types are not checked."""
    try:
        return bytes(_parser(extensions).compile(text, disable_check=True).serialize())
    except TypeError:
        # Half of a surrogate pair.
        return CompileError("the expression is not text in UTF-8")
    except (RuntimeError, MemoryError) as error:
        fault = _fault(str(error))
    if fault.message == TOO_DEEP:
        shorter = drop_repeated_parentheses(text)
        if shorter != text:
            return parse(shorter, extensions)
        if is_too_deep(text):
            return CompileError("it is nested more deeply than the API server reads; split it")
    return fault


def program(serialized: bytes, functions: Functions) -> Native:
    """Build a program from a tree; our functions take their arguments in one list."""
    return _runtime_of(tuple(functions.items())).deserialize(serialized)


@lru_cache(maxsize=8)
def question(text: str, names: tuple[str, ...]) -> Callable[[dict[str, str]], Any]:
    """Evaluate an expression of our own over strings."""
    from cel_expr_python import cel

    asked = cel.NewEnv(
        config=_config(("optional", "regex"), {}), variables=dict.fromkeys(names, cel.Type.STRING)
    ).compile(text)
    return lambda data: run(asked, asked_of(data))


def asked_of(bindings: Mapping[str, Any]) -> Native:
    """Bind variables for any number of programs."""
    return _plain().Activation(dict(bindings))


def run(compiled: Native, bound: Native) -> Any:
    """The value of a program, as plain data."""
    WORK.steps += _RUN_STEPS
    try:
        value = compiled.eval(bound)
        result = value.plain_value()
    except (RuntimeError, TypeError, ValueError, OverflowError, MemoryError) as error:
        return Failed(_words(str(error)))
    if type(result) is bool:
        return result
    return Failed(_words(str(result))) if value.type() == _error_type() else _hashable(result)


def run_verdicts(compiled: Native, bound: Native) -> list[list[bool]] | Failed:
    """The value of a program that asks of each expression whether it may be true, and whether it may be false."""
    WORK.steps += _RUN_STEPS
    try:
        result = compiled.eval(bound).plain_value()
    except (RuntimeError, TypeError, ValueError, OverflowError, MemoryError) as error:
        return Failed(_words(str(error)))
    return result if type(result) is list else Failed(_words(str(result)))


def _hashable(value: Any) -> Any:
    """Convert byte arrays, which the library returns, to bytes."""
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, list):
        return [_hashable(item) for item in value]
    return {key: _hashable(item) for key, item in value.items()} if isinstance(value, dict) else value


@lru_cache(maxsize=1)
def _error_type() -> Native:
    from cel_expr_python import cel

    return cel.Type.ERROR


@lru_cache(maxsize=16)
def _parser(extensions: tuple[str, ...]) -> Native:
    from cel_expr_python import cel

    return cel.NewEnv(config=_config(extensions, {}))


@lru_cache(maxsize=4)
def _runtime_of(functions: tuple[tuple[str, Callable[..., Any]], ...]) -> Native:
    from cel_expr_python import cel

    # A list is the one type that takes arguments of every type.
    takes, gives = [cel.Type.List(cel.Type.DYN)], cel.Type.DYN
    listed = [
        cel.FunctionDecl(
            f"{PREFIX}{name}",
            [cel.Overload(f"{PREFIX}{name}", gives, takes, is_member=False, impl=_spread(function))],
        )
        for name, function in functions
    ]
    return cel.NewEnv(config=_config((*_LOOPS, "strings"), {}), functions=listed)


@lru_cache(maxsize=1)
def _plain() -> Native:
    from cel_expr_python import cel

    return cel.NewEnv()


def _spread(function: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    def call(arguments: list[Any]) -> Any:
        WORK.steps += _CALL_STEPS
        if WORK.steps > WORK.last:
            raise TypeError(THAN_ALLOWED)
        try:
            return function(*arguments)
        finally:
            # The library never frees this list; what is in it may be a whole object.
            arguments.clear()

    return call


def _config(extensions: tuple[str, ...], more: dict[str, Any]) -> Native:
    from cel_expr_python import cel

    listed = [{"name": name, **({"version": 2} if name == "strings" else {})} for name in extensions]
    # JSON is YAML, without the special meaning of `~` and `:`.
    return cel.NewEnvConfigFromYaml(json.dumps({"name": "kubernetes", "extensions": listed, **more}))


def _fault(message: str) -> CompileError:
    if "recursion" in message:
        return CompileError(TOO_DEEP)
    match = _FAULT.search(message)
    if match is None:
        return CompileError(_CODE.sub("", message.partition("\n")[0]))
    line, column, words = match.groups()
    words = _QUOTED.sub(r"`\1`", _CODE.sub("", words).replace(_HAS, "invalid argument to has() macro"))
    return CompileError(words, max(int(line), 1), max(int(column), 1))


def _words(message: str) -> str:
    words = _CODE.sub("", message.partition("\n")[0])
    for found, said in _WORDS:
        words = found.sub(said, words)
    return words.replace('`"', "`").replace('"`', "`")
