"""JSON Schemas compiled to checks that speak to people: one problem for each fault, on the node at fault.

The subset that our own formats use. Each schema node becomes one closure; a valid value costs no more than its checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from jobgen.model.data import Data, TracedScalar
from jobgen.model.finding import Problem
from jobgen.model.limits import MAX_FINDINGS
from jobgen.model.suggest import did_you_mean, suggest_rename, suggest_type, suggest_value

Check = Callable[[Data, str, Data, list[Problem]], None]
"""Judges a value: the value, the name it goes by, the node to blame if it has no place of its own, the problems."""

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
WORDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


def compile_schema(name: str, schemas: Mapping[str, Any]) -> Check:
    """The check for the schema called `name`; `$ref` may lead to the others."""
    return _Compiler(schemas).compile(schemas[name], name)


class _Compiler:
    """Turns schema nodes into closures; refs are compiled once, so recursion is fine."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self.schemas = schemas
        self.refs: dict[str, Check] = {}

    def compile(self, schema: Any, file: str) -> Check:
        if "$ref" in schema:
            return self.ref(schema["$ref"], file)
        if "anyOf" in schema:
            return _any_of([(self.types(option, file), self.compile(option, file)) for option in schema["anyOf"]])
        if "enum" in schema:
            return _enum(schema["enum"])
        checks = [_type(schema["type"])] if "type" in schema else []
        if "properties" in schema or "additionalProperties" in schema or "required" in schema:
            checks.append(self.mapping(schema, file))
        if "items" in schema:
            checks.append(_items(self.compile(schema["items"], file)))
        if schema.keys() & {"pattern", "minLength", "maxLength"}:
            checks.append(_text(schema))
        if schema.keys() & {"minimum", "maximum"}:
            checks.append(_range(schema.get("minimum"), schema.get("maximum")))
        return checks[0] if len(checks) == 1 else _all(checks)

    def ref(self, ref: str, file: str) -> Check:
        where, _, pointer = ref.partition("#")
        where = where or file
        full = f"{where}#{pointer}"
        if full not in self.refs:
            # A schema may refer to itself: until it is compiled, its check is looked up when it runs.
            self.refs[full] = lambda *args: self.refs[full](*args)  # noqa: PLW0108
            self.refs[full] = self.compile(self.target(where, pointer), where)
        return self.refs[full]

    def target(self, file: str, pointer: str) -> Any:
        node = self.schemas[file]
        for step in pointer.split("/")[1:]:
            node = node[step]
        return node

    def types(self, schema: Any, file: str) -> frozenset[type]:
        """The Python types that an option of anyOf takes; they tell the options apart."""
        if "$ref" in schema:
            where, _, pointer = schema["$ref"].partition("#")
            return self.types(self.target(where or file, pointer), where or file)
        if "enum" in schema:
            return frozenset(type(value) for value in schema["enum"])
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return frozenset(kind for name in names for kind in TYPES[name])

    def mapping(self, schema: Any, file: str) -> Check:
        properties = {key: self.compile(value, file) for key, value in schema.get("properties", {}).items()}
        extra = schema.get("additionalProperties", {})
        other = self.compile(extra, file) if isinstance(extra, dict) else None
        return _mapping(
            properties, other, schema.get("required", ()), schema.get("title", ""), schema.get("minProperties", 0)
        )


def _mapping(properties: dict[str, Check], other: Check | None, required: Any, title: str, least: int) -> Check:
    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        if not isinstance(value, dict):
            return
        for key, child in value.items():
            judge = properties.get(key, other)
            if problems and len(problems) >= MAX_FINDINGS:
                return
            if judge is None:
                message = f"`{key}` is not a field of {title or f'`{name}`'}{did_you_mean(key, list(properties))}"
                fix_steps, safe = suggest_rename(key, list(properties), value)
                problems.append(Problem("unknown-field", message, key, fix_steps=fix_steps, safe=safe))
            else:
                judge(child, key, key, problems)
        for key in required:
            if key not in value:
                problems.append(Problem("missing-field", f"{title or f'`{name}`'} needs `{key}`", value or blame))
        if len(value) < least:
            problems.append(Problem("missing-field", f"{title} is empty", blame))

    return check


def _items(judge: Check) -> Check:
    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        if isinstance(value, list):
            for index, item in enumerate(value):
                if len(problems) >= MAX_FINDINGS:
                    return
                before = len(problems)
                judge(item, name, blame, problems)
                if len(problems) > before:
                    _name_items(problems, before, name, index)

    return check


def _name_items(problems: list[Problem], start: int, name: str, index: int) -> None:
    """Say which item of a list is meant, now that there is something to say."""
    for at in range(start, len(problems)):
        message = problems[at].message
        if message.startswith(f"`{name}` is "):
            problems[at] = problems[at]._replace(message=message.replace(f"`{name}`", f"`{name}[{index}]`", 1))


def _type(wanted: str | list[str]) -> Check:
    names = wanted if isinstance(wanted, list) else [wanted]
    types = frozenset(kind for name in names for kind in TYPES[name])
    unsaid = {"null", "integer"} if "number" in names else {"null"}
    expected = _either([WORDS[name] for name in names if name not in unsaid] or ["null"])

    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        if type(value) not in types and _kind(value) not in types:
            message = f"`{name}` is {shown(value)}, and must be {expected}"
            fix_steps, safe = suggest_type(value, expected)
            problems.append(Problem("wrong-type", message, to_blame(value, blame), fix_steps=fix_steps, safe=safe))

    return check


def _any_of(options: list[tuple[frozenset[type], Check]]) -> Check:
    by_type = {kind: judge for types, judge in reversed(options) for kind in types}
    names = [name for name in TYPES if set(TYPES[name]) <= by_type.keys() and name not in ("null", "number")]
    expected = _either([WORDS[name] for name in names])

    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        judge = by_type.get(type(value)) or by_type.get(_kind(value))
        if judge is None:
            problems.append(
                Problem("wrong-type", f"`{name}` is {shown(value)}, and must be {expected}", to_blame(value, blame))
            )
        else:
            judge(value, name, blame, problems)

    return check


def _enum(allowed: list[Any]) -> Check:
    # What YAML makes of a bare `off` is taken, and not what anybody would be told to write.
    words = [str(word) for word in allowed if word is not None and word is not False]
    # To Python, zero and false are the same.
    known = {(type(word), word) for word in allowed}

    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        found = value.value if type(value) is TracedScalar else value
        if isinstance(found, (dict, list)) or (type(found), found) not in known:
            hint = did_you_mean(str(found), words) if isinstance(found, str) and len(words) > 1 else ""
            message = f"`{name}` is {shown(value)}, and must be {_either([f'`{word}`' for word in words])}{hint}"
            fix_steps, safe = suggest_value(value, words)
            problems.append(Problem("invalid-value", message, to_blame(value, blame), fix_steps=fix_steps, safe=safe))

    return check


def _text(schema: Any) -> Check:
    pattern = re.compile(schema["pattern"].replace("$", r"\Z")) if "pattern" in schema else None
    least, most = schema.get("minLength", 0), schema.get("maxLength", 1 << 30)
    must = schema.get("x-must", f"match `{schema.get('pattern')}`")

    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        found = value.value if type(value) is TracedScalar else value
        if not isinstance(found, str):
            return
        if len(found) < least or len(found) > most:
            limit = f"at most {most} characters long" if len(found) > most else "not be empty"
            problems.append(
                Problem(
                    "invalid-value",
                    f"`{name}` is {shown(value)}, and must be {limit}".replace("be not be", "not be"),
                    to_blame(value, blame),
                )
            )
        elif pattern and not pattern.search(found):
            problems.append(
                Problem("invalid-value", f"`{name}` is {shown(value)}, and must {must}", to_blame(value, blame))
            )

    return check


def _range(least: int | None, most: int | None) -> Check:
    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        found = value.value if type(value) is TracedScalar else value
        if not isinstance(found, (int, float)) or isinstance(found, bool):
            return
        if least is not None and found < least:
            problems.append(
                Problem("invalid-value", f"`{name}` is `{found}`, and must be at least {least}", to_blame(value, blame))
            )
        if most is not None and found > most:
            problems.append(
                Problem("invalid-value", f"`{name}` is `{found}`, and must be at most {most}", to_blame(value, blame))
            )

    return check


def _all(checks: list[Check]) -> Check:
    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        for judge in checks:
            judge(value, name, blame, problems)

    return check


def _kind(value: Data) -> type:
    if type(value) is TracedScalar:
        value = value.value
    return list if isinstance(value, list) else type(value)


def to_blame(value: Data, blame: Data) -> Data:
    """The node that a problem stands on: the value itself if it has a place, else what holds it."""
    return value if type(value) is TracedScalar else blame


def shown(value: Data) -> str:
    """A value as a message names it."""
    found = value.value if type(value) is TracedScalar else value
    if isinstance(found, dict):
        return "a mapping"
    if isinstance(found, list):
        return "a list"
    text = (
        {True: "true", False: "false", None: "null"}.get(found)
        if found is None or isinstance(found, bool)
        else str(found)
    )
    return f"`{text}`"


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]
