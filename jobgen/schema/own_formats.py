"""Compiles the JSON Schemas of jobgen's own formats to checks: one problem for each error, on the node that causes it.

Supports the subset that the formats use. Each schema node becomes one closure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic, Literal, TypeVar

from jobgen.k8s.placeholders import is_command_line
from jobgen.model.data import Node, TracedKey, TracedScalar, location_of, untraced, value_of
from jobgen.model.finding import Cause, FixStep, Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_FINDINGS
from jobgen.model.place import At, Entry, at_key, at_scalar, at_value
from jobgen.model.sentence import Sentence, Words, name_value
from jobgen.model.suggest import (
    NO_FIX,
    ask_for,
    describe_unquoting,
    find_closest,
    list_alternatives,
    suggest_blocks,
    suggest_move,
    suggest_rename,
    suggest_type,
    suggest_value,
    takes_any_name,
)
from jobgen.schema.ambiguous import check_text

Check = Callable[[Any, str, Entry, list[Problem]], None]
"""Checks a value. Parameters: the value, its name, where it stands, the problems so far, which name places."""

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
TYPE_NAMES = {
    "object": "a mapping",
    "array": "a list",
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


_Field = TypeVar("_Field")


class LazyFields(dict[str, _Field | None], Generic[_Field]):
    """The checks of a mapping's fields, each compiled when first used, because most documents use few of them."""

    def __init__(self, known: Mapping[str, Callable[[], _Field]], other: _Field | None) -> None:
        super().__init__()
        self.known = known
        self.other = other
        """The check of a field that is not known; None if there must be none."""

    def __missing__(self, key: str) -> _Field | None:
        if key not in self.known:
            return self.other
        # A plain key, because a traced one would keep its file in memory.
        field = self[str(key)] = self.known[key]()
        return field


def compile_schema(name: str, schemas: Mapping[str, Any]) -> Check:
    """The check for the schema called `name`; a `$ref` may lead to the others."""
    return _Compiler(schemas).compile(schemas[name], name)


class _Compiler:
    """Turns schema nodes into closures; a `$ref` is compiled once, so schemas may be recursive."""

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
        checks = []
        if "type" in schema:
            checks.append(_type(schema["type"]))
        if "properties" in schema or "additionalProperties" in schema or "required" in schema:
            checks.append(self.mapping(schema, file))
        if "items" in schema:
            checks.append(_items(self.compile(schema["items"], file)))
        if schema.keys() & {"minItems", "maxItems"}:
            checks.append(_count_items(schema.get("minItems", 0), schema.get("maxItems", math.inf)))
        if schema.keys() & {"pattern", "minLength", "maxLength"}:
            checks.append(_text(schema))
        if schema.keys() & {"minimum", "maximum"}:
            checks.append(_range(schema.get("minimum", -math.inf), schema.get("maximum", math.inf)))
        return join_checks(checks)

    def ref(self, ref: str, file: str) -> Check:
        where, _, pointer = ref.partition("#")
        where = where or file
        full = f"{where}#{pointer}"
        if full not in self.refs:
            # A schema may refer to itself: until it is compiled, its check is looked up at run time.
            self.refs[full] = lambda *args: self.refs[full](*args)  # noqa: PLW0108
            self.refs[full] = self.compile(self.target(where, pointer), where)
        return self.refs[full]

    def target(self, file: str, pointer: str) -> Any:
        node = self.schemas[file]
        for step in pointer.split("/")[1:]:
            node = node[step]
        return node

    def find_dotted(self, schema: Any, file: str, key: str) -> tuple[str, ...]:
        """Return the fields of a path such as `pytorch.nprocPerNode` if a mapping has it; empty if it does not."""
        path = tuple(key.split("."))
        for step in path:
            where, _, pointer = schema.get("$ref", "").partition("#")
            schema, file = (self.target(where or file, pointer), where or file) if pointer else (schema, file)
            if step not in schema.get("properties", {}):
                return ()
            schema = schema["properties"][step]
        return path

    def find_around(self, schema: Any, file: str, key: str) -> str:
        """Return where a document has a field that one of its mappings lacks: `below spec`; empty if nowhere."""
        document = self.schemas[file].get("properties", {})
        if "apiVersion" not in document or "spec" not in document:
            return ""
        blocks = {name: self.resolve(document[name], file) for name in ("spec", "metadata") if name in document}
        is_top, is_metadata = schema is self.schemas[file], schema is blocks.get("metadata")
        if is_top and key in blocks.get("metadata", {}).get("properties", {}):
            return "below `metadata`"
        if schema is not blocks["spec"] and key in blocks["spec"].get("properties", {}):
            return "below `spec`" if is_top or is_metadata else "directly below `spec`"
        return ""

    def resolve(self, schema: Any, file: str) -> Any:
        """Return the schema that a `$ref` leads to."""
        where, _, pointer = schema.get("$ref", "").partition("#")
        return self.target(where or file, pointer) if pointer else schema

    def types(self, schema: Any, file: str) -> frozenset[type]:
        """The Python types that an option of `anyOf` accepts; they select the option."""
        if "$ref" in schema:
            where, _, pointer = schema["$ref"].partition("#")
            return self.types(self.target(where or file, pointer), where or file)
        if "enum" in schema:
            return frozenset(type(value) for value in schema["enum"])
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return frozenset(kind for name in names for kind in TYPES[name])

    def mapping(self, schema: Any, file: str) -> Check:
        extra = schema.get("additionalProperties", {})
        other = self.compile(extra, file) if isinstance(extra, dict) else None
        properties = schema.get("properties", {})
        title = schema.get("title", "")
        known: dict[str, Callable[[], Check]] = {
            key: partial(self.compile, value, file) for key, value in properties.items()
        }
        if "podTemplate" in known:
            template = known["podTemplate"]
            known["podTemplate"] = lambda: join_checks([template(), _check_pod_template])
        fields = LazyFields(known, other)

        def report(key: str, name: str, value: Any) -> Problem | None:
            if title == "a patch" and key in ("patch", "target") and {"patch", "target"} <= value.keys():
                # Imported late: most overlays are valid.
                from jobgen.schema.foreign_words import report_kustomize_patch

                first = next(name for name in value if name in ("patch", "target"))
                return report_kustomize_patch(value, At(value, first, is_key=True)) if key == first else None
            path = self.find_dotted(schema, file, str(key)) if "." in key else ()
            if path:
                return _report_dotted(title, key, name, value, path)
            around = self.find_around(schema, file, key)
            if around == "below `spec`" and "spec" not in value:

                def is_below(other: str) -> bool:
                    return fields[other] is None and self.find_around(schema, file, other) == around

                # `spec:` is missing: above these fields, or above those that `metadata` has too many.
                if next(filter(is_below, value)) != key:
                    return None
                lost = sum(map(is_below, value))
                if lost > 1 or schema is self.schemas[file]:
                    return _report_missing_spec(key, value, lost - 1, "" if schema is self.schemas[file] else name)
            return _report_unknown(fields, title, self.schemas, key, name, value, around)

        shown = next(iter(schema.get("examples", ())), None)
        of_others = [*shown.values()][:1] if isinstance(shown, dict) else []

        def complete(problem: Problem, key: str, value: Any) -> Problem:
            field = properties.get(key, {"examples": of_others})
            where, _, pointer = field.get("$ref", "").partition("#")
            shared = self.target(where or file, pointer) if pointer else {}
            examples = field.get("examples") or shared.get("examples", [])
            return _show_right_form(problem, key, value, fields, examples, title)

        least = schema.get("minProperties", 0)
        return _mapping(fields, schema.get("required", ()), title, least, report, complete)


_BESIDE_RESOURCES = frozenset(
    """affinity args command configs env envFrom labels nodeSelector ports securityContext sidecars tolerations
    volumes""".split()
)
"""Fields of a job and of a role that have entries, which stand below `resources` if they are indented too far."""


def _check_pod_template(value: Node, name: str, _: Entry, problems: list[Problem]) -> None:
    """Report the fields of a pod that stand in its template, beside `spec` rather than in it."""
    if not isinstance(value, dict) or value.keys() <= _OF_TEMPLATE:
        return
    # Imported late: most templates have `spec` alone.
    from jobgen.schema.field_places import is_pod_field

    for key in filter(is_pod_field, value):
        spec = value.get("spec")
        other = ", which has one; keep one, or join both" if isinstance(spec, dict) and key in spec else ""
        message = Sentence("`{}` is not a field of `{}`; write it in `{}.spec`{}", key, name, name, other)
        fix_steps, safe = suggest_move(key, value, "spec", value)
        place = At(value, key, is_key=True)
        problems.append(Problem("unknown-field", message, place, fix_steps=fix_steps, safe=safe, cause="misplaced"))


_OF_TEMPLATE = frozenset(("metadata", "spec", "$patch"))


def _show_right_form(
    problem: Problem, key: str, holder: Any, fields: LazyFields[Check], examples: list[Any], title: str
) -> Problem:
    """Return the problem of a field's type with the right form, or with the name of the field that was meant."""
    if (
        problem.rule == "invalid-value"
        and isinstance(holder[key], list)
        and (several := _find_plural(key, holder, fields))
    ):
        return several
    if problem.rule != "wrong-type" or problem.about != key or problem.answer:
        return problem
    # Imported late: most documents are valid.
    from jobgen.schema.right_forms import show_blocks, show_command, show_config, show_right_form, show_right_item

    if title == "configs" and (form := show_config(str(key), value_of(holder[key]))):
        message = Sentence("`{}` has text, and `configs` has ConfigMaps by name; {}", key, form)
        return problem._replace(sentence=message, answer=form, cause="other form")
    if title == "resources" and key in _BESIDE_RESOURCES:
        message = Sentence("`{}` is not a resource but a field beside `resources`; move it there", key)
        return Problem("unknown-field", message, At(holder, key, is_key=True))
    is_item = key in ("command", "args") and problem.item >= 0
    if is_item and (form := show_right_item(untraced(holder[key]), problem.item)):
        return _add_form(problem, form)
    is_command = key == "run" and "command" in fields.known and "command" not in holder
    if is_command and (form := show_command(untraced(holder[key]))):
        return _add_form(problem, form)
    meant = find_closest(key, [*fields.known]) if key not in fields.known else ""
    if meant and meant not in holder and accepts(fields[meant], holder[key]):
        message = Sentence("`{}` is not a field of {}; did you mean `{}`?", key, title, meant)
        # The value fits.
        place = At(holder, key, is_key=True)
        fix_steps, safe = suggest_rename(place, [*fields.known], holder, takes_any_name)
        return Problem("unknown-field", message, place, fix_steps=fix_steps, safe=safe, meant=meant)
    form = show_right_form(str(key), holder[key], examples, partial(accepts, fields[key]))
    value = value_of(holder[key])
    if form and not isinstance(value, (dict, list)) and form == f"; write {show_blocks([str(key)], [value])}":
        # One word in place of a list of one.
        problem = problem._replace(fix_steps=(FixStep("set", At(holder, key), [value]),))
    if is_command_line(str(key), value):
        return _add_form(problem, form)._replace(cause="no placeholder")
    return _add_form(problem, form) if form else problem


def _find_plural(key: str, holder: Any, fields: LazyFields[Check]) -> Problem | None:
    """Report a list in `platform` where `platforms` takes it."""
    plural = f"{key}s"
    if plural in holder or plural not in fields.known or not accepts(fields[plural], holder[key]):
        return None
    message = Sentence("`{}` has one value, and this is a list; write `{}`", key, plural)
    place = At(holder, key, is_key=True)
    return Problem("wrong-type", message, place, fix_steps=(FixStep("rename", place, plural),), meant=plural)


def _add_form(problem: Problem, form: str) -> Problem:
    return problem._replace(sentence=Sentence("{}{}", problem.sentence, form), answer=form, cause="other form")


def accepts(check_value: Check | None, value: Node) -> bool:
    """Return True if a check finds no problem in a value."""
    found: list[Problem] = []
    if check_value:
        check_value(value, "", None, found)
    return check_value is not None and not found


def _report_dotted(title: str, key: str, name: str, holder: Any, path: tuple[str, ...]) -> Problem:
    """Report a path that is written as one key, with the blocks that it stands for."""
    from jobgen.schema.right_forms import show_blocks

    message = Sentence("`{}` is not a field of {}; write {}", key, title or f"`{name}`", show_blocks(path, holder[key]))
    fix_steps, safe = suggest_blocks(key, holder, path)
    place = At(holder, key, is_key=True)
    return Problem("unknown-field", message, place, fix_steps=fix_steps, safe=safe, cause="other form")


def _report_missing_spec(key: str, holder: Any, others: int, name: str) -> Problem:
    """Report fields of `spec` that stand at the top of a document without it, or in its `metadata`."""
    from jobgen.schema.right_forms import describe_missing_level

    message = describe_missing_level(str(key), others, "spec", name)
    return Problem("unknown-field", message, At(holder, key, is_key=True), cause="missing level", meant="spec")


def takes(check_value: Check | None, value: Node) -> bool:
    """Return True if a value has the type of a field; what it contains may have other problems."""
    found: list[Problem] = []
    if check_value:
        check_value(value, "value", None, found)
    is_wrong = any(each.rule == "wrong-type" and each.about == "value" for each in found)
    return check_value is not None and not is_wrong


def _report_unknown(
    fields: LazyFields[Check], title: str, schemas: Mapping[str, Any], key: str, name: str, value: Any, around: str
) -> Problem:
    """Report a field that a mapping does not have, with the closest name or the place where it belongs.

    `around` is where the document has a field of this name.
    """
    # Imported late: most names are right.
    from jobgen.model.meant import find_meant

    # Imported late: most documents are valid.
    from jobgen.schema.field_places import find_block, find_place
    from jobgen.schema.foreign_words import JOB, ROLE, find_foreign_word, find_similar_word
    from jobgen.schema.right_forms import list_fields, show_blocks, split_entry, write_as_entry

    known, place = list(fields.known), At(value, key, is_key=True)
    if value_of(value[key]) is None and (entry := split_entry(str(key), known)):
        message = Sentence("`{}` has no space after its colon; write `{}`", key, entry)
        return Problem("unknown-field", message, place, cause="other form")
    start = Sentence("`{}` is not a field of {}", key, title or f"`{name}`")
    if similar := "" if find_meant(key, known) else find_similar_word(title, str(key)):
        meant = similar.strip("`")
        is_free = meant not in value and takes(fields[meant], value[key])
        steps = (FixStep("rename", place, meant),) if is_free else ()
        message = Sentence("{}; did you mean {}?", start, similar)
        return Problem("unknown-field", message, place, fix_steps=steps, safe=False, meant=meant)
    close = find_closest(key, known)
    if listed := _suggest_list(key, close, value, fields):
        is_certain = find_meant(key, known) == close
        message = Sentence("{}; write {}", start, show_blocks([close], listed[1].value))
        return Problem("unknown-field", message, place, fix_steps=listed, safe=is_certain, meant=close)
    words: Words = start + ask_for(close)
    if close in value and find_meant(key, known) == close:
        words = f"{start}, and `{close}` is written as well; keep one of them, as `{close}`"
    fix_steps, safe = suggest_rename(place, known, value, lambda meant: takes(fields[meant], value[key]))
    framework = str(value_of(value.get("framework")) or "")
    is_misspelled = find_meant(key, known) != "" and title in (JOB, ROLE)
    cause: Cause = ""
    advice = ""
    if not is_misspelled:
        advice, cause = find_foreign_word(title, str(key), value[key], name, framework)
    if key == "spec" and name in ("defaults", "merge") and isinstance(value[key], dict) and {*value[key]} <= {*known}:
        advice, cause = f"write its fields directly below `{name}`", "other form"
    if not advice and not fix_steps:
        advice, cause = find_place(title, str(key), schemas, framework), "other form"
    if not advice and not fix_steps:
        advice, cause = _place_entry(str(key), title, value, fields, around)
    if not advice:
        entry = write_as_entry(value, known)
        words += entry or ("" if close else list_fields(known, title))
        cause = "unnamed item" if entry else ""
        return Problem("unknown-field", words, place, fix_steps=fix_steps, safe=safe, cause=cause, meant=close)
    block = find_block(title, str(key), schemas, framework)
    # A value in another unit cannot be moved as it is.
    is_moved = block and advice in (f"write `{block}.{key}`", f"put it below `{block}`")
    fix_steps, safe = suggest_move(key, value, block, value) if is_moved else NO_FIX
    return Problem(
        "unknown-field",
        Sentence("{}; {}", start, advice),
        place,
        fix_steps=fix_steps,
        safe=safe,
        cause=cause,
        answer=advice,
    )


_NAMED = ("a volume", "a secret", "a config")
"""The entries of a mapping by name."""
_BLOCKS = ("configs", "data", "env", "secrets", "volumes")
"""Fields that have entries of any name."""
_VARIABLE = lazy_pattern("[A-Z][A-Z0-9_]+")
_MAX_BLOCKS = 2


def _place_entry(
    key: str, title: str, holder: Any, fields: LazyFields[Check], around: str
) -> tuple[str, Literal["", "other form"]]:
    """Say where a field belongs that is none of a mapping: around it, or below a field of entries by name."""
    if around:
        return f"put it {around}", ""
    entry = "" if find_closest(key, [*fields.known]) else _describe_entry(key, title, holder, fields)
    return entry, "other form" if entry else ""


def _describe_entry(key: str, title: str, holder: Any, fields: LazyFields[Check]) -> str:
    """Say where an entry of any name belongs that stands beside the fields of a mapping; empty if that is unknown."""
    value = holder[key]
    if isinstance(value, list) or not value_of(value):
        return ""
    if title in _NAMED and isinstance(value, dict) and {*value} <= {*fields.known}:
        return f"it is {title} of its own; write it one level to the left"
    # Whatever else such a field accepts says nothing about this value.
    other: Node = {"": value} if isinstance(value, dict) else []
    found = [name for name in _BLOCKS if name in fields.known and accepts(fields[name], {key: value})]
    found = [name for name in found if not accepts(fields[name], {key: other})]
    if "env" in found and not isinstance(value, dict):
        # What is in capital letters is a variable, and nothing else.
        found = ["env"] if _VARIABLE.fullmatch(key) else [name for name in found if name != "env"]
    if not 0 < len(found) <= _MAX_BLOCKS:
        return ""
    return f"indent it below {list_alternatives(f'`{name}`' for name in found)}, or write `{found[0]}:` above it"


def _suggest_list(key: str, meant: str, holder: Any, fields: LazyFields[Check]) -> tuple[FixStep, ...]:
    """Write `kind: a` as `kinds: [a]`: the name of one thing, and the field that lists such things."""
    value = value_of(holder[key])
    if isinstance(value, (dict, list)) or not meant or meant in holder:
        return ()
    is_list = not accepts(fields[meant], value) and accepts(fields[meant], [value])
    steps = FixStep("rename", At(holder, key, is_key=True), meant), FixStep("set", At(holder, key), [value])
    return steps if is_list else ()


def _mapping(
    fields: LazyFields[Check],
    required: Any,
    title: str,
    least: int,
    report: Callable[[str, str, Any], Problem | None],
    complete: Callable[[Problem, str, Any], Problem],
) -> Check:
    def check(value: Node, name: str, entry: Entry, problems: list[Problem]) -> None:
        if not isinstance(value, dict):
            return
        _check_fields(value, name, entry, fields, report, complete, problems)
        if problems and len(problems) >= MAX_FINDINGS:
            return
        missing = [key for key in required if key not in value]
        if missing == ["name"] and problems and problems[-1].cause == "unnamed item":
            place = problems[-1].node
            if type(place) is At and place.holder is value:
                return
        # A field whose name is misspelled is reported once.
        meant = {find_closest(str(key), missing) for key in value if fields[key] is None} if missing else set()
        for key in missing:
            if key not in meant and not any(each.answer == f"write `{key}`" for each in problems):
                message = Sentence("{} needs `{}`", title or f"`{name}`", key)
                problems.append(Problem("missing-field", message, value or at_value(value, entry)))
        if len(value) < least:
            problems.append(Problem("missing-field", Sentence("{} is empty", title), at_key(value, entry)))

    return check


def _check_fields(
    value: Mapping[str, Node],
    name: str,
    entry: Entry,
    fields: LazyFields[Check],
    report: Callable[[str, str, Any], Problem | None],
    complete: Callable[[Problem, str, Any], Problem],
    problems: list[Problem],
) -> None:
    # The last field, if it has no value, and the range of its problems.
    empty: tuple[str, int, int] | None = None
    is_below_unknown = False
    for key, child in value.items():
        check_value = fields[key]
        if problems and len(problems) >= MAX_FINDINGS:
            return
        if check_value is not None:
            before = len(problems)
            check_value(child, key, (value, key, entry), problems)
            if len(problems) > before:
                if empty and key not in fields.known and accepts(fields[empty[0]], {key: child}):
                    del problems[before:]
                    _add_beside(problems, At(value, key, is_key=True), empty)
                    continue
                problems[before:] = _join_items([complete(problem, key, value) for problem in problems[before:]])
            empty = (key, before, len(problems)) if value_of(child) is None and not _is_written(child) else None
            is_below_unknown = False
        # Others are reported as ambiguous keys.
        elif (type(key) is not TracedKey or not key.written) and (problem := report(key, name, value)):
            if empty and not problem.fix_steps and accepts(fields[empty[0]], {key: child}):
                _add_beside(problems, At(value, key, is_key=True), empty)
            elif not is_below_unknown or problem.fix_steps:
                problems.append(problem)
                # What follows an unknown field without a value, such as an indented `spec:`, belongs to it.
                is_below_unknown = value_of(child) is None


def _join_items(problems: list[Problem]) -> list[Problem]:
    """Return the problems with one for all items of a list whose answer is to write the whole list otherwise."""
    seen: set[str] = set()
    left: list[Problem] = []
    for problem in problems:
        form = problem.answer if problem.cause == "other form" else ""
        if not form or problem.item < 0 or form not in seen:
            left.append(problem)
        seen.add(form)
    return left


def _is_written(value: Node) -> bool:
    """Return True if a null has a text, such as `null`: then nothing can be meant to stand below it."""
    place = location_of(value)
    return place is not None and place[1:3] != place[3:]


def _add_beside(problems: list[Problem], place: At, empty: tuple[str, int, int]) -> None:
    """Report the first of the fields that stand beside the field that they belong to, in place of its problems."""
    above, start, end = empty
    first = problems[start] if start < len(problems) else None
    if first is None or (first.cause, first.about) != ("not indented", above):
        problems[start:end] = [_report_beside(place, above)]


def _report_beside(place: At, above: str) -> Problem:
    message = Sentence(
        "`{}` belongs to `{}`, which has no value; indent what belongs to `{}` below it", place.key, above, above
    )
    return Problem("unknown-field", message, place, cause="not indented", about=above)


def _items(check_value: Check) -> Check:
    def check(value: Node, name: str, entry: Entry, problems: list[Problem]) -> None:
        if isinstance(value, list):
            for index, item in enumerate(value):
                if len(problems) >= MAX_FINDINGS:
                    return
                before = len(problems)
                check_value(item, name, (value, index, entry), problems)
                for number in range(before, len(problems)):
                    problem = problems[number]
                    if problem.about == name and problem.item < 0 and problem.cause != "not indented":
                        message = name_value(problem.sentence, name, f"{name}[{index}]")
                        problems[number] = problem._replace(
                            sentence=message, at=problem.at or At(value, index), item=index
                        )

    return check


def _count_items(least: int, most: float) -> Check:
    def check(value: Node, name: str, entry: Entry, problems: list[Problem]) -> None:
        if isinstance(value, list) and not least <= len(value) <= most:
            bound = f"at most {most}" if len(value) > most else f"at least {least}"
            message = Sentence("`{}` has {} items, and must have {}", name, len(value), bound)
            problems.append(Problem("invalid-value", message, at_scalar(value, entry)))

    return check


def _type(wanted: str | list[str]) -> Check:
    names = wanted if isinstance(wanted, list) else [wanted]
    types = frozenset(kind for name in names for kind in TYPES[name])
    implied = {"null", "integer"} if "number" in names else {"null"}
    expected = list_alternatives([TYPE_NAMES[name] for name in names if name not in implied] or ["null"])

    def check(value: Node, name: str, entry: Entry, problems: list[Problem]) -> None:
        if type(value) not in types and _type_of(value) not in types:
            problems.append(_report_type(value, name, entry, expected, names))
        elif type(value) is TracedScalar and value.written and "string" in names:
            problems.extend(filter(None, [check_text(value, name, names)]))

    return check


def _report_type(value: Node, name: str, entry: Entry, expected: str, types: list[str]) -> Problem:
    """Report a value of a wrong type as it is written. A number or a boolean in place of text needs quotes."""
    key = (name.written if type(name) is TracedKey else "") or name
    written = value.written if type(value) is TracedScalar else ""
    shown = f"`{written}`, which YAML reads as {format_value(value)}" if written else format_value(value)
    if isinstance(value_of(value), float) and "integer" in types and (name == "gpu" or "/" in name):
        # A quoted fraction of a device would be refused, too.
        answer = "a container gets whole devices"
        message = Sentence("`{}` is {}, and must be a whole number; {}", key, shown, answer)
        return Problem("wrong-type", message, at_scalar(value, entry), about=key, answer=answer)
    fix_steps, safe = suggest_type(at_value(value, entry), TYPE_NAMES["string"] if "string" in types else expected)
    if isinstance(value_of(value), bool) and "integer" in types:
        # Text in place of a number is an amount such as `16Gi`, and `true` is none with quotes either.
        fix_steps, safe = NO_FIX
    hint = "; quote it" if "string" in types and fix_steps else describe_unquoting(value, fix_steps)
    message = Sentence("`{}` is {}, and must be {}{}", key, shown, expected, hint)
    node, meant = at_scalar(value, entry), TYPE_NAMES["string"] if "string" in types else expected
    cause: Cause = "no list" if "array" in types else ""
    problem = Problem("wrong-type", message, node, fix_steps=fix_steps, safe=safe, expected=meant)
    return problem._replace(about=key, answer=hint, cause=cause)


def _any_of(options: list[tuple[frozenset[type], Check]]) -> Check:
    by_type = {kind: check_value for types, check_value in reversed(options) for kind in types}
    names = [name for name in TYPES if set(TYPES[name]) <= by_type.keys() and name not in ("null", "number")]
    expected = list_alternatives([TYPE_NAMES[name] for name in names])

    def check(value: Node, name: str, entry: Entry, problems: list[Problem]) -> None:
        check_value = by_type.get(type(value)) or by_type.get(_type_of(value))
        if check_value is None:
            problems.append(_report_type(value, name, entry, expected, names))
        else:
            check_value(value, name, entry, problems)

    return check


def _enum(allowed: list[Any]) -> Check:
    # `false` is accepted because YAML reads `off` as it; it is not suggested.
    words = [str(value) for value in allowed if value is not None and value is not False]
    # In Python, 0 equals False.
    known = {(type(value), value) for value in allowed}

    def check(value: Node, name: str, entry: Entry, problems: list[Problem]) -> None:
        found = value.value if type(value) is TracedScalar else value
        if isinstance(found, (dict, list)) or (type(found), found) not in known:
            other = _find_other_word(name, found, words) if isinstance(found, str) else ""
            if found is False:
                # `no` and `off`.
                other = next((word for word in words if word in ("Never", "None")), "")
            close = find_closest(str(found), words) if isinstance(found, str) and len(words) > 1 else ""
            meant = other or close or _find_long_form(found, words)
            expected = list_alternatives([f"`{word}`" for word in words])
            message = Sentence("`{}` is {}, and must be {}", name, format_value(value), expected)
            fix_steps, safe = suggest_value(at_value(value, entry), words)
            if several := [] if other else _list_longer(str(found), close, words):
                # `queues` may be any kind of queue.
                message += f"; did you mean {list_alternatives(f'`{word}`' for word in several)}?"
                meant, fix_steps = "", ()
            message += ask_for(meant)
            if other:
                fix_steps, safe = (FixStep("set", at_value(value, entry), other),), False
            problem = Problem("invalid-value", message, at_scalar(value, entry), meant=meant, about=name)
            problems.append(problem._replace(fix_steps=fix_steps, safe=safe))

    return check


def _find_long_form(found: Any, known: list[str]) -> str:
    """Return the one value of which a word is the beginning: `warning` for `warn`."""
    is_short = isinstance(found, str) and len(found) >= _SHORTEST_FORM
    long = [word for word in known if is_short and word.lower().startswith(found.lower())]
    return long[0] if len(long) == 1 else ""


_SHORTEST_FORM = 4


def _list_longer(found: str, close: str, known: list[str]) -> list[str]:
    """Return the values that end with the close one, if there are several: a word for all of them means none."""
    longer = [word for word in known if close and word.lower().endswith(close.lower())]
    return longer if len(longer) > 1 and found.lower() != close.lower() else []


def _find_other_word(name: str, found: str, known: list[str]) -> str:
    """Return the value that another word for it means, unless a value is spelled like it."""
    # Imported late: most names are right.
    from jobgen.model.meant import find_meant
    from jobgen.schema.foreign_words import find_value

    meant = "" if found in known or find_meant(found, known) else find_value(name, found)
    return meant if meant in known else ""


def _text(schema: Any) -> Check:
    pattern = re.compile(schema["pattern"].replace("$", r"\Z")) if "pattern" in schema else None
    least, most = schema.get("minLength", 0), schema.get("maxLength", 1 << 30)
    must = schema.get("x-must", f"match `{schema.get('pattern')}`")

    def check(value: Node, name: str, entry: Entry, problems: list[Problem]) -> None:
        found = value.value if type(value) is TracedScalar else value
        if not isinstance(found, str):
            return
        if len(found) < least or len(found) > most:
            short = f"have at least {least} characters" if least > 1 else "not be empty"
            limit = f"be at most {most} characters long" if len(found) > most else short
            message = Sentence("`{}` is {}, and must {}", name, format_value(value), limit)
            problems.append(Problem("invalid-value", message, at_scalar(value, entry), about=name))
        elif pattern and not pattern.search(found):
            message = Sentence("`{}` is {}, and must {}", name, format_value(value), must)
            # Imported late: most names are valid.
            from jobgen.schema.right_forms import write_as_folder, write_as_name

            is_folder = must.startswith("be a folder in jobs/")
            meant = write_as_name(found) if "lower-case" in must else write_as_folder(found) if is_folder else ""
            hint = (
                f"{'; write' if is_folder else ', such as'} `{meant}`"
                if meant and pattern.search(meant) and len(meant) <= most
                else ""
            )
            problems.append(
                Problem("invalid-value", Sentence("{}{}", message, hint), at_scalar(value, entry), about=name)
            )

    return check


def _range(least: float, most: float) -> Check:
    def check(value: Node, name: str, entry: Entry, problems: list[Problem]) -> None:
        found = value.value if type(value) is TracedScalar else value
        if not isinstance(found, (int, float)) or isinstance(found, bool):
            return
        if found < least or found > most:
            bound = f"at least {least}" if found < least else f"at most {most}"
            message = Sentence("`{}` is `{}`, and must be {}", name, found, bound)
            problems.append(Problem("invalid-value", message, at_scalar(value, entry), about=name))

    return check


def join_checks(checks: list[Check]) -> Check:
    """One check that runs several; without any, it accepts all values."""
    if len(checks) == 1:
        return checks[0]

    def check(value: Node, name: str, entry: Entry, problems: list[Problem]) -> None:
        for check_value in checks:
            check_value(value, name, entry, problems)

    return check


def _type_of(value: Node) -> type:
    if type(value) is TracedScalar:
        value = value.value
    return list if isinstance(value, list) else dict if isinstance(value, dict) else type(value)


def format_value(value: Node) -> str:
    """A value as it appears in a message."""
    found = value.value if type(value) is TracedScalar else value
    if isinstance(found, dict):
        return "a mapping"
    if isinstance(found, list):
        return "a list"
    if found is None or isinstance(found, bool):
        return {True: "`true`", False: "`false`", None: "`null`"}[found]
    # A text of several lines is shown on one.
    return f"`{' '.join(found.split()) if isinstance(found, str) and chr(10) in found else found}`"
