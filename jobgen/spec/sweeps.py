"""Sweeps: one document with a `matrix` stands for many jobs, its members, each with its own values filled in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

from jobgen.model.data import Data, TracedList, TracedScalar, location_of, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import did_you_mean, find_closest
from jobgen.spec.matrix import Member, canonical_text, expand_matrix, to_text

SWEEP = "jobgen.dev/sweep"
"""The label that names the sweep a job is a member of."""

GPUS = "jobgen.dev/sweep-gpus"
"""The annotation that says how many GPUs all members may hold together."""

MATRIX = "matrix"
"""The layer of values that were filled in."""

_EXPRESSION = lazy_pattern(r"\$\{\{\s*(.*?)\s*\}\}")
_VARIABLE = lazy_pattern(r"matrix\.([A-Za-z_][A-Za-z0-9_-]*)\Z")
# Fields that are text whatever is filled in; elsewhere a variable that stands alone keeps its type.
_TEXTS = frozenset(("command", "args", "env", "labels", "annotations", "nodeSelector"))
_LONGEST = 40
_ALMOST = 0.8
_HASH = 8


class Substitution(NamedTuple):
    """What is filled into a document, for whom, and what goes wrong."""

    member: Member
    name: str
    known: list[str]
    problems: list[Problem]


def is_sweep(data: Data) -> bool:
    """Whether a document stands for many jobs."""
    spec = data.get("spec")
    return isinstance(spec, dict) and "matrix" in spec


def keep_matrix(data: Data) -> Data:
    """The document with its matrix alone: the rest can only be judged when it is filled in."""
    return {**data, "spec": {"matrix": data["spec"]["matrix"]}}


def expand_sweep(data: Data, problems: list[Problem]) -> list[Data]:
    """The jobs that a sweep stands for; its matrix has been found to make sense."""
    known: dict[str, Data] = {}
    found = expand_matrix(data["spec"]["matrix"])
    variables = list(dict.fromkeys(key for member in found for key in member.values))
    for member in found:
        made = _filled(data, member, variables, problems)
        name = value_of(made["metadata"]["name"])
        if name in known:
            node = next((member.values[key] for key in member.distinguishing if location_of(member.values[key])), None)
            message = f"two members are called `{name}`; their values differ in nothing that a name can hold"
            problems.append(Problem("duplicate-member", message, node if node is not None else data))
        known[name] = made
    return list(known.values())


def expand_member(data: Data, index: int) -> Data:
    """One of the jobs that a sweep stands for."""
    return _filled(data, expand_matrix(data["spec"]["matrix"])[index], [], [])


def find_stray_variables(data: Data) -> Iterator[Problem]:
    """Variables of a matrix in a document that has none."""
    problems: list[Problem] = []
    _fill(data, Substitution(Member({}, ()), "", [], problems))
    for problem in problems:
        yield problem._replace(message=f"{problem.message.partition(';')[0]}; the job has no `matrix`")


def member_name(name: str, member: Member) -> str:
    """`<name>-<values>`: of the values alone that tell members apart, so that no other value can change it."""
    told = [(key, canonical_text(member.values[key])) for key in sorted(member.distinguishing)]
    slug = "-".join(filter(None, (_slug(text) for _, text in told)))
    whole = f"{name}-{slug}" if slug else name
    if len(whole) <= _LONGEST:
        return whole
    digest = sha256(json.dumps([name, told], ensure_ascii=True).encode()).hexdigest()[:_HASH]
    return f"{name[: _LONGEST - _HASH - 1].rstrip('-.')}-{digest}"


def _slug(text: str) -> str:
    """A value as part of a name: `0.1` as `0p1`, `-1` as `m1`."""
    text = re.sub(r"(?<=\d)\.(?=\d)", "p", text.lower())
    text = re.sub(r"^-(?=\d)", "m", text)
    return re.sub(r"[^a-z0-9]+", "-", text).strip("-")


def _filled(data: Data, member: Member, known: list[str], problems: list[Problem]) -> Data:
    metadata, spec = data["metadata"], data["spec"]
    name = member_name(str(value_of(metadata["name"])), member)
    filling = Substitution(member, name, known, problems)
    described = {key: _fill(value, filling, text=True) for key, value in metadata.items() if key != "name"}
    most = (spec["matrix"].get("limit") or {}).get("gpus")
    if most is not None:
        note = {GPUS: with_value(most, str(value_of(most)))}
        described["annotations"] = {**(described.get("annotations") or {}), **note}
    described["labels"] = {**(described.get("labels") or {}), SWEEP: metadata["name"]}
    return {
        **data,
        "metadata": {_key(metadata, "name"): with_value(metadata["name"], name), **described},
        "spec": {key: value if key == "matrix" else _fill(value, filling, key=key) for key, value in spec.items()},
    }


def _key(holder: dict[str, Data], name: str) -> str:
    """The key as it was written, which knows its place."""
    return next(key for key in holder if key == name)


def _fill(node: Data, filling: Substitution, *, text: bool = False, key: str = "") -> Data:
    text = text or key in _TEXTS
    if isinstance(node, dict):
        for name in node:
            if "${{" in name and _expressions(name):
                message = f"`{name}` is a key, and variables are filled into values only"
                filling.problems.append(Problem("unknown-variable", message, name))
        return {name: _fill(value, filling, text=text, key=name) for name, value in node.items()}
    if isinstance(node, list):
        filled = [_fill(value, filling, text=text) for value in node]
        return TracedList(filled, node.location, node.layer, node.overridden) if type(node) is TracedList else filled
    found = value_of(node)
    return _filled_text(node, found, filling, text=text) if isinstance(found, str) and "${{" in found else node


def _filled_text(node: Data, found: str, filling: Substitution, *, text: bool) -> Data:
    """A string with its variables filled in; one that is a variable and nothing else keeps the variable's type."""
    values = {whole: _value(inner, node, filling) for whole, inner in _expressions(found)}
    alone = values.get(found)
    if alone is not None and not text:
        return _derived(node, value_of(alone), alone)
    result = found
    for whole, value in values.items():
        result = result.replace(whole, to_text(value)) if value is not None else result
    return _derived(node, result, next((value for value in values.values() if value is not None), None))


def _derived(node: Data, value: Data, source: Data) -> Data:
    """A value on the line that asks for it, which remembers the line of the matrix."""
    made = with_value(node, value)
    if type(made) is TracedScalar and type(source) is TracedScalar:
        made.overridden = TracedScalar(source.value, source.location, MATRIX)
    return made


def _expressions(found: str) -> list[tuple[str, str]]:
    """The expressions in a string that are, or would be, variables of a matrix; others are left alone."""
    return [(match[0], match[1]) for match in _EXPRESSION.finditer(found) if _is_ours(match[1])]


def _is_ours(inner: str) -> bool:
    return "matrix" in inner or bool(find_closest(inner.partition(".")[0], ["matrix"], _ALMOST))


def _value(inner: str, node: Data, filling: Substitution) -> Data:
    variable = _VARIABLE.match(inner)
    if variable is None:
        message = f"`${{{{ {inner} }}}}` is not a variable; write `${{{{ matrix.<name> }}}}`"
        filling.problems.append(Problem("unknown-variable", message, node))
        return None
    if variable[1] not in filling.member.values:
        # What some members have, is missing in this one; what none has, is misspelt in all.
        missing = f"has no value in `{filling.name}`" if variable[1] in filling.known else "is not a variable"
        message = (
            f"`matrix.{variable[1]}` {missing}{did_you_mean(variable[1], filling.known) if 'not' in missing else ''}"
        )
        filling.problems.append(Problem("unknown-variable", message, node))
        return None
    return filling.member.values[variable[1]]
