"""Compiles the JSON Schema of a CRD to a check of objects, with the rules of the API server.

Each schema node becomes one closure. For a scalar of the right Python type, the check is one comparison of types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from jobgen.check.admission.metadata import MetadataFormat, validate_object_metadata
from jobgen.check.admission.names import DNS_LABEL_1035, PATH_SEGMENT_NAME, is_dns_label_1035
from jobgen.check.cel import EvaluationBudget
from jobgen.check.schema.cel_types import OBJECT_META
from jobgen.check.schema.constraints import compile_alternatives, compile_constraints, report_value
from jobgen.k8s.kinds import NEWEST_RELEASE, Release
from jobgen.k8s.nodes import get_path
from jobgen.k8s.placeholders import is_command_line
from jobgen.model.budget import Budget
from jobgen.model.data import (
    Plain,
    untraced,
)
from jobgen.model.finding import Cause, FixStep, Problem
from jobgen.model.limits import MAX_FINDINGS
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Entry, Place, at_key, at_value
from jobgen.model.sentence import Sentence, name_value
from jobgen.model.suggest import (
    NO_FIX,
    ask_for,
    describe_unquoting,
    find_closest,
    list_alternatives,
    suggest_move,
    suggest_rename,
    suggest_type,
)
from jobgen.schema.own_formats import (
    TYPE_NAMES,
    TYPES,
    Check,
    LazyFields,
    accepts,
    format_value,
    join_checks,
)
from jobgen.schema.types_of_release import OTHER_RELEASES

# Fields of pods for which a value of another type is common.
_EXAMPLES: dict[str, tuple[Plain, ...]] = {
    "args": (["--epochs=10"],),
    "command": (["python", "train.py"],),
    "containers": ([{"name": "main", "image": "registry.example.com/train:1.0.0"}],),
    "env": ([{"name": "NCCL_DEBUG", "value": "INFO"}],),
    "labels": ({"team": "nlp"},),
    "limits": ({"cpu": 8, "memory": "64Gi"},),
    "nodeSelector": ({"pool": "gpu"},),
    "requests": ({"cpu": 4, "memory": "32Gi"},),
    "resources": ({"limits": {"nvidia.com/gpu": 8}},),
    "tolerations": ([{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],),
    "volumeMounts": ([{"name": "data", "mountPath": "/data"}],),
    "volumes": ([{"name": "data", "persistentVolumeClaim": {"claimName": "datasets"}}],),
}
_FORMS = frozenset(TYPE_NAMES[name] for name in ("array", "object", "integer"))
_CLOSED = frozenset(
    """cleanPodPolicy completionMode concurrencyPolicy dnsPolicy imagePullPolicy preemptionPolicy restartPolicy
    terminationMessagePolicy whenUnsatisfiable""".split()
)
"""Fields of a few values whose types say only that they are text."""
_ENV_SOURCES = frozenset(("configMapKeyRef", "fieldRef", "resourceFieldRef", "secretKeyRef"))
_CONTAINERS = ("containers[", "initContainers[")
Field = tuple[type | None, Check]
"""The type of value that needs no further check, and the check for all others."""

# The defaults of keys in pods, which the types of Kubernetes do not state.
_KEY_DEFAULTS = {"name": "", "protocol": "TCP"}
_RANGES = {"int32": range(-(2**31), 2**31), "int64": range(-(2**63), 2**63)}
_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
_ANYTHING = join_checks([])
# A CEL rule takes as long as the checks of many schema nodes.
_RULE_STEPS = 100
# A schema with this keyword has a subresource for `status`, so the API server drops the status of a new object.
DROPS_STATUS = "x-jobgen-drops-status"
# The patterns of a schema with this keyword were written for RE2, and Python may read them in another way or slowly.
FOREIGN_PATTERNS = "x-jobgen-foreign-patterns"
# A field whose schema has no other keywords needs no check besides its type.
_TYPE_KEYWORDS = frozenset(("type", "x-kubernetes-int-or-string", "default", "nullable"))


def compile_structural(
    schema: dict[str, Any], budget: Budget | None = None, release: Release = NEWEST_RELEASE
) -> Callable[[Mapping[str, Plain]], list[Problem]]:
    """The check for a whole object; a budget limits its steps, for schemas that are not trusted.

    The release of Kubernetes determines which formats are enforced.
    """
    # Every kind has this metadata, whatever its schema says of it.
    schema = {**schema, "properties": {**schema.get("properties", {}), "metadata": OBJECT_META}}
    compiler = _Compiler(schema, budget, release)
    check_value = compiler.check(schema)

    def check(value: Mapping[str, Plain]) -> list[Problem]:
        problems: list[Problem] = []
        compiler.rules_budget.reset()
        check_value(value, schema.get("title", ""), None, problems)
        return compiler.with_locations(problems, value) if problems else problems

    return check


class _Hint(NamedTuple):
    """What is known of an unknown field."""

    near: str = ""
    """The rest of the message."""
    path: str = ""
    """Where the schema has a field of that name."""
    level: str = ""
    """The field that is missing between the mapping and all its unknown fields."""
    is_first: bool = False
    """True for the first of these fields."""
    meant: str = ""
    """The field that was probably meant."""
    is_alike: bool = False
    """True if it has another name, and what the value contains."""
    cause: Cause = ""


class _Compiler:
    """Turns schema nodes into closures; a `$ref` is compiled once."""

    def __init__(self, root: dict[str, Any], budget: Budget | None = None, release: Release = NEWEST_RELEASE) -> None:
        self.root = root
        self.budget = budget
        self.rules_budget = EvaluationBudget()
        self.release = release
        self.needs_re2 = budget is not None or FOREIGN_PATTERNS in root
        self.refs: dict[str, Check] = {}
        self._locations: dict[str, list[str]] = {}

    def check(self, schema: dict[str, Any]) -> Check:
        if schema.get("x-kubernetes-embedded-resource"):
            # It has the fields that every object has, whatever the schema says of them.
            required = sorted({*schema.get("required", ()), "apiVersion", "kind"})
            fields = {**schema.get("properties", {}), **_FIELDS}
            check_value = _with_embedded_object(self._shape({**schema, "properties": fields, "required": required}))
        else:
            check_value = self._shape(schema)
        if schema.get("x-kubernetes-validations"):
            # Imported late, because most kinds have no CEL rules.
            from jobgen.check.schema.cel_rules import with_cel_rules

            check_value = with_cel_rules(check_value, schema, self.root, self.rules_budget, self.budget)
        if not self.budget:
            return check_value
        listed = sum(len(schema[word]) for word in ("required", "enum", *_ALTERNATIVES) if word in schema)
        rules = len(schema.get("x-kubernetes-validations", ()))
        return _with_budget(check_value, self.budget, 1 + listed + _RULE_STEPS * rules)

    def _shape(self, schema: dict[str, Any]) -> Check:
        if "$ref" in schema:
            return self._ref(schema["$ref"])
        if schema.keys() == {"anyOf"} and len(schema["anyOf"]) == 2 and schema["anyOf"][1] == {"type": "null"}:
            return _unless_null(self.check(schema["anyOf"][0]))
        checks = [self._typed(schema)] if "type" in schema else list(self._untyped(schema))
        checks += compile_constraints(schema, needs_re2=self.needs_re2, release=self.release)
        if "anyOf" in schema or "oneOf" in schema or "allOf" in schema or "not" in schema:
            checks += self._alternatives(schema)
        return join_checks(checks)

    def _alternatives(self, schema: dict[str, Any]) -> Iterator[Check]:
        fields = schema.get("properties", {}).items()
        defaults = {name: child["default"] for name, child in fields if "default" in child}
        for word in _ALTERNATIVES:
            if word in schema:
                yield compile_alternatives(word, [self.check(form) for form in schema[word]], defaults)
        if "not" in schema:
            yield compile_alternatives("not", [self.check(schema["not"])], defaults)

    def _typed(self, schema: dict[str, Any]) -> Check:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if "object" in kinds:
            return self._object(schema, nullable="null" in kinds)
        scalars = [kind for kind in kinds if kind != "array"]
        if "array" in kinds:
            check_list = self._array(schema, nullable="null" in kinds)
            return _choose(list, check_list, _scalar(scalars, "")) if "string" in kinds else check_list
        return _scalar(kinds, schema.get("format", ""))

    def _untyped(self, schema: dict[str, Any]) -> Iterator[Check]:
        """The checks of a node without a type: of mappings and of lists, if it is one."""
        if schema.keys() & {"required", "properties", "additionalProperties"}:
            yield _choose(dict, self._object(schema, nullable=True), _ANYTHING)
        if "items" in schema:
            yield _choose(list, self._array(schema, nullable=True), _ANYTHING)

    def _ref(self, ref: str) -> Check:
        if ref not in self.refs:
            # A type may refer to itself: until it is compiled, its check is looked up at run time.
            self.refs[ref] = lambda *args: self.refs[ref](*args)  # noqa: PLW0108
            self.refs[ref] = self.check(self.root["$defs"][ref.rpartition("/")[2]])
        return self.refs[ref]

    def _field(self, schema: dict[str, Any]) -> Field:
        kinds = schema.get("type", [])
        simple = str if "string" in kinds else bool if "boolean" in kinds else None
        if schema.keys() - _TYPE_KEYWORDS:
            simple = None
        return simple, self.check(schema)

    def _fits(self, schema: dict[str, Any], value: Plain) -> bool:
        """Return True if a field takes a value of this type."""
        simple, check_value = self._field(schema)
        found: list[Problem] = []
        if type(value) is not simple:
            check_value(value, "value", None, found)
        return not any(each.rule == "wrong-type" and each.about == "value" for each in found)

    def _dropped_field(self, schema: dict[str, Any]) -> Field:
        """A field that the API server drops before it validates: only the names of fields in it must be known."""
        check_value = self.check(schema)

        def check(value: Plain, name: str, entry: Entry, problems: list[Problem]) -> None:
            found: list[Problem] = []
            check_value(value, name, entry, found)
            problems.extend(problem for problem in found if problem.rule == "unknown-field")

        return None, check

    def _object(self, schema: dict[str, Any], *, nullable: bool) -> Check:
        properties = schema.get("properties", {})
        extra = schema.get("additionalProperties", True)
        other = self._field(extra) if isinstance(extra, dict) else (None, _ANYTHING) if extra else None
        # The server fills in defaults before it validates.
        required = [key for key in schema.get("required", ()) if "default" not in properties.get(key, ())]
        known: dict[str, Callable[[], Field]] = {
            name: partial(self._field, child) for name, child in properties.items()
        }
        if DROPS_STATUS in schema and "status" in known:
            known["status"] = partial(self._dropped_field, properties["status"])
        fields: LazyFields[Field] = LazyFields(known, other)
        # An error in an untrusted schema must be found before the first object.
        fields.update({name: fields[name] for name in properties} if self.budget else {})
        hint = partial(self._hint, schema.get(OTHER_RELEASES, {}), properties)
        keeps_null = frozenset(key for key in required if "nullable" in (properties.get(key) or ()))
        return _mapping(fields, tuple(required), keeps_null, hint, nullable=nullable)

    def _array(self, schema: dict[str, Any], *, nullable: bool) -> Check:
        described = schema.get("items", {})
        items = self._field(described)
        # The keys that identify the items, each with its default.
        unique: Mapping[str, Any] | None = None
        keys = schema.get("x-kubernetes-list-map-keys") or ()
        if keys or schema.get("x-kubernetes-list-type") == "set":
            ref = described.get("$ref", "").rpartition("/")[2]
            fields = (self.root["$defs"][ref] if ref else described).get("properties", {})
            unique = {key: fields.get(key, {}).get("default", _KEY_DEFAULTS.get(key)) for key in keys}
        nullable_items = "null" in described.get("type", ()) or described.get("nullable", False)
        return _list(items, unique, nullable=nullable, nullable_items=nullable_items)

    def with_locations(self, problems: Sequence[Problem], obj: Mapping[str, Plain]) -> list[Problem]:
        """The problems of an object, with the paths where misplaced fields belong."""
        if any(problem.rule == "unknown-field" for problem in problems):
            # Imported late: most objects are valid.
            from jobgen.check.schema.field_shapes import join_below_metadata

            properties, types = self.root.get("properties", {}), self.root.get("$defs", {})
            problems = join_below_metadata(problems, obj, properties, types)
        return [self.with_location(problem, obj) for problem in problems]

    def with_location(self, problem: Problem, obj: Plain) -> Problem:
        """The problem of a misplaced field with the path where it belongs, and a fix that moves it there."""
        place = problem.node
        if (
            problem.rule != "unknown-field"
            or problem.fix_steps
            or problem.evidence is None
            or not isinstance(place, At)
        ):
            return problem
        holder, key = place.holder, place.key
        # Imported late: most objects are valid.
        from jobgen.check.schema.field_locations import (
            find_field_path,
            find_own_path,
            locate_fields,
            suggest_field_move,
        )

        self._locations = self._locations or locate_fields(self.root)
        own = find_own_path(holder, obj)
        if not own and isinstance(obj, dict) and key in OBJECT_META["properties"]:
            fix_steps, safe = suggest_move(key, obj, "metadata", obj)
            moved = Sentence("{}; it belongs in `metadata`", problem.sentence)
            return problem._replace(sentence=moved, fix_steps=fix_steps, safe=safe, meant="")
        path = find_field_path(key, holder, obj, self._locations)
        if not path:
            return problem._replace(sentence=Sentence("{}{}", problem.sentence, ask_for(problem.meant)))
        is_first = path == self._locations[key][0]
        fix_steps, safe = suggest_field_move(key, holder, obj, self._locations) if is_first else NO_FIX
        name = problem.evidence[1]
        message = problem.sentence
        if path.rpartition(".")[2] == name:
            # Two mappings have this name.
            message = name_value(message, name, own or name)
        is_there = get_path(obj, *path.split("."), key) is not None
        if own == f"{path}.{key}" and get_path(obj, *own.split("."), "template") is None:
            # Each object with pods has a `spec`, and their template has another.
            message = f"{problem.sentence}; write `template:` above it, and indent it"
            return problem._replace(sentence=message, meant="", cause="other form")
        words = "{}; `{}` has it, so remove it here" if is_there else "{}; it belongs in `{}`"
        if is_there and path.rpartition(".")[0] == own:
            # What stands one level too high is not there a second time.
            words = "{}; it belongs in `{}`, which has one; keep one, or join both"
        message = Sentence(words, message, path)
        return problem._replace(sentence=message, fix_steps=fix_steps, safe=safe, meant="", cause="misplaced")

    def _hint(
        self, others: Mapping[str, str], properties: dict[str, Any], field: str, holder: Mapping[str, Plain]
    ) -> _Hint:
        """A similar field of the same mapping; or the first path that has a field of that name, for the fingerprint.

        `others` are the fields that other releases have, each with the range of these releases.
        """
        # Imported late: most objects are valid.
        from jobgen.check.schema.field_locations import locate_fields
        from jobgen.check.schema.field_shapes import find_alike, find_holder, find_longer, find_missing_level
        from jobgen.check.schema.other_places import find_level_of_amounts, find_other_name, find_other_place

        types = self.root.get("$defs", {})
        known = list(properties)
        if field in others:
            return _Hint(f" in this release; it {others[field]}")
        unknown = [key for key in islice(holder, MAX_FINDINGS) if key not in properties]
        if place := find_other_place(field, holder, properties):
            return _Hint(place, cause="misplaced")
        if meant := find_other_name(field, holder, properties):
            return _Hint(ask_for(meant), meant=meant, is_alike=self._fits(properties[meant], holder[field]))
        amounts = find_level_of_amounts(unknown, properties)
        if amounts in holder:
            return _Hint(f"; it belongs in `{amounts}`", cause="misplaced")
        if level := amounts or find_missing_level(unknown, holder, properties, types):
            return _Hint(level=level, is_first=unknown[0] == field)
        self._locations = self._locations or locate_fields(self.root)
        known_paths = self._locations.get(field, [])
        close = find_closest(field, known)
        # Imported late: most names are right.
        from jobgen.model.meant import find_meant

        is_certain = close != "" and find_meant(field, known) == close and close not in holder
        is_same = close.lower() == field.lower()
        is_meant = is_same or (is_certain and self._fits(properties[close], holder[field]))
        longer = "" if is_meant or is_certain else find_longer(field, holder, properties)
        if known_paths and len(longer) < len(field):
            # `nodeSelector` of a pod is no `selector`.
            longer = ""
        if longer and self._fits(properties[longer], holder[field]):
            return _Hint(ask_for(longer), meant=longer, is_alike=True)
        if known_paths and not is_meant:
            return _Hint(path=known_paths[0], meant=close if is_certain else "")
        alike = "" if close else find_alike(holder[field], holder, properties, types)
        if not (close or alike) and (above := find_holder(field, holder, properties, types)):
            return _Hint(f"; put it below `{above}`")
        return _Hint(ask_for(close or alike), meant=close or alike, is_alike=bool(alike))


def _mapping(
    fields: LazyFields[Field],
    required: tuple[str, ...],
    keeps_null: frozenset[str],
    hint: Callable[[str, Mapping[str, Plain]], _Hint],
    *,
    nullable: bool,
) -> Check:
    def check(value: Plain, name: str, entry: Entry, problems: list[Problem]) -> None:
        if type(value) is not dict and not isinstance(value, dict):
            if not (nullable and value is None):
                problems.append(_report_wrong_type(value, name, entry, "a mapping", check))
            return
        for key, child in value.items():
            field = fields[key]
            if field is None:
                _report_unknown_field(key, value, name, fields, hint, problems)
            elif type(child) is not field[0] and child is not None:
                # The server drops a null before it validates, or keeps it where it is allowed.
                field[1](child, key, (value, key, entry), problems)
        if problems and len(value) == 1 and problems[-1].cause == "unnamed item":
            return
        for key in required:
            found = value[key] if key in value else None  # noqa: SIM401 -- for each mapping of each object
            if found is None and not (key in keeps_null and key in value):
                message = Sentence("`{}` needs `{}`", name, key)
                at = At(value, key) if key in value else value or at_value(value, entry)
                is_container = key == "name" and name.startswith(_CONTAINERS)
                cause: Cause = "unnamed container" if is_container else ""
                node = value or at_key(value, entry)
                problems.append(Problem("missing-field", message, node, category="schema", at=at, cause=cause))

    return check


def _report_unknown_field(
    key: str,
    holder: Mapping[str, Plain],
    name: str,
    fields: LazyFields[Field],
    hint: Callable[[str, Mapping[str, Plain]], _Hint],
    problems: list[Problem],
) -> None:
    if len(problems) < MAX_FINDINGS:
        known, place = list(fields.known), At(holder, key, is_key=True)
        if ":" in key and holder[key] is None:
            # Imported late: few keys have a colon.
            from jobgen.schema.right_forms import split_entry

            if split := split_entry(str(key), known):
                message = f"`{key}` has no space after its colon; write `{split}`"
                problems.append(Problem("unknown-field", message, place, category="schema", cause="other form"))
                return
        near, path, level, is_first, meant, is_alike, cause = hint(str(key), holder)
        if level:
            if is_first:
                # Imported late: most objects are valid.
                from jobgen.schema.right_forms import describe_missing_level

                others = sum(each not in fields.known for each in holder) - 1
                message = describe_missing_level(str(key), others, level)
                problem = Problem("unknown-field", message, place, category="schema")
                problems.append(problem._replace(cause="missing level", meant=level))
            return
        if not near and not path:
            # Imported late: most objects are valid.
            from jobgen.schema.right_forms import list_fields, write_as_entry

            near = write_as_entry(holder, known) if "[" in name else ""
            cause = "unnamed item" if near else ""
            near = near or list_fields(known)
        message = f"`{key}` is not a field of `{name}`{near}"
        # A field that belongs elsewhere is not renamed to a similar one.
        fits = partial(_takes, fields, holder[key])
        fix_steps, safe = suggest_rename(place, known, holder, fits) if meant and not path else NO_FIX
        if is_alike:
            fix_steps, safe = (FixStep("rename", place, meant),), False
        evidence = (str(key), name, path) if path else None
        problem = Problem("unknown-field", message, place, category="schema", fix_steps=fix_steps, safe=safe)
        problems.append(problem._replace(evidence=evidence, cause=cause, meant=meant, shown=f"`{key}`"))


def _takes(fields: LazyFields[Field], value: Plain, name: str) -> bool:
    """Return True if a field takes a value of this type; what the value contains may have other problems."""
    field, found = fields[name], list[Problem]()
    if field is not None and type(value) is not field[0]:
        field[1](value, "value", None, found)
    is_wrong = any(each.rule == "wrong-type" and each.about == "value" for each in found)
    return field is not None and not is_wrong


def _list(items: Field, unique: Mapping[str, Any] | None, *, nullable: bool, nullable_items: bool) -> Check:
    simple, check_value = items
    key = next(iter(unique)) if unique is not None and len(unique) == 1 else None

    def check(value: Plain, name: str, entry: Entry, problems: list[Problem]) -> None:
        if type(value) is not list and not isinstance(value, list):
            if not (nullable and value is None):
                problems.append(_report_wrong_type(value, name, entry, "a list", check))
            return
        for index, item in enumerate(value):
            if problems and len(problems) > MAX_FINDINGS:
                return
            if type(item) is simple or (nullable_items and item is None):
                continue
            inner = f"{name}[{index}]"
            if item is None:
                problems.append(_report_wrong_type(item, inner, (value, index, entry), "a value, not null", check))
                continue
            check_value(item, inner, (value, index, entry), problems)
        if unique is not None and _may_have_duplicates(value, key):
            problems.extend(_find_duplicate_items(value, unique, name))

    return check


def _may_have_duplicates(items: Sequence[Plain], key: str | None) -> bool:
    """False if all items have a string as their key, without locations, and each another one, as most lists do."""
    if len(items) < 2 or key is None:
        return len(items) > 1
    names = [item[key] if type(item) is dict and key in item else None for item in items]
    return {*map(type, names)} != {str} or len(set(names)) < len(names)


def _scalar(kinds: list[str], form: str) -> Check:
    types = frozenset(kind for name in kinds for kind in TYPES[name])
    if form and "string" in kinds:
        # The API server does not check the type of a list where a schema has a format.
        types |= {list}
    expected = list_alternatives(TYPE_NAMES[name] for name in kinds if name != "null")
    numbers = _RANGES.get(form)

    def check(value: Plain, name: str, entry: Entry, problems: list[Problem]) -> None:
        sort = type(value)
        if sort not in types:
            problems.append(_report_wrong_type(value, name, entry, expected, check))
        elif numbers is not None and sort is int and value not in numbers:
            message = Sentence("`{}` is `{}`, which does not fit into {} bits", name, value, form[3:])
            problems.append(report_value("out-of-range", message, value, entry))

    return check


def _choose(kind: type, check_kind: Check, check_others: Check) -> Check:
    """A check of mappings or of lists, and one of all other values."""

    def check(value: Plain, name: str, entry: Entry, problems: list[Problem]) -> None:
        (check_kind if isinstance(value, kind) else check_others)(value, name, entry, problems)

    return check


_CHARACTERS_PER_STEP = 1000


def _with_budget(check_value: Check, budget: Budget, weight: int) -> Check:
    def check(value: Plain, name: str, entry: Entry, problems: list[Problem]) -> None:
        # A pattern reads all of a text.
        budget.spend(weight + (len(value) // _CHARACTERS_PER_STEP if isinstance(value, str) else 0))
        check_value(value, name, entry, problems)

    return check


def _unless_null(check_value: Check) -> Check:
    def check(value: Plain, name: str, entry: Entry, problems: list[Problem]) -> None:
        if value is not None:
            check_value(value, name, entry, problems)

    return check


def _report_wrong_type(value: Plain, name: str, entry: Entry, expected: str, check_value: Check) -> Problem:
    fix_steps, safe = suggest_type(at_value(value, entry), expected)
    is_scalar = isinstance(value, (bool, int, float)) and not isinstance(value, (dict, list))
    hint = "; quote it" if expected == "a string" and is_scalar else describe_unquoting(value, fix_steps)
    if name in _CLOSED and is_scalar and expected == "a string":
        # Imported late: most objects are valid.
        from jobgen.schema.right_forms import show_closed_value

        # Quotes make a text of it, and none that the field has.
        hint, fix_steps = show_closed_value(name, value), ()
    is_nested = expected == "a string" and isinstance(value, (dict, list))
    # A form that is tried has no name.
    if not hint and name and (expected in _FORMS or is_nested):
        # Imported late: most objects are valid.
        from jobgen.schema.right_forms import show_named_item, show_right_form, show_right_item

        if "[" not in name:
            hint = show_right_form(name, value, _EXAMPLES.get(name, ()), partial(accepts, check_value))
        elif is_nested and name.partition("[")[0] in ("args", "command"):
            hint = show_right_item([untraced(value)], 0)
        else:
            hint = show_named_item(name, value, partial(accepts, check_value))
    if not hint and expected == TYPE_NAMES["array"] and isinstance(value, dict) and value:
        # Imported late: most objects are valid.
        from jobgen.schema.right_forms import show_first_item

        hint = show_first_item(value, partial(accepts, check_value))
    if not hint and name == "value" and isinstance(value, dict) and _ENV_SOURCES.issuperset(value):
        hint = "; write `valueFrom`"
    if not hint and is_nested and name in ("matchExpressions", "matchLabels"):
        # A selector of Services has labels only.
        hint = f"; write the labels without `{name}:` above them"
    shown = format_value(value)
    message = Sentence("`{}` is {}, and must be {}{}", name, shown, expected, hint)
    text = value
    lines = text.count("\n") if isinstance(text, str) else 0
    if lines >= 2 and expected in (TYPE_NAMES["object"], TYPE_NAMES["array"]) and name not in ("args", "command"):
        message = Sentence(
            "`{}` is a text of {} lines, and must be {}; write it as YAML, without `|`", name, lines, expected
        )
    problem = report_value("wrong-type", message, value, entry)
    cause: Cause = "no list" if expected == TYPE_NAMES["array"] else ""
    cause = "no placeholder" if is_command_line(name, text) else cause
    return problem._replace(fix_steps=fix_steps, safe=safe, expected=expected, about=name, shown=shown, cause=cause)


def _find_duplicate_items(items: Sequence[Plain], keys: Mapping[str, Any], name: str) -> Iterator[Problem]:
    """Items of a list that have the same keys, so that Kubernetes cannot distinguish them; keys have defaults."""
    seen: dict[tuple[Any, ...], int] = {}
    for index, item in enumerate(items):
        if isinstance(item, dict):
            given = ((item.get(key), default) for key, default in keys.items())
            identity = tuple(default if (found is None) else found for found, default in given)
        else:
            identity = (item,)
        if any(isinstance(part, (dict, list)) for part in identity):
            continue
        if identity in seen:
            place, first = _find_named(items, index, keys), _find_named(items, seen[identity], keys)
            related = ((first, "it occurs first here"),)
            shown, by = "/".join(map(str, identity)), "`, `".join(keys) or "value"
            is_hidden = name == "env" and isinstance(item, dict) and f"$({shown})" not in str(item.get("value"))
            advice = "delete the first one: containers get the last one" if is_hidden else "use different values"
            message = Sentence("`{}` occurs twice in `{}` as `{}`; {}", shown, name, by, advice)
            yield Problem("duplicate-item", message, place, related, category="schema")
        seen.setdefault(identity, index)


def _find_named(items: Sequence[Plain], index: int, keys: Mapping[str, Any]) -> Place:
    """Return the place of the value that identifies an item: that of its first key, or the item itself."""
    item, key = items[index], next(iter(keys), "")
    if isinstance(item, dict) and key in item:
        return At(item, key)
    return At(items, index)


_FIELDS = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": OBJECT_META}
_METADATA = MetadataFormat(PATH_SEGMENT_NAME)


def _with_embedded_object(check_value: Check) -> Check:
    """A check that also validates the version, the kind and the metadata of an embedded object."""

    def check(value: Plain, name: str, entry: Entry, problems: list[Problem]) -> None:
        check_value(value, name, entry, problems)
        if isinstance(value, dict):
            problems.extend(validate_object_metadata(value.get("metadata"), _METADATA))
            version, kind = value.get("apiVersion"), value.get("kind")
            if type(version) is str and (not version or version.count("/") > 1):
                message = Sentence("`{}` is not an API version; write `v1` or `group/version`", version)
                problems.append(Problem("invalid-value", message, At(value, "apiVersion"), category="schema"))
            if type(kind) is str and not is_dns_label_1035(kind.lower()):
                message = Sentence("`{}` is not a kind; in lower case, {}", kind, DNS_LABEL_1035)
                problems.append(Problem("invalid-value", message, At(value, "kind"), category="schema"))

    return check
