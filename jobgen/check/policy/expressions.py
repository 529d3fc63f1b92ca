"""The CEL expressions of policies: what each one reads, and variables inlined where that is cheap."""

from __future__ import annotations

import marshal
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from jobgen.check.cel import Bound, CompileError, Expression, Failed, compile_cel
from jobgen.check.cel.together import MAX_VARIABLES, NAMES, Program, Shared, is_structure, load_value
from jobgen.check.cel.values import OFFLINE, STRING, blank_strings
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern

_NAME = lazy_pattern(r"(?<![\w.])[A-Za-z_]\w*")
_VARIABLE = lazy_pattern(r"(?<![\w.])variables\s*\.\s*(?P<asks>\??)\s*(?P<name>[A-Za-z_]\w*)")
_HAS = lazy_pattern(r"(?<![\w.])has\s*\(\s*$")
# No expression without one of these is an optional.
_MAY_BE_OPTIONAL = lazy_pattern(r"[.\[{,]\s*\?|\b(?:opt|(?:format|validate|first|last)\b)")
_LOOP = lazy_pattern(
    r"\.\s*(?:all|exists|exists_one|existsOne|filter|map|transformList|transformMap|transformMapEntry)\s*$"
)
_CHAIN = lazy_pattern(
    rf"(?<![\w.])(?:object|dyn\s*\(\s*object\s*\))((?:\s*\.\s*\??[A-Za-z_]\w*(?!\w*\s*\()|\[\s*\??(?:{STRING})\s*\])+)",
    re.DOTALL,
)
_STEP = lazy_pattern(rf"\.\s*\??([A-Za-z_]\w*)|\[\s*\??({STRING})\s*\]", re.DOTALL)
_MAX_FOUND = 1_000
_MAX_INLINED_LENGTH = 10_000
_MAX_CLOSED_LENGTH = 8_000
_LOOP_VARIABLE = "jobgen_variable_"

_T = TypeVar("_T")

RESERVED = frozenset(
    """as break const continue else false for function if import in let loop namespace null package return true
    var void while""".split()
)


class PolicyExpression:
    """An expression and what it reads; variables are inlined when that is first needed, and it is compiled then."""

    def __init__(self, text: str, variables: Mapping[str, PolicyExpression | None], returns: str) -> None:
        self.text = text
        self.returns = returns
        self.above = dict(variables)
        """The variables above the expression; others may be added later."""
        self._shared: dict[tuple[int, bool], Shared | None] = {}
        self._compiled: Expression | None = None
        self._found: dict[bytes, Any] = {}

    @cached_property
    def _inlining(self) -> tuple[str, tuple[str, ...]]:
        return _inline_variables(self.text, self.above)

    @property
    def inlined(self) -> str:
        """Its text, with variables inlined."""
        return self._inlining[0]

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that are not inlined."""
        return self._inlining[1]

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of `NAMES` that it reads."""
        return find_names(self.inlined) & frozenset(NAMES)

    @cached_property
    def is_optional(self) -> bool:
        """Return True if its value is an optional, which cannot leave the engine: `evaluate` returns a mapping."""
        return _is_optional(self.inlined)

    def evaluate(self, bindings: Bound) -> Any | Failed:
        """Its value for some bindings."""
        if self._compiled is None:
            text = _to_mapping(self.inlined) if self.returns == "any" and self.is_optional else self.inlined
            compiled = compile_cel(text, NAMES, returns=self.returns)
            assert isinstance(compiled, Expression), f"checked before: {compiled.message}: {self.inlined}"
            self._compiled = compiled
        return self._compiled(bindings)

    @cached_property
    def reads(self) -> frozenset[str]:
        """What it reads, itself and through variables; not `variables`."""
        of_variables = (value.reads for name, value in self.above.items() if value and name in self.variables)
        return (self.names - {"variables"}).union(*of_variables)

    @cached_property
    def has_variables(self) -> bool:
        """Return True if it reads variables, inlined or not."""
        return bool(find_variables(self.text))

    def list_texts(self) -> set[str]:
        """Its text, as it is written and as it is evaluated."""
        shared = self.share()
        return {self.text, self.inlined, shared.text if shared else self.text}

    def evaluate_fast(self, bindings: Bound) -> Any | Failed:
        """Its value with all variables evaluated inside of the engine, which saves converting them to Python and back.

        A failure says nothing about the value.
        """
        return self._program.evaluate(bindings) if self._program else Failed("")

    @cached_property
    def _program(self) -> Program | None:
        shared = self.share(is_ordered=self.returns != "bool")
        return load_value(shared) if shared else None

    def project(self, obj: Plain) -> Plain:
        """What it can read of an object, itself and through variables."""
        # Imported late: most objects pass.
        from jobgen.check.cel.reads import project

        shared = self.share(is_ordered=self.returns != "bool")
        return project(obj, shared) if shared else obj

    def find_once(self, values: Mapping[str, Plain], find: Callable[[], _T]) -> _T:
        """What is found about values that it reads; for the same values, such as those of other environments, once."""
        try:
            read = {name: value for name, value in values.items() if name in self.reads or name not in NAMES}
            # In version 2, equal values have equal bytes.
            key = marshal.dumps(read, 2)
        except ValueError:
            # A value that is not plain data.
            return find()
        if key not in self._found:
            if len(self._found) == _MAX_FOUND:
                self._found.clear()
            self._found[key] = find()
        found: _T = self._found[key]
        return found

    def share(self, params: int = -1, *, is_ordered: bool = False) -> Shared | None:
        """The expression with its variables, to be evaluated together with others; None if it cannot be.

        If it is ordered, loops over mappings go through their keys in order.
        """
        key = params if "params" in self.reads else -1, is_ordered
        if key not in self._shared:
            self._shared[key] = self._share(*key)
        return self._shared[key]

    def _share(self, params: int, is_ordered: bool) -> Shared | None:
        """Variables of which the checker knows the type become variables of loops over one item."""
        wanted, shared, inner = set(find_variables(self.text)), [], []
        for name, value in reversed(self.above.items()):
            if name not in wanted:
                continue
            found = value.share(params, is_ordered=is_ordered) if value else None
            if value is None or found is None:
                return None
            if is_structure(found):
                shared.append((name, found))
                continue
            names = find_variables(value.text)
            if any(value.above.get(each) is not self.above.get(each) for each in names):
                # A variable was defined again in between.
                return None
            wanted.update(names)
            inner.append((name, value.text))
        text = _use_loop_variables(self.text, dict(inner))
        for name, made in inner:
            # Line breaks, because expressions may end in a comment.
            text = f"[{_use_loop_variables(made, dict(inner))}\n].map({_LOOP_VARIABLE}{name}, {text}\n)[0]"
        if len(text) > _MAX_CLOSED_LENGTH or len(shared) + len(inner) > MAX_VARIABLES:
            return None
        returns = self.returns if self.returns != "any" or is_ordered else "unordered"
        return Shared(text, returns, tuple(sorted(shared)), params)

    def paths(self) -> list[tuple[str, ...]]:
        """The fields of the object that it names, such as `object.metadata.labels['team']`."""
        return [
            tuple(name or quoted.strip("'\"") for name, quoted in _STEP.findall(chain))
            for chain in _CHAIN.findall(self.inlined)
        ]


@lru_cache(maxsize=1024)
def _blank(text: str) -> str:
    """The text with blanks in the place of strings and comments; it is looked at several times."""
    return blank_strings(text)


def find_names(text: str) -> frozenset[str]:
    """The names in an expression, other than in strings and comments."""
    return frozenset(_NAME.findall(_blank(text)))


def find_variables(text: str) -> tuple[str, ...]:
    """The names of the variables that an expression reads."""
    return tuple(dict.fromkeys(match["name"] for match in _find_variables(text)))


def _find_variables(text: str) -> list[re.Match[str]]:
    """Where an expression reads variables."""
    return list(_VARIABLE.finditer(_blank(text))) if "variables" in text else []


def find_limit(text: str, variables: Mapping[str, PolicyExpression | None], returns: str) -> str:
    """Why an expression that the API server accepts cannot be evaluated offline; empty if it can."""
    if any(variables.get(name) is None for name in find_variables(text)):
        # The variable has a finding.
        return ""
    inlined, _ = _inline_variables(text, variables)
    # With variables inlined, more types are known.
    compiled = (_compile(each, returns) for each in (unwrap_optionals(text, variables), inlined))
    message = next((each.message for each in compiled if isinstance(each, CompileError)), "")
    return message if not message or OFFLINE in message else f"{message}, which {OFFLINE}"


def _compile(text: str, returns: str) -> Expression | CompileError:
    """Compile an expression; one that may return anything may return an optional."""
    compiled = compile_cel(text, NAMES, returns=returns)
    if isinstance(compiled, CompileError) and returns == "any" and _is_optional(text):
        return compile_cel(_to_mapping(text), NAMES, returns=returns)
    return compiled


def _is_optional(text: str) -> bool:
    """Return True if the value of an expression is an optional."""
    if not _MAY_BE_OPTIONAL.search(_blank(text)):
        return False
    compiled = compile_cel(text, NAMES, returns="any")
    return isinstance(compiled, CompileError) and compiled.is_about_result


def _to_mapping(text: str) -> str:
    """An expression for a mapping with the value of an optional; empty if it has none."""
    # A line break, because an expression may end in a comment.
    return f"{{?'value': ({text}\n)}}"


def unwrap_optionals(text: str, variables: Mapping[str, PolicyExpression | None]) -> str:
    """The text with each variable that is an optional read from its mapping; nothing is inlined."""
    blanked = _blank(text)
    for match in reversed(_find_variables(text)):
        value = variables.get(match["name"])
        if value is not None and value.is_optional and not _is_tested(blanked, match):
            text = f"{text[: match.start()]}{_read_optional(match)}{text[match.end() :]}"
    return text


def _read_optional(match: re.Match[str]) -> str:
    """The optional whose value is in the mapping that a variable has in its place."""
    read = f"variables.{match['name']}.?value"
    return f"optional.of({read})" if match["asks"] else read


def _use_loop_variables(text: str, names: Mapping[str, str]) -> str:
    """The text with variables of loops in the place of some `variables.x`; other ways to read variables are left."""
    blanked = _blank(text)
    for match in reversed(_find_variables(text) if names else ()):
        if match["name"] in names and not match["asks"] and not _is_tested(blanked, match):
            text = f"{text[: match.start()]}{_LOOP_VARIABLE}{match['name']}{text[match.end() :]}"
    return text


def _is_tested(blanked: str, match: re.Match[str]) -> bool:
    """Return True if `has` is asked for a variable itself, which is true for each that can be evaluated."""
    return _HAS.search(blanked[: match.start()]) is not None and blanked[match.end() :].lstrip().startswith(")")


def _inline_variables(text: str, variables: Mapping[str, PolicyExpression | None]) -> tuple[str, tuple[str, ...]]:
    """The text with each variable that is read once replaced by its expression, and the variables that are left.

    An inlined value stays inside the engine, which saves converting it to Python and back.
    """
    blanked = _blank(text)
    found = _find_variables(text)
    count = Counter(match["name"] for match in found)
    left: dict[str, None] = {}
    for match in reversed(found):
        name = match["name"]
        value = variables.get(name)
        is_read_once = count[name] == 1 and not _is_in_loop(blanked[: match.start()])
        is_short = value is not None and len(text) + len(value.inlined) < _MAX_INLINED_LENGTH
        is_tested = _is_tested(blanked, match)
        # A constant costs nothing to evaluate again.
        if value and is_short and not is_tested and (is_read_once or not (value.names or value.variables)):
            wrapped = "optional.of" if match["asks"] else ""
            text = f"{text[: match.start()]}{wrapped}({value.inlined}\n){text[match.end() :]}"
            left |= dict.fromkeys(value.variables)
            continue
        if value and value.is_optional and not is_tested:
            text = f"{text[: match.start()]}{_read_optional(match)}{text[match.end() :]}"
        left[name] = None
    return text, tuple(left)


def _is_in_loop(before: str) -> bool:
    """Return True if the text after `before` is inside a macro, where it would be evaluated for each item."""
    opened: list[bool] = []
    for index, char in enumerate(before):
        if char == "(":
            opened.append(_LOOP.search(before[:index]) is not None)
        elif char == ")" and opened:
            opened.pop()
    return any(opened)
