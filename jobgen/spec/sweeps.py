"""Sweeps: expand a document with a `matrix` to its members, which are jobs with the values substituted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

from jobgen.model.budget import Budget, BudgetExceededError, Work
from jobgen.model.data import Node, TracedList, TracedScalar, location_of, untraced, value_of, with_value
from jobgen.model.finding import FixStep, Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_MATRIX_BLOCKS, MAX_MATRIX_VALUES, MAX_SWEEP_BYTES
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence, fault_of
from jobgen.model.suggest import ask_for, find_closest, find_key, suggest_name
from jobgen.yamlio.read.scalars import quote

# Expand a matrix to its combinations: the product of all values, with `zip`, `exclude` and `include`.

MAX_MEMBERS = 256
"""The number of members that a sweep may have unless it sets `limit.members`."""

RESERVED = ("zip", "include", "exclude", "limit")
_EXACT = 2**53
_MOST_COMPARED = 20
"""With more values than this, none is suggested for a wrong one."""
_NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


class Member(NamedTuple):
    """One combination: its variables, and the names of those that distinguish it from others."""

    values: dict[str, Any]
    distinguishing: tuple[str, ...]


def canonical_text(value: Node) -> str:
    """The text of a value, the same for equal numbers: `1.0` is `1`."""
    found = value_of(value)
    is_whole = isinstance(found, float) and found.is_integer() and abs(found) < _EXACT
    return str(int(found)) if is_whole else to_text(value)


def to_text(value: Node) -> str:
    """Format a value as text."""
    found = value_of(value)
    return str(found).lower() if isinstance(found, bool) else str(found)


def find_misspelled_keys(matrix: Node) -> Iterator[Problem]:
    """Report keys that are variables by name, but have values that only `zip`, `include`, `exclude` or `limit` take."""
    for key, value in matrix.items() if isinstance(matrix, dict) else ():
        nested = value if isinstance(value, list) else [value]
        holds_more = any(isinstance(one, dict) for one in nested)
        close = find_closest(str(key), list(RESERVED))
        if key not in RESERVED and holds_more and close:
            message = Sentence("`{}` is not a list of values; did you mean `{}`?", key, close)
            yield Problem("unknown-field", message, key, meant=close)


def find_oversize(matrix: Node) -> Iterator[Problem]:
    """Report a matrix with more values or entries than are expanded."""
    if not isinstance(matrix, dict):
        return
    paired = matrix.get("zip")
    columns = [*_axes(matrix).values(), *(paired.values() if isinstance(paired, dict) else ())]
    values = sum(len(values) for values in columns if isinstance(values, list))
    if values > MAX_MATRIX_VALUES:
        yield Problem(
            "too-many-members", Sentence("the matrix has {} values; the limit is {}", values, MAX_MATRIX_VALUES), matrix
        )
    for name in ("include", "exclude"):
        blocks = matrix.get(name)
        if isinstance(blocks, list) and len(blocks) > MAX_MATRIX_BLOCKS:
            message = Sentence("`{}` has {} entries; the limit is {}", name, len(blocks), MAX_MATRIX_BLOCKS)
            yield Problem("too-many-members", message, find_key(matrix, name))


def find_matrix_errors(matrix: dict[str, Any]) -> Iterator[Problem]:
    """Report the errors of a matrix that its schema cannot express."""
    axes, paired = _axes(matrix), matrix.get("zip") or {}
    yield from list(_check_variables(axes, paired)) or _check_members(matrix, axes, paired)


def _check_variables(axes: dict[str, Any], paired: dict[str, Any]) -> Iterator[Problem]:
    for key, values in (*axes.items(), *paired.items()):
        if not _NAME.match(key):
            message = Sentence("`{}` is not a valid name of a variable; use letters, digits, `-` and `_`", key)
            yield Problem("invalid-value", message, key)
        if not values:
            yield Problem("invalid-value", Sentence("`{}` has no values", key), key)
    for key in paired:
        if key in axes:
            yield Problem(
                "invalid-value", Sentence("`{}` has its own values and is also in `zip`; remove one of them", key), key
            )
    if len({len(values) for values in paired.values()}) > 1:
        lengths = ", ".join(f"{key} {len(values)}" for key, values in paired.items())
        yield Problem("invalid-value", Sentence("the lists of `zip` must be of equal length ({})", lengths), paired)


def _check_members(matrix: dict[str, Any], axes: dict[str, Any], paired: dict[str, Any]) -> Iterator[Problem]:
    """Report errors of the combinations. They are counted first: a matrix can have more than fit in memory."""
    most = value_of((matrix.get("limit") or {}).get("members", MAX_MEMBERS))
    count = prod(len(values) for values in (*axes.values(), *list(paired.values())[:1]))
    # Before exclusions, a matrix may have so many times more combinations.
    if count > max(most, MAX_MEMBERS) * 16:
        yield Problem("too-many-members", _describe_excess(count, most), matrix)
        return
    known = [*axes, *paired]
    rows = _Rows(_combine(matrix))
    for block in matrix.get("exclude", ()):
        for key in block:
            if key not in known:
                yield Problem(
                    "unknown-variable", Sentence("`{}` is not a variable{}", key, suggest_name(key, known)), key
                )
        if block.keys() <= set(known) and not rows.find(block, tuple(block)):
            yield _explain_exclusion(block, rows)
    found = len(expand_matrix(matrix))
    if found > most:
        yield Problem("too-many-members", _describe_excess(found, most), matrix)
    if not found:
        yield Problem("invalid-value", "the matrix has no combination left", matrix)


def _explain_exclusion(block: dict[str, Any], rows: _Rows) -> Problem:
    """Say which value no combination has; if there is each of them, they never come together."""
    for key, value in block.items():
        if not rows.find(block, (key,)):
            known, text = rows.list_values(key), to_text(value)
            meant = find_closest(text, known) if len(known) <= _MOST_COMPARED else ""
            message = Sentence("this leaves out nothing; `{}` is never {}{}", key, quote(text), ask_for(meant))
            return Problem("invalid-value", message, value, meant=meant)
    return Problem("invalid-value", "this leaves out nothing: no combination has these values", block)


def _describe_excess(count: int, most: int) -> str:
    return f"the matrix makes {count} jobs, but the limit is {most}; raise `limit.members` if that is intended"


def expand_matrix(matrix: dict[str, Any]) -> list[Member]:
    """Expand a matrix to its members, in the order of the values."""
    rows = _Rows(_combine(matrix))
    excluded = {number for block in matrix.get("exclude", ()) for number in rows.find(block, tuple(block))}
    kept = {number: row for number, row in enumerate(rows.rows) if number not in excluded}
    own = tuple(next(iter(kept.values()), ()))
    found = {number: Member(row, own) for number, row in kept.items()}
    extra: list[Member] = []
    for block in matrix.get("include", ()):
        shared = tuple(key for key in block if key in own)
        matching = [found[number] for number in rows.find(block, shared) if number in found]
        for member in matching:
            member.values.update((key, value) for key, value in block.items() if key not in own)
        if not matching:
            extra.append(Member(dict(block), tuple(block)))
    return [*found.values(), *extra]


def _axes(matrix: dict[str, Any]) -> dict[str, Any]:
    return {key: values for key, values in matrix.items() if key not in RESERVED}


def _combine(matrix: dict[str, Any]) -> list[dict[str, Any]]:
    axes, paired = _axes(matrix), matrix.get("zip") or {}
    columns = [[{key: value} for value in values] for key, values in axes.items()]
    if paired:
        columns.append([dict(zip(paired, values, strict=True)) for values in zip(*paired.values(), strict=True)])
    if not columns:
        return []
    return [{key: value for part in parts for key, value in part.items()} for parts in product(*columns)]


class _Rows:
    """The combinations of a matrix, and for the names of each block an index of their values."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        self._indexes: dict[tuple[str, ...], dict[tuple[str, ...], list[int]]] = {}
        self._values: dict[str, list[str]] = {}

    def list_values(self, name: str) -> list[str]:
        """The values that a variable has in the rows, as messages show them."""
        if name not in self._values:
            values = (to_text(row[name]) for row in self.rows if name in row)
            self._values[name] = list(dict.fromkeys(values))
        return self._values[name]

    def find(self, block: dict[str, Any], names: tuple[str, ...]) -> list[int]:
        """The numbers of the rows that have the block's values of these names."""
        if names not in self._indexes:
            index: dict[tuple[str, ...], list[int]] = {}
            for number, row in enumerate(self.rows):
                if all(name in row for name in names):
                    index.setdefault(tuple(canonical_text(row[name]) for name in names), []).append(number)
            self._indexes[names] = index
        return self._indexes[names].get(tuple(canonical_text(block[name]) for name in names), [])


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


def expand_sweep(data: Any, problems: list[Problem]) -> list[Any]:
    """Expand a sweep with a valid matrix to its jobs."""
    known: dict[str, Any] = {}
    found = expand_matrix(data["spec"]["matrix"])
    variables = list(dict.fromkeys(key for member in found for key in member.values))
    budget, size = _start_budget(), _count_characters(data)
    for member in found:
        try:
            budget.spend(size)
            made = _expand(data, member, variables, problems, budget)
        except BudgetExceededError:
            message = Sentence(
                "the {} members have more than {} MiB of text together; move long values to a volume",
                len(found),
                MAX_SWEEP_BYTES // 2**20,
            )
            problems.append(Problem("too-many-members", message, data["spec"]["matrix"]))
            return []
        name = value_of(made["metadata"]["name"])
        if name in known:
            node = next((member.values[key] for key in member.distinguishing if location_of(member.values[key])), None)
            message = Sentence("two members have the name `{}`; their values differ only in what names omit", name)
            problems.append(Problem("duplicate-member", message, node if node is not None else data))
        known[name] = made
    return list(known.values())


def _start_budget() -> Budget:
    return Budget(MAX_SWEEP_BYTES, Work.SWEEP, counts_bytes=True)


def expand_member(data: Any, index: int) -> Any:
    """Expand one job of a sweep."""
    return _expand(data, expand_matrix(data["spec"]["matrix"])[index], [], [], _start_budget())


def find_stray_variables(data: Any, reason: str = "the job has no `matrix`") -> Iterator[Problem]:
    """Report variables of a matrix in a document without one."""
    problems: list[Problem] = []
    _substitute(data, Substitution(Member({}, ()), "", [], problems, _start_budget()))
    for problem in problems:
        yield problem._replace(sentence=Sentence("{}; {}", fault_of(problem.sentence), reason))


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
        message = Sentence(
            "`{}` is not allowed in the name of a sweep; its members are named `<name>-<values>`; remove it", whole
        )
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
        "metadata": {find_key(metadata, "name"): with_value(metadata["name"], name), **described},
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


def _substitute(node: Any, substitution: Substitution, *, text: bool = False, key: str = "") -> Any:
    text = text or key in _TEXTS
    if isinstance(node, dict):
        for name in node:
            if "${{" in name and _find_expressions(name, substitution.known):
                message = Sentence("`{}` is a key; variables are only substituted in values", name)
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
    return [
        (whole, inner)
        for _, whole, inner in _scan_expressions(found)
        if "matrix" in inner or inner in known or find_closest(inner.partition(".")[0], ["matrix"], _TYPO_CUTOFF)
    ]


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
    message = Sentence("`{}` is not substituted; write `{}`", whole.strip(), form)
    return Problem("unknown-variable", message, node, fix_steps=fix_steps)


def find_sweep_warnings(data: Any, members: list[Any]) -> Iterator[Problem]:
    """Report variables of a valid sweep that nothing uses, and members that differ only in their names."""
    matrix = data["spec"]["matrix"]
    used = set(_list_used({**data, "spec": {key: value for key, value in data["spec"].items() if key != "matrix"}}))
    axes = {key: key for block in (matrix, matrix.get("zip") or {}) for key in block if key not in RESERVED}
    added = {key: key for block in matrix.get("include", ()) for key in block if key not in axes}
    # A variable may only select the combinations that get another one.
    selecting = [block for block in matrix.get("include", ()) if not added.keys().isdisjoint(block)]
    used |= {key for block in selecting for key in block if key in axes}
    unused = [key for key in (*axes.values(), *added.values()) if key not in used]
    for key in unused:
        message = Sentence(
            "nothing uses `matrix.{}`; write `${{{{ matrix.{} }}}}` where it belongs, or remove it", key, key
        )
        yield Problem("unused-variable", message, key, severity=Severity.WARNING)
    known: dict[str, str] = {}
    for member in members if not unused else ():
        name = str(value_of(member["metadata"]["name"]))
        metadata = {key: value for key, value in member["metadata"].items() if key != "name"}
        spec = {key: value for key, value in member["spec"].items() if key != "matrix"}
        content = json.dumps(untraced({"metadata": metadata, "spec": spec}))
        if content in known:
            message = Sentence(
                "`{}` and `{}` differ only in their names; their variables change nothing", known[content], name
            )
            yield Problem("identical-members", message, next(iter(matrix)), severity=Severity.WARNING)
            return
        known[content] = name


def _list_used(node: Any) -> Iterator[str]:
    if isinstance(node, (dict, list)):
        for child in node.values() if isinstance(node, dict) else node:
            yield from _list_used(child)
    elif isinstance(found := value_of(node), str) and "${{" in found:
        for _, _, inner in _scan_expressions(found):
            variable = _VARIABLE.match(inner)
            if variable:
                yield variable[1]


def _lookup(whole: str, inner: str, node: Any, substitution: Substitution) -> Any:
    variable, known = _VARIABLE.match(inner), substitution.known
    if variable is not None and variable[1] in substitution.member.values:
        return substitution.member.values[variable[1]]
    if variable is None and inner in known:
        problem = _report_misspelled(node, value_of(node), whole, inner, known)
    elif variable is None:
        message = Sentence("`${{{{ {} }}}}` is not a variable; write `${{{{ matrix.<name> }}}}`", inner)
        problem = Problem("unknown-variable", message, node)
    else:
        # A variable that other members have is missing in this one; one that none has is misspelled.
        missing = f"has no value in `{substitution.name}`"
        fault = missing if variable[1] in known else f"is not a variable{suggest_name(variable[1], [*known])}"
        problem = Problem("unknown-variable", Sentence("`matrix.{}` {}", variable[1], fault), node)
    substitution.problems.append(problem)
    return None
