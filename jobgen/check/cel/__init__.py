"""CEL as the API server of Kubernetes 1.36 evaluates it in policies and CRDs, offline.

Data must be plain: exact dicts, lists, strings, numbers, booleans and None, because nothing is converted.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jobgen import cache
from jobgen.check.cel import engine
from jobgen.check.cel.values import CompileError, Failed

__all__ = ["Bound", "CompileError", "Expression", "Failed", "available", "bind", "compile_cel", "mentions"]

_NO_AUTHORIZER = "what `authorizer` would answer is not known offline"


class Bound:
    """Variables with their values, for any number of expressions."""

    __slots__ = ("native",)

    def __init__(self, bindings: Mapping[str, Any]) -> None:
        self.native = engine.asked_of(bindings)


class Expression:
    """A compiled expression; call it with plain data."""

    __slots__ = ("_program", "text")

    def __init__(self, text: str, program: engine.Native) -> None:
        self.text = text
        self._program = program

    def __call__(self, bindings: Mapping[str, Any] | Bound) -> Any:
        """The value for these variables, or why there is none."""
        return engine.run(self._program, (bindings if isinstance(bindings, Bound) else Bound(bindings)).native)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


def bind(bindings: Mapping[str, Any]) -> Bound:
    """Bind variables once for many expressions."""
    return Bound(bindings)


def available() -> str:
    """Why CEL cannot be evaluated on this machine, and what to do; empty if it can."""
    return engine.missing()


def mentions(text: str, name: str) -> bool:
    """Whether an expression uses a name."""
    from jobgen.check.cel import checks

    return checks.mentions(text, name)


@lru_cache(maxsize=4096)
def compile_cel(
    text: str, names: tuple[str, ...], *, returns: str = "bool", absent: tuple[str, ...] = ()
) -> Expression | CompileError:
    """Compile an expression, or return why the API server would refuse it.

    `absent` are optional names without a value.
    """
    # Imported late: a run without CEL does not need it.
    from jobgen.check.cel.functions import TABLE

    key = cache.make_key("cel", text, ",".join(names), returns, ",".join(absent))
    known = cache.get(key)
    if known is None:
        checked = _checked(text, names, returns, absent)
        if isinstance(checked, CompileError):
            return checked
        known = checked
        cache.put(key, known)
    return Expression(text, engine.program(known, TABLE))


def _checked(text: str, names: tuple[str, ...], returns: str, absent: tuple[str, ...]) -> bytes | CompileError:
    """The serialized tree of an expression as it is run, or why there is none."""
    from jobgen.check.cel import checks, rewrite, tree

    fault = checks.refused(text)
    if fault is not None:
        return fault
    serialized = engine.check(text, names, absent)
    if isinstance(serialized, CompileError):
        about_authorizer = "`authorizer" in serialized.message and "authorizer" not in names
        return serialized._replace(message=_NO_AUTHORIZER) if about_authorizer else serialized
    checked = tree.read(serialized)
    fault = checks.fault(checked, text, returns)
    if fault is not None:
        return fault
    return tree.write(rewrite.rewrite(checked, absent))
