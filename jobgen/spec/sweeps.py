"""Sweeps: expand a document with a `matrix` to its members, which are jobs with the values substituted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from jobgen.model.data import TracedList, TracedScalar, location_of, untraced, value_of, with_value
from jobgen.model.finding import FixStep, Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_SWEEP_BYTES, Budget, BudgetExceededError
from jobgen.model.suggest import did_you_mean, find_closest
from jobgen.spec.matrix import RESERVED, Member, canonical_text, expand_matrix, to_text

SWEEP = "jobgen.dev/sweep"
"""The label with the name of the sweep that a job belongs to."""

GPUS = "jobgen.dev/sweep-gpus"
"""The annotation with the number of GPUs that all members together may use."""

MATRIX = "matrix"
"""The layer of substituted values."""

_START, _END = "${{", "}}"
# Forms of other tools, or with a typo, that are not substituted: `{{ matrix.lr }}`, `${matrix.lr}`, `${{ matrix.lr }`.
_MISSPELLED = lazy_pattern(
    r"(?:\$?(?:\{{1,2}|\({1,2})\s{0,9}|\$)matrix\s{0,9}\.\s{0,9}([A-Za-z_][A-Za-z0-9_-]*)(?:\s{0,9}[})]{1,2})?"
    r"|\{\{\s{0,9}([A-Za-z_][A-Za-z0-9_-]*)\s{0,9}\}\}"
)
_VARIABLE = lazy_pattern(r"matrix\.([A-Za-z_][A-Za-z0-9_-]*)\Z")
# Fields whose values are always strings; elsewhere, a value that is only a variable has the variable's type.
_TEXTS = frozenset(("command", "args", "env", "labels", "annotations", "nodeSelector"))
_DATA_FIELDS = frozenset(("data", "stringData", "binaryData"))
_MAX_NAME_LENGTH = 40
_TYPO_CUTOFF = 0.8
_HASH_LENGTH = 8


class Substitution(NamedTuple):
    """The values to substitute, the member they belong to, all variables, and the problems found."""

    member: Member
    name: str
    known: list[str]
    problems: list[Problem]
    budget: Budget
    """The characters that the members may have together."""


def is_sweep(data: Any) -> bool:
    """Return True if a document has a matrix."""
    spec = data.get("spec")
    return isinstance(spec, dict) and "matrix" in spec


def keep_matrix(data: Any) -> Any:
    """The document with its matrix alone; the rest is checked after substitution."""
    return {**data, "spec": {"matrix": data["spec"]["matrix"]}}


def expand_sweep(data: Any, problems: list[Problem]) -> list[Any]:
    """Expand a sweep with a valid matrix to its jobs."""
    known: dict[str, Any] = {}
    found = expand_matrix(data["spec"]["matrix"])
    variables = list(dict.fromkeys(key for member in found for key in member.values))
    budget, size = Budget(MAX_SWEEP_BYTES), _count_characters(data)
    for member in found:
        try:
            budget.spend(size)
            made = _expand(data, member, variables, problems, budget)
        except BudgetExceededError:
            message = (
                f"the {len(found)} members have more than {MAX_SWEEP_BYTES // 2**20} MiB of text together; "
                "move long values to a volume"
            )
            problems.append(Problem("too-many-members", message, data["spec"]["matrix"]))
            return []
        name = value_of(made["metadata"]["name"])
        if name in known:
            node = next((member.values[key] for key in member.distinguishing if location_of(member.values[key])), None)
            message = f"two members have the name `{name}`; their values differ only in what names omit"
            problems.append(Problem("duplicate-member", message, node if node is not None else data))
        known[name] = made
    return list(known.values())


def expand_member(data: Any, index: int) -> Any:
    """Expand one job of a sweep."""
    return _expand(data, expand_matrix(data["spec"]["matrix"])[index], [], [], Budget(MAX_SWEEP_BYTES))


def find_stray_variables(data: Any, reason: str = "the job has no `matrix`") -> Iterator[Problem]:
    """Report variables of a matrix in a document without one."""
    problems: list[Problem] = []
    _substitute(data, Substitution(Member({}, ()), "", [], problems, Budget(MAX_SWEEP_BYTES)))
    for problem in problems:
        yield problem._replace(message=f"{problem.message.partition(';')[0]}; {reason}")


def find_variables_of_manifest(data: Any) -> Iterator[Problem]:
    """Report variables of a matrix in a raw manifest, except for the text in the data of ConfigMaps and Secrets."""
    own = {key: value for key, value in data.items() if key not in _DATA_FIELDS}
    return find_stray_variables(own, "a manifest has no `matrix`; write the value, or write the manifest as a job spec")


def find_variables_of_name(data: Any) -> Iterator[Problem]:
    """Report variables in the name of a sweep, whose members are named after their values anyway."""
    metadata = data.get("metadata")
    node = metadata.get("name") if isinstance(metadata, dict) else None
    name = value_of(node)
    for whole, _ in _find_expressions(name, []) if isinstance(name, str) else ():
        message = f"`{whole}` is not allowed in the name of a sweep; its members are named `<name>-<values>`; remove it"
        short = re.sub(r"[-.]{2,}", "-", name.replace(whole, "")).strip("-.")
        fix_steps = (FixStep("set", node, short),) if short and _START not in short else ()
        yield Problem("unknown-variable", message, node, fix_steps=fix_steps, safe=False)


def name_member(name: str, member: Member) -> str:
    """`<name>-<values>`, with only the values that distinguish members, so that no other value changes the name."""
    values = [(key, canonical_text(member.values[key])) for key in sorted(member.distinguishing)]
    slug = "-".join(filter(None, (_format_for_name(text) for _, text in values)))
    whole = f"{name}-{slug}" if slug else name
    if len(whole) <= _MAX_NAME_LENGTH:
        return whole
    from hashlib import sha256

    digest = sha256(json.dumps([name, values], ensure_ascii=True).encode()).hexdigest()[:_HASH_LENGTH]
    return f"{name[: _MAX_NAME_LENGTH - _HASH_LENGTH - 1].rstrip('-.')}-{digest}"


def _format_for_name(text: str) -> str:
    """Format a value as part of a name: `0.1` as `0p1`, `-1` as `m1`."""
    text = re.sub(r"(?<=\d)\.(?=\d)", "p", text.lower())
    text = re.sub(r"^-(?=\d)", "m", text)
    return re.sub(r"[^a-z0-9]+", "-", text).strip("-")


def _expand(data: Any, member: Member, known: list[str], problems: list[Problem], budget: Budget) -> Any:
    metadata, spec = data["metadata"], data["spec"]
    name = name_member(str(value_of(metadata["name"])), member)
    substitution = Substitution(member, name, known, problems, budget)
    described = {key: _substitute(value, substitution, text=True) for key, value in metadata.items() if key != "name"}
    most = (spec["matrix"].get("limit") or {}).get("gpus")
    if most is not None:
        note = {GPUS: with_value(most, str(value_of(most)))}
        described["annotations"] = {**(described.get("annotations") or {}), **note}
    described["labels"] = {**(described.get("labels") or {}), SWEEP: metadata["name"]}
    return {
        **data,
        "metadata": {_key(metadata, "name"): with_value(metadata["name"], name), **described},
        "spec": {
            key: value if key == "matrix" else _substitute(value, substitution, key=key) for key, value in spec.items()
        },
    }


def _count_characters(tree: Any) -> int:
    if isinstance(tree, dict):
        return sum(len(key) + _count_characters(value) for key, value in tree.items())
    if isinstance(tree, list):
        return sum(map(_count_characters, tree))
    found = value_of(tree)
    return len(found) if isinstance(found, str) else 1


def _key(holder: dict[str, Any], name: str) -> str:
    """The key of that name in the mapping, with its location."""
    return next(key for key in holder if key == name)


def _substitute(node: Any, substitution: Substitution, *, text: bool = False, key: str = "") -> Any:
    text = text or key in _TEXTS
    if isinstance(node, dict):
        for name in node:
            if "${{" in name and _find_expressions(name, substitution.known):
                message = f"`{name}` is a key; variables are only substituted in values"
                substitution.problems.append(Problem("unknown-variable", message, name))
        return {name: _substitute(value, substitution, text=text, key=name) for name, value in node.items()}
    if isinstance(node, list):
        filled = [_substitute(value, substitution, text=text) for value in node]
        return TracedList(filled, node.location, node.layer, node.overridden) if type(node) is TracedList else filled
    found = value_of(node)
    if not isinstance(found, str) or not ("{{" in found or "matrix" in found):
        return node
    substitution.problems.extend(_find_misspelled(node, found, substitution.known))
    return _substitute_text(node, found, substitution, text=text) if "${{" in found else node


def _substitute_text(node: Any, found: str, substitution: Substitution, *, text: bool) -> Any:
    """Substitute the variables of a string; a string that is only a variable takes the variable's type."""
    expressions = _find_expressions(found, substitution.known)
    values = {whole: _lookup(whole, inner, node, substitution) for whole, inner in expressions}
    alone = values.get(found)
    if alone is not None and not text:
        return _derive(node, value_of(alone), alone)
    result = found
    for whole, value in values.items():
        if value is not None:
            text_of_value = to_text(value)
            substitution.budget.spend(max(len(text_of_value) - len(whole), 0) * result.count(whole))
            result = result.replace(whole, text_of_value)
    return _derive(node, result, next((value for value in values.values() if value is not None), None))


def _derive(node: Any, value: Any, source: Any) -> Any:
    """A value at the location that uses the variable; it records its location in the matrix."""
    made = with_value(node, value)
    if type(made) is TracedScalar and type(source) is TracedScalar:
        made.overridden = TracedScalar(source.value, source.location, MATRIX)
    return made


def _find_expressions(found: str, known: list[str]) -> list[tuple[str, str]]:
    """The expressions of a string that refer to the matrix, or are meant to; others are ignored."""
    return [(whole, inner) for _, whole, inner in _scan_expressions(found) if _refers_to_matrix(inner, known)]


def _scan_expressions(text: str) -> Iterator[tuple[int, str, str]]:
    """Every `${{ … }}` on one line: where it starts, its text, and what is inside.

    A regular expression would take quadratic time.
    """
    start = text.find(_START)
    while start >= 0:
        end = text.find(_END, start + len(_START))
        if end < 0:
            return
        line_break = text.rfind("\n", start, end)
        if line_break >= 0:
            start = text.find(_START, line_break)
            continue
        whole = text[start : end + len(_END)]
        yield start, whole, whole[len(_START) : -len(_END)].strip()
        start = text.find(_START, end)


def _refers_to_matrix(inner: str, known: list[str]) -> bool:
    return "matrix" in inner or inner in known or bool(find_closest(inner.partition(".")[0], ["matrix"], _TYPO_CUTOFF))


def _find_misspelled(node: Any, found: str, known: list[str]) -> Iterator[Problem]:
    """Report forms of a variable that are not substituted, outside of well-formed expressions."""
    # Blanked, so that positions stay the same.
    rest, done = "", 0
    for start, whole, _ in _scan_expressions(found):
        rest += found[done:start] + "\0" * len(whole)
        done = start + len(whole)
    rest += found[done:]
    # The cheap test first: the pattern takes long for each character.
    for match in _MISSPELLED.finditer(rest) if "matrix" in rest or "{{" in rest else ():
        if match[1] or match[2] in known:
            yield _report_misspelled(node, found, match[0], match[1] or match[2], known)


def _report_misspelled(node: Any, found: str, whole: str, name: str, known: list[str]) -> Problem:
    meant = name if name in known or not known else find_closest(name, known)
    form = f"${{{{ matrix.{meant or '<name>'} }}}}"
    fix_steps = (FixStep("set", node, found.replace(whole, form)),) if meant in known else ()
    return Problem(
        "unknown-variable", f"`{whole.strip()}` is not substituted; write `{form}`", node, fix_steps=fix_steps
    )


def find_sweep_warnings(data: Any, members: list[Any]) -> Iterator[Problem]:
    """Report variables of a valid sweep that nothing uses, and members that differ only in their names."""
    matrix = data["spec"]["matrix"]
    used = set(_list_used({**data, "spec": {key: value for key, value in data["spec"].items() if key != "matrix"}}))
    axes = {key: key for block in (matrix, matrix.get("zip") or {}) for key in block if key not in RESERVED}
    added = {key: key for block in matrix.get("include", ()) for key in block if key not in axes}
    # A variable may only select the combinations that get another one.
    used |= {
        key for block in matrix.get("include", ()) if not added.keys().isdisjoint(block) for key in block if key in axes
    }
    unused = [key for key in (*axes.values(), *added.values()) if key not in used]
    for key in unused:
        message = f"nothing uses `matrix.{key}`; write `${{{{ matrix.{key} }}}}` where it belongs, or remove it"
        yield Problem("unused-variable", message, key, severity=Severity.WARNING)
    if not unused:
        yield from _find_identical(matrix, members)


def _find_identical(matrix: Any, members: list[Any]) -> Iterator[Problem]:
    known: dict[str, str] = {}
    for member in members:
        name = str(value_of(member["metadata"]["name"]))
        metadata = {key: value for key, value in member["metadata"].items() if key != "name"}
        spec = {key: value for key, value in member["spec"].items() if key != "matrix"}
        content = json.dumps(untraced({"metadata": metadata, "spec": spec}))
        if content in known:
            message = f"`{known[content]}` and `{name}` differ only in their names; their variables change nothing"
            yield Problem("identical-members", message, next(iter(matrix)), severity=Severity.WARNING)
            return
        known[content] = name


def _list_used(node: Any) -> Iterator[str]:
    """The variables that the values of a tree use."""
    if isinstance(node, (dict, list)):
        for child in node.values() if isinstance(node, dict) else node:
            yield from _list_used(child)
    elif isinstance(found := value_of(node), str) and "${{" in found:
        for _, _, inner in _scan_expressions(found):
            variable = _VARIABLE.match(inner)
            if variable:
                yield variable[1]


def _lookup(whole: str, inner: str, node: Any, substitution: Substitution) -> Any:
    variable = _VARIABLE.match(inner)
    if variable is None and inner in substitution.known:
        substitution.problems.append(_report_misspelled(node, value_of(node), whole, inner, substitution.known))
        return None
    if variable is None:
        message = f"`${{{{ {inner} }}}}` is not a variable; write `${{{{ matrix.<name> }}}}`"
        substitution.problems.append(Problem("unknown-variable", message, node))
        return None
    if variable[1] not in substitution.member.values:
        # A variable that other members have is missing in this one; one that none has is misspelled.
        if variable[1] in substitution.known:
            message = f"`matrix.{variable[1]}` has no value in `{substitution.name}`"
        else:
            hint = did_you_mean(variable[1], substitution.known)
            message = f"`matrix.{variable[1]}` is not a variable{hint}"
        substitution.problems.append(Problem("unknown-variable", message, node))
        return None
    return substitution.member.values[variable[1]]
