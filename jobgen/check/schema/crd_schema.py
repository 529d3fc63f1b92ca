"""What the API server says of an object by its CRD's schema: JSON Schemas compiled to checks that speak to people.

Each schema node becomes one closure. A property whose value has just the right Python type costs one look at that type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from jobgen.check.schema.constraints import forms, limits
from jobgen.check.schema.field_locations import homes, homeward
from jobgen.check.schema.list_keys import repeated
from jobgen.check.schema.own_formats import TYPES, WORDS, shown, to_blame
from jobgen.model.data import Data, TracedKey, TracedScalar, is_null, type_of, value_of
from jobgen.model.finding import Problem
from jobgen.model.limits import MAX_FINDINGS, Budget
from jobgen.model.suggest import NO_FIX, did_you_mean, suggest_rename, suggest_type

Check = Callable[[Data, str, Data, list[Problem]], None]
"""Judges a value: the value, the name it goes by, the node to blame if it has no place, the problems so far."""

Field = tuple[type | None, Check]
"""The type of value that needs no further look, and the check for all others."""

_RANGES = {"int32": range(-(2**31), 2**31), "int64": range(-(2**63), 2**63)}
_SEVERAL = ("anyOf", "oneOf", "allOf")
# A CEL rule takes as long as many looks at a schema.
_RULE_STEPS = 100
# A field that says no more than this needs no look beyond its type.
_NO_FURTHER_LOOK = frozenset(("type", "x-kubernetes-int-or-string", "default", "nullable"))


def compile_structural(schema: dict[str, Any], budget: Budget | None = None) -> Callable[[Data], list[Problem]]:
    """The check for a whole object; with a budget, one that a stranger's schema cannot keep busy for long."""
    compiler = _Compiler(schema, budget)
    judge = compiler.check(schema)

    def check(value: Data) -> list[Problem]:
        problems: list[Problem] = []
        judge(value, schema.get("title", ""), value, problems)
        return [compiler.mended(problem, value) for problem in problems] if problems else problems

    return check


class _Compiler:
    """Turns schema nodes into closures; a type that is referred to is compiled once."""

    def __init__(self, root: dict[str, Any], budget: Budget | None = None) -> None:
        self.root = root
        self.budget = budget
        self.refs: dict[str, Check] = {}
        self._homes: dict[str, list[str]] = {}

    def check(self, schema: dict[str, Any]) -> Check:
        judge = self._shape(schema)
        if schema.get("x-kubernetes-validations"):
            # Late, because most kinds have no rules, and need no CEL.
            from jobgen.check.schema.cel_rules import ruled

            judge = ruled(judge, schema, self.root, self.budget)
        return _counted(judge, self.budget, _weight(schema)) if self.budget else judge

    def _shape(self, schema: dict[str, Any]) -> Check:
        if "$ref" in schema:
            return self._ref(schema["$ref"])
        if "anyOf" in schema and schema["anyOf"][-1] == {"type": "null"}:
            return _unless_null(self.check(schema["anyOf"][0]))
        typed = "type" in schema or schema.keys() & {"required", "properties"}
        checks = [self._typed({"type": ["object", "null"], **schema})] if typed else []
        checks += limits(schema, foreign=self.budget is not None)
        checks += [forms(word, [self.check(form) for form in schema[word]]) for word in _SEVERAL if word in schema]
        if "not" in schema:
            checks.append(forms("not", [self.check(schema["not"])]))
        return checks[0] if len(checks) == 1 else _all(checks) if checks else _anything

    def _typed(self, schema: dict[str, Any]) -> Check:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if "object" in kinds:
            return self._object(schema, nullable="null" in kinds)
        if "array" in kinds:
            return self._array(schema, nullable="null" in kinds)
        return _scalar(kinds, schema.get("format", ""))

    def _ref(self, ref: str) -> Check:
        if ref not in self.refs:
            # A type may refer to itself: until it is compiled, its check is looked up when it runs.
            self.refs[ref] = lambda *args: self.refs[ref](*args)  # noqa: PLW0108
            self.refs[ref] = self.check(self.root["$defs"][ref.rpartition("/")[2]])
        return self.refs[ref]

    def _field(self, schema: dict[str, Any]) -> Field:
        kinds = schema.get("type", [])
        simple = str if "string" in kinds else bool if "boolean" in kinds else None
        if schema.keys() - _NO_FURTHER_LOOK:
            simple = None
        return simple, self.check(schema)

    def _object(self, schema: dict[str, Any], *, nullable: bool) -> Check:
        properties = schema.get("properties", {})
        extra = schema.get("additionalProperties", True)
        other = self._field(extra) if isinstance(extra, dict) else (None, _anything) if extra else None
        # The server fills in defaults before it looks.
        required = [key for key in schema.get("required", ()) if "default" not in properties.get(key, ())]
        fields = _Fields({name: partial(self._field, child) for name, child in properties.items()}, other)
        # What is wrong with a stranger's schema shall show at once.
        fields.update({name: fields[name] for name in properties} if self.budget else {})
        return _mapping(fields, tuple(required), self._hint, nullable=nullable)

    def _array(self, schema: dict[str, Any], *, nullable: bool) -> Check:
        items = self._field(schema.get("items", {}))
        keys = schema.get("x-kubernetes-list-map-keys")
        unique = tuple(keys) if keys else () if schema.get("x-kubernetes-list-type") == "set" else None
        return _list(items, unique, nullable=nullable)

    def mended(self, problem: Problem, made: Data) -> Problem:
        """The problem with what would mend it: a field in the wrong place is moved to the only one that it has."""
        if problem.rule != "unknown-field" or problem.fix_steps or type(problem.node) is not TracedKey:
            return problem
        self._homes = self._homes or homes(self.root)
        fix_steps, safe = homeward(problem.node, made, self._homes)
        return problem._replace(fix_steps=fix_steps, safe=safe)

    def _hint(self, field: str, known: list[str]) -> str:
        """The nearest right name beside an unknown field, or the place where a field of that name lives."""
        self._homes = self._homes or homes(self.root)
        known_homes = self._homes.get(field, [])
        close = did_you_mean(field, known)
        if known_homes and not (close and field.lower() in (name.lower() for name in known)):
            return f"; it belongs in `{known_homes[0]}`"
        return close


class _Fields(dict[str, Field | None]):
    """The fields of a mapping, each compiled when an object has it: most objects have few of all there are."""

    def __init__(self, known: dict[str, Callable[[], Field]], other: Field | None) -> None:
        super().__init__()
        self.known = known
        self.other = other

    def __missing__(self, key: str) -> Field | None:
        if key not in self.known:
            return self.other
        # A traced key would keep its whole file alive.
        field = self[str(key)] = self.known[key]()
        return field


def _mapping(
    fields: _Fields,
    required: tuple[str, ...],
    hint: Callable[[str, list[str]], str],
    *,
    nullable: bool,
) -> Check:
    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        if not isinstance(value, dict):
            if not (nullable and value_of(value) is None):
                problems.append(_wrong_type(value, name, blame, "a mapping"))
            return
        for key, child in value.items():
            field = fields[key]
            if field is None:
                _unknown(key, value, name, list(fields.known), hint, problems)
            elif type(child) is not field[0] and not (
                child is None or (type(child) is TracedScalar and is_null(child))
            ):
                # The server drops a null before it looks further, or keeps it where it may stand.
                field[1](child, key, key, problems)
        for key in required:
            found = value.get(key)
            if found is None or (type(found) is TracedScalar and is_null(found)):
                problems.append(Problem("missing-field", f"`{name}` needs `{key}`", value or blame, category="schema"))

    return check


def _unknown(
    key: str,
    holder: dict[str, Data],
    name: str,
    known: list[str],
    hint: Callable[[str, list[str]], str],
    problems: list[Problem],
) -> None:
    if len(problems) < MAX_FINDINGS:
        near = hint(str(key), known)
        message = f"`{key}` is not a field of `{name}`{near}"
        # A field that has its home elsewhere is not renamed to what happens to be near.
        fix_steps, safe = suggest_rename(key, known, holder) if "did you mean" in near else NO_FIX
        problems.append(Problem("unknown-field", message, key, category="schema", fix_steps=fix_steps, safe=safe))


def _list(items: Field, unique: tuple[str, ...] | None, *, nullable: bool) -> Check:
    simple, judge = items

    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        if not isinstance(value, list):
            if not (nullable and value_of(value) is None):
                problems.append(_wrong_type(value, name, blame, "a list"))
            return
        for index, item in enumerate(value):
            if len(problems) > MAX_FINDINGS:
                return
            if type(item) is not simple:
                if item is None or (type(item) is TracedScalar and is_null(item)):
                    problems.append(_wrong_type(item, f"{name}[{index}]", blame, "more than null"))
                else:
                    judge(item, f"{name}[{index}]", blame, problems)
        if unique is not None and len(value) > 1:
            problems.extend(repeated(value, unique, name))

    return check


def _scalar(kinds: list[str], form: str) -> Check:
    types = frozenset(kind for name in kinds for kind in TYPES[name])
    expected = " or ".join(WORDS[name] for name in kinds if name != "null")
    numbers = _RANGES.get(form)

    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        sort = type_of(value)
        if sort not in types:
            problems.append(_wrong_type(value, name, blame, expected))
        elif numbers is not None and sort is int and value_of(value) not in numbers:
            message = f"`{name}` is `{value_of(value)}`, which does not fit into {form[3:]} bits"
            problems.append(Problem("out-of-range", message, to_blame(value, blame), category="schema"))

    return check


def _all(checks: list[Check]) -> Check:
    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        for judge in checks:
            judge(value, name, blame, problems)

    return check


def _weight(schema: dict[str, Any]) -> int:
    """How much work one look at a value is."""
    listed = sum(len(schema[word]) for word in ("required", "enum", *_SEVERAL) if word in schema)
    return 1 + listed + _RULE_STEPS * len(schema.get("x-kubernetes-validations", ()))


def _counted(judge: Check, budget: Budget, weight: int) -> Check:
    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        budget.spend(weight)
        judge(value, name, blame, problems)

    return check


def _unless_null(judge: Check) -> Check:
    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        if value is not None and not (type(value) is TracedScalar and is_null(value)):
            judge(value, name, blame, problems)

    return check


def _anything(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
    """A field whose content Kubernetes keeps as it is."""


def _wrong_type(value: Data, name: str, blame: Data, expected: str) -> Problem:
    quote = "; put it in quotes" if expected == "a string" and not isinstance(value, (dict, list)) else ""
    message = f"`{name}` is {shown(value)}, and must be {expected}{quote}"
    fix_steps, safe = suggest_type(value, expected)
    return Problem("wrong-type", message, to_blame(value, blame), category="schema", fix_steps=fix_steps, safe=safe)
