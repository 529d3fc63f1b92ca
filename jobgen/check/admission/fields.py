"""Validate the fields of pods and objects by tables: a field's name and what its value must fulfill.

A `Validator` validates the value of one field; a table maps the names of fields to validators, so only present fields
cost time. A `Check` validates a mapping as a whole: required fields, and fields that depend on each other. Values of a
wrong type are skipped, because the schema reports them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

from jobgen.check.admission.names import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    LABEL_KEY,
    PATH_SEGMENT,
    SUBDOMAIN_NAME,
    NameFormat,
    is_dns_label,
    is_dns_subdomain,
    is_label_key,
    is_path_segment,
)
from jobgen.k8s.devices import CatalogSource, no_catalog
from jobgen.k8s.feature_gates import is_on
from jobgen.k8s.kinds import NEWEST_RELEASE, Release
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, find_nodes
from jobgen.model.data import Plain
from jobgen.model.finding import Problem
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step
from jobgen.model.place import At, Place, identify, node_at
from jobgen.model.sentence import Sentence, Words, values_of
from jobgen.model.suggest import NO_FIX, SuggestedFix, ask_for, find_closest, suggest_value

# The pods of a job whose names are compared.
_MAX_NAMES = 1000

Fields: TypeAlias = Mapping[str, Plain]
"""A mapping of a manifest."""

Entry: TypeAlias = "tuple[Any, Any] | At"
"""What holds a key or an item, and the key or the number of the item; without a key, the holder itself.

A plain tuple costs no call where nothing is wrong. A problem of an entry is shown at the key, or at the item.
"""


class Subject(NamedTuple):
    """What is validated: the category of its problems, and the rules for what all subjects can lack or have wrong."""

    category: str
    missing: str
    unsupported: str


POD = Subject("pod", missing="missing-pod-field", unsupported="unsupported-value")
OBJECT = Subject("schema", missing="missing-field", unsupported="invalid-value")


_SHORT_MODES = {"RWO": "ReadWriteOnce", "ROX": "ReadOnlyMany", "RWX": "ReadWriteMany", "RWOP": "ReadWriteOncePod"}
"""What kubectl prints for the access modes of a volume."""


class Validation(NamedTuple):
    """One validation of a pod or an object: what validators of one part need to know of others, the problems so far."""

    metadata: Fields
    spec: Fields
    problems: list[Problem]
    subject: Subject = OBJECT
    release: Release = NEWEST_RELEASE
    """The release of Kubernetes that validates."""
    read_catalog: CatalogSource = no_catalog
    """Reads what is known of the cluster's devices."""
    volumes: Mapping[str, Fields] = MappingProxyType({})
    restart_policy: object = None
    name: str = ""
    needs_images: bool = True
    is_template: bool = False
    """True if the API server validates the template itself, before there are pods."""
    pod_count: int = 0
    """The number of pods whose names end in their index; `name` is that of the last one."""
    drops_nulls: bool = False
    """True if the API server has dropped null from mappings, as it does in custom resources."""
    policy_place: Place = None
    """Where the restart policy stands, if not in the pod spec."""

    def report(
        self,
        rule: str,
        message: Words,
        place: Place | Entry,
        fix: SuggestedFix = NO_FIX,
        values: tuple[str, ...] | None = None,
        *,
        at: Place = None,
        meant: str = "",
    ) -> None:
        """Add a problem for which the API server rejects the pod or object, with its fix if there is one.

        `values` identify the problem in fingerprints where they are not those in backticks in the message; `at` is the
        place that is shown, if it is inside `place`; `meant` is the name or value that was probably meant.
        """
        category, node = self.subject.category, find_place(place)
        problem = Problem(rule, message, node, category=category, fix_steps=fix[0], safe=fix[1], evidence=values)
        self.problems.append(problem._replace(at=at, meant=meant) if at is not None or meant else problem)

    def invalid(self, message: Words, place: Place | Entry, meant: str = "") -> None:
        """Report a value that is not valid, or not beside others."""
        self.report("invalid-value", message, place, meant=meant)

    def report_missing(self, what: str, owner: Fields, name: str, entry: Place | Entry, other: str = "") -> None:
        """Report a missing field, at its empty value if there is one; `other` is what can be done instead.

        `entry` is that of the mapping, or of the list that it is an item of.
        """
        at: Place = None
        node: Place = owner or find_place(entry)
        if not owner:
            at = _find_empty(owner, entry)
        elif name in owner and owner[name] != {}:
            node = at = At(owner, name)
        elif name in owner:
            at = At(owner, name)
        rule = self.subject.missing
        if not owner and what in _ITEMS and self.subject is POD:
            # Nothing else can be wrong with an empty item.
            if not any(known.rule == rule and identify(known.node) == identify(node) for known in self.problems):
                message = Sentence("this item is empty, but {} requires `{}`; remove it, or fill it in", what, name)
                self.report(rule, message, node, values=(name,), at=at)
            return
        self.report(rule, Sentence("{} requires `{}`; set it{}", what, name, other), node, at=at)

    def require_fields(self, what: str, owner: Fields, names: tuple[str, ...], entry: Place | Entry) -> None:
        """Report fields that are missing, null or empty."""
        for name in names:
            if is_empty(owner.get(name)):
                self.report_missing(what, owner, name, entry)

    def report_unsupported(
        self, key: str, place: Place | Entry, values: tuple[str, ...], original_values: tuple[str, ...] = ()
    ) -> None:
        """Report a value that is not one of the supported values, with the closest of them.

        `original_values` are those of the first release, which are in fingerprints.
        """
        place = find_place(place)
        found, known = as_text(node_at(place)), [one for one in values if one]

        def describe(names: list[str], meant: str) -> str:
            return f"`{key}` is `{found}`, but must be {join_names(names, 'or')}{ask_for(meant)}"

        original, meant = list(original_values), find_closest(found, known)
        if _SHORT_MODES.get(found) in known:
            meant = _SHORT_MODES[found]
        evidence = values_of(describe(original, find_closest(found, original))) if original else None
        fix = suggest_value(place, known)
        self.report(self.subject.unsupported, describe(known, meant), place, fix, evidence, meant=meant)

    def has_name(self, name: str) -> bool:
        """Return True if a pod of the template has this name."""
        base, _, index = name.rpartition("-")
        if self.pod_count and base == self.name.rpartition("-")[0]:
            return index in {str(number) for number in range(min(self.pod_count, _MAX_NAMES))}
        return name == self.name

    def is_true(self, field: str) -> bool:
        """Return True if a field of the pod spec is true."""
        return self.spec.get(field) is True

    def iter_containers(self, *fields: str) -> Iterator[Fields]:
        """Yield the containers in these lists of the pod spec."""
        for field in fields:
            yield from list_mappings(self.spec.get(field))


Validator: TypeAlias = Callable[[Any, Plain, Any, Validation], None]
"""Validates a field: its key, its value, the mapping that contains it; or an item of a list, with its number."""

Table: TypeAlias = Mapping[str, Validator]


Check: TypeAlias = Callable[[Fields, Entry, Validation], None]
"""Validates a mapping; a problem of an empty one is shown at its entry."""


def validate_fields(owner: Fields, table: Table, run: Validation) -> None:
    """Validate every field of the mapping that is in the table."""
    for key, value in owner.items():
        if key in table:
            table[key](key, value, owner, run)


def mapping(table: Table, *also: str | Check, what: str = "") -> Validator:
    """Return a validator for a mapping: its fields by the table, the names of required fields, and checks.

    Without `what`, messages name it by its key.
    """
    check = fields(what, table, *also)

    def validate(key: str, value: Plain, owner: Fields, run: Validation) -> None:
        if isinstance(value, dict):
            check(value, (owner, key), run)

    return validate


def fields(what: str, table: Table, *also: str | Check) -> Check:
    """Return a check of a mapping: its fields by the table, the names of fields that `what` requires, and checks.

    Without `what`, messages name the mapping by its key.
    """
    required = tuple(one for one in also if isinstance(one, str))
    checks = tuple(one for one in also if not isinstance(one, str))

    def check_all(owner: Fields, entry: Entry, run: Validation) -> None:
        if table:
            validate_fields(owner, table, run)
        if required:
            run.require_fields(what or f"`{entry[1]}`", owner, required, entry)
        for check in checks:
            check(owner, entry, run)

    return check_all


def inside(field: str, what: str, table: Table, *also: str | Check) -> Check:
    """Return a check of the mapping in a field, which counts as empty if it is missing."""
    check = fields(what, table, *also)

    def check_inside(owner: Fields, entry: Entry, run: Validation) -> None:
        check(as_mapping(owner.get(field)), find_entry(owner, field, entry), run)

    return check_inside


def items(what: str, table: Table, *also: str | Check, unique: tuple[str, str] | None = None) -> Validator:
    """Return a validator for a list of mappings, where null is an empty one.

    `unique` is a field by which items differ, and the message if two are equal.
    """
    check = fields(what, table, *also)

    def validate(key: str, value: Plain, owner: Fields, run: Validation) -> None:
        seen: set[str] = set()
        for item, entry in iter_items(value):
            check(item, entry, run)
            if unique:
                found = as_text(item.get(unique[0]))
                if found and found in seen:
                    run.report("duplicate-item", unique[1].format(found), At(item, unique[0]))
                seen.add(found)

    return validate


def at_most(most: int, *validators: Validator, at_key: bool = True) -> Validator:
    """Return a validator for the size of a list; only if it is not too long, other validators follow."""

    def validate(key: str, value: Plain, owner: Fields, run: Validation) -> None:
        size = len(value) if isinstance(value, list) else 0
        if size > most:
            message = Sentence("`{}` has `{}` items; it can have at most {}", key, size, most)
            run.report("out-of-range", message, At(owner, key, is_key=at_key))
            return
        for one in validators:
            one(key, value, owner, run)

    return validate


def texts(
    *known: str, twice: str = "", is_valid: Callable[[str], bool] | None = None, fault: tuple[str, str] = ("", "")
) -> Validator:
    """Return a validator for a list of strings, where null is an empty one.

    Each is one of the known values, or valid, else `fault` is the rule and the message. `twice` is the message for two
    that are equal.
    """
    rule, message = fault

    def validate(key: str, value: Plain, owner: Fields, run: Validation) -> None:
        seen: set[str] = set()
        for found, entry in iter_texts(value):
            if known and found not in known:
                run.report_unsupported(key, entry, known)
            elif is_valid and not is_valid(found):
                run.report(rule, message.format(found), entry)
            elif twice and found in seen:
                run.report("duplicate-item", twice.format(found), entry)
            seen.add(found)

    return validate


def each(validate_item: Validator) -> Validator:
    """Return a validator for a list: the same validator for every item."""

    def validate(key: str, value: Plain, owner: Fields, run: Validation) -> None:
        if isinstance(value, list):
            for index, item in enumerate(value):
                validate_item(index, item, value, run)

    return validate


def all_of(*validators: Validator) -> Validator:
    """Return a validator that runs several validators on one value."""

    def validate(key: str, value: Plain, owner: Fields, run: Validation) -> None:
        for one in validators:
            one(key, value, owner, run)

    return validate


def since(release: Release, validator: Validator) -> Validator:
    """Return a validator for a field that the API server drops before a release."""

    def validate(key: str, value: Plain, owner: Fields, run: Validation) -> None:
        if run.release >= release:
            validator(key, value, owner, run)

    return validate


def gated(gate: str, validator: Validator) -> Validator:
    """Return a validator for a field that the API server drops if a feature gate is off by default."""

    def validate(key: str, value: Plain, owner: Fields, run: Validation) -> None:
        if is_on(gate, run.release):
            validator(key, value, owner, run)

    return validate


def one_of(*values: str, name: str = "") -> Validator:
    """Return a validator for a string with fixed values; "" is one of them if the API server has a default for it.

    Messages name it by its key, or an item of a list by the `name`.
    """
    known = frozenset(values)

    def validate(key: str, value: Plain, owner: Fields, run: Validation) -> None:
        if type(value) is str and value not in known:
            run.report_unsupported(name or key, At(owner, key), values)

    return validate


def text(rule: str, noun: str, is_valid: Callable[[str], bool], hint: str, *, allow_empty: bool = True) -> Validator:
    """Return a validator for a string; where `allow_empty`, an empty string means that the field is not set."""
    return valid_text(rule, f"`{{found}}` is not a valid {noun}; {hint}", is_valid, allow_empty=allow_empty)


def valid_text(rule: str, message: str, is_valid: Callable[[str], bool], *, allow_empty: bool = True) -> Validator:
    """Return a validator like `text` with a message of its own, for `{key}` and `{found}`."""

    def validate(key: str, value: Plain, owner: Fields, run: Validation) -> None:
        if type(value) is str and (value or not allow_empty) and not is_valid(value):
            run.report(rule, message.format(key=key, found=value), At(owner, key))

    return validate


dns_subdomain = partial(text, is_valid=is_dns_subdomain, hint=DNS_SUBDOMAIN)
dns_label = partial(text, is_valid=is_dns_label, hint=DNS_LABEL)
qualified_name = partial(text, is_valid=is_label_key, hint=LABEL_KEY)
path_segment = partial(text, is_valid=is_path_segment, hint=PATH_SEGMENT)


def number(
    low: int, high: int | None = None, *, allow_zero: bool = False, rule: str = "out-of-range", name: str = ""
) -> Validator:
    """Return a validator for an integer; where `allow_zero`, 0 means that the field is not set.

    Messages name it by its key, or an item of a list by the `name`.
    """
    bounds = f"at least {low}" if high is None else f"between {low} and {high}" if low < high else str(low)

    def validate(key: str, value: Plain, owner: Fields, run: Validation) -> None:
        if type(value) is not int or (allow_zero and value == 0):
            return
        if value < low or (high is not None and value > high):
            run.report(rule, Sentence("`{}` must be {}, got `{}`", name or key, bounds, value), At(owner, key))

    return validate


def require_set(what: str, *names: str) -> Check:
    """Return a check that reports fields that are missing or null; without `what`, by the mapping's key."""

    def check(owner: Fields, entry: Entry, run: Validation) -> None:
        for name in names:
            if not is_set(owner.get(name)):
                run.report_missing(what or f"`{entry[1]}`", owner, name, entry)

    return check


def choice(what: str, field: str, *values: str) -> Check:
    """Return a check of a required field that has one of some values."""

    def check(owner: Fields, entry: Entry, run: Validation) -> None:
        found = as_text(owner.get(field))
        if is_empty(owner.get(field)):
            run.report_missing(what, owner, field, entry)
        elif found and found not in values:
            run.report_unsupported(field, At(owner, field), values)

    return check


def is_empty(value: Plain) -> bool:
    """Return True if Kubernetes treats a value as not set; 0 and false are values."""
    return value is None or value in ("", [], {})


def list_set_keys(owner: Fields, names: Container[str]) -> list[str]:
    """Return the keys of the mapping that are among the names and not null."""
    return [key for key, value in owner.items() if key in names and is_set(value)]


def is_set(value: Plain) -> bool:
    """Return True if a value is present and not null."""
    return value is not None


def iter_mappings(value: Plain) -> Iterator[Fields]:
    """Yield the mappings in a list."""
    return iter(list_mappings(value))


def list_mappings(value: Plain) -> list[Fields]:
    """Return the mappings in a list."""
    return [item for item in value if type(item) is dict or isinstance(item, dict)] if isinstance(value, list) else []


def iter_items(value: Plain) -> Iterator[tuple[Fields, Entry]]:
    """Yield the mappings in a list, each with its entry; Kubernetes reads null as an empty mapping."""
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, dict):
            yield item, (value, index)
        elif item is None:
            yield {}, (value, index)


def find_place(place: Place | Entry) -> Place:
    """Return the place of an entry; a place itself is returned as it is."""
    if type(place) is not tuple:
        return place
    holder, key = place
    return holder if key is None else At(holder, key, is_key=isinstance(holder, dict))


def find_entry(owner: Fields, name: str, entry: Entry) -> Entry:
    """Return the entry of a field; without the field the mapping itself, or its entry if it is empty."""
    return (owner, name) if name in owner else (owner, None) if owner else _find_empty(owner, entry) or entry


def find_mapping(owner: Fields, entry: Place | Entry) -> Place:
    """Return a mapping; an empty one has a place only where it stands, or where it would stand."""
    return owner or _find_empty(owner, entry) or find_place(entry)


def find_value(owner: Fields, name: str, entry: Entry) -> Place:
    """Return the place of a value; without the field that of the mapping."""
    return At(owner, name) if name in owner else find_mapping(owner, entry)


def _find_empty(owner: Fields, entry: Place | Entry) -> At | None:
    """Return the place of an empty mapping, if it is the value of an entry, or an item of that value."""
    if type(entry) is not tuple:
        return None
    holder, key = entry
    value = None if key is None else holder[key] if isinstance(holder, list) else holder.get(key)
    if value is owner:
        return At(holder, key)
    return next((At(value, index) for index, item in enumerate(as_list(value)) if item is owner), None)


def iter_strings(value: Plain) -> Iterator[tuple[str, Plain]]:
    """Yield the strings in a list, each with its node; Kubernetes reads null as an empty string."""
    nodes = value if isinstance(value, list) else ()
    return ((found or "", node) for node in nodes if (found := node) is None or type(found) is str)


def find_places(node: Plain, steps: Sequence[Step]) -> Iterator[At]:
    """Yield the places of the nodes at a path, whose last step is a key or `*`."""
    *before, last = steps
    for holder in find_nodes(node, before):
        if last != "*":
            keys: Iterable[Any] = [last] if isinstance(holder, dict) and last in holder else []
        else:
            keys = holder if isinstance(holder, dict) else range(len(as_list(holder)))
        yield from (At(holder, key) for key in keys)


def list_text_places(node: Plain) -> list[tuple[str, At]]:
    """Return the strings in a list, each with its place; Kubernetes reads null as an empty string."""
    values = enumerate(as_list(node))
    return [(value or "", At(node, index)) for index, value in values if value is None or type(value) is str]


def enumerate_mappings(node: Plain) -> list[tuple[int, dict[str, Plain]]]:
    """Return the mappings among the items of a list, each with its index."""
    return [(index, item) for index, item in enumerate(as_list(node)) if isinstance(item, dict)]


def iter_texts(value: Plain) -> Iterator[tuple[str, Entry]]:
    """Yield the strings in a list, each with its entry; Kubernetes reads null as an empty string."""
    nodes = enumerate(value if isinstance(value, list) else ())
    return ((found or "", (value, index)) for index, node in nodes if (found := node) is None or type(found) is str)


_ITEMS = frozenset(("a container", "a mount", "a port", "a sysctl", "a variable", "a volume"))
"""What the items of lists are called in messages."""


def join_names(names: list[str], conjunction: str) -> str:
    """Return the names in backticks as one phrase: `a`, `b` and `c`."""
    quoted = [f"`{name}`" for name in names]
    return f" {conjunction} ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


# What is known about validating one kind, and checks that many kinds share.


class Kind(NamedTuple):
    """How objects of a kind are validated; the check gets the whole object."""

    check: Check
    name_format: NameFormat = SUBDOMAIN_NAME
    """The format of the names of its objects."""
    older_name_format: tuple[Release, NameFormat] | None = None
    """The format before a release, if it differs."""


def spec(what: str, table: Table, *also: str | Check) -> Check:
    """Return a check of the `spec` of an object, which counts as empty if it is missing."""
    return inside("spec", what, table, *also)


def required_spec(what: str, table: Table, *also: str | Check) -> Check:
    """Return a check of the `spec` of an object that cannot be without one."""
    check = spec(what, table, *also)

    def check_spec(obj: Fields, entry: Entry, run: Validation) -> None:
        if run.spec:
            check(obj, entry, run)
        elif isinstance(obj.get("spec"), dict) or not is_set(obj.get("spec")):
            run.report("missing-field", "the object requires `spec`; set it", find_entry(obj, "spec", (obj, None)))

    return check_spec


def validate_fixed_name(wanted: str, what: str, run: Validation) -> None:
    """Validate the name of an object, and its prefix if there is one: what other fields say together."""
    for field in ("name", "generateName"):
        name = as_text(run.metadata.get(field))
        if name and name != wanted:
            message = Sentence("`{}` is `{}`, but must be {}; write `{}`", field, name, what, wanted)
            run.report("invalid-name", message, At(run.metadata, field))


def validate_port(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    """Validate the number of a port."""
    found = as_integer(value)
    if found is not None and not 0 < found < 65536:
        run.report(
            "invalid-port", Sentence("`{}` is `{}`, but must be between 1 and 65535", key, found), At(owner, key)
        )


count = number(0)
object_name = dns_subdomain("invalid-object-name", "object name")
namespace_name = dns_label("invalid-object-name", "namespace name")
label_key = qualified_name("invalid-label", "label key")
api_group = dns_subdomain("invalid-value", "API group", allow_empty=False)
