"""Validate the fields of pods and objects by tables: a field's name and what its value must fulfill.

A `Validator` validates the value of one field; a table maps the names of fields to validators, so only present fields
cost time. A `Check` validates a mapping as a whole: required fields, and fields that depend on each other. Values of a
wrong type are skipped, because the schema reports them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
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
from jobgen.k8s.nodes import as_integer, as_mapping, as_text
from jobgen.model.data import Node, TracedList, TracedScalar, locatable, value_of
from jobgen.model.finding import Problem, quoted_values
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import NO_FIX, SuggestedFix, ask_for, find_closest, suggest_value

# The pods of a job whose names are compared.
_MAX_NAMES = 1000

Fields: TypeAlias = Mapping[str, Node]
"""A mapping of a manifest."""


class Subject(NamedTuple):
    """What is validated: the category of its problems, and the rules for what all subjects can lack or have wrong."""

    category: str
    missing: str
    unsupported: str


POD = Subject("pod", missing="missing-pod-field", unsupported="unsupported-value")
OBJECT = Subject("schema", missing="missing-field", unsupported="invalid-value")


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
    restart_policy: Node = None
    name: str = ""
    needs_images: bool = True
    is_template: bool = False
    """True if the API server validates the template itself, before there are pods."""
    pod_count: int = 0
    """The number of pods whose names end in their index; `name` is that of the last one."""
    drops_nulls: bool = False
    """True if the API server has dropped null from mappings, as it does in custom resources."""

    def report(
        self,
        rule: str,
        message: str,
        node: Node,
        fix: SuggestedFix = NO_FIX,
        values: tuple[str, ...] | None = None,
        *,
        at: Node = None,
        meant: str = "",
    ) -> None:
        """Add a problem for which the API server rejects the pod or object, with its fix if there is one.

        `values` identify the problem in fingerprints where they are not those in backticks in the message; `at` is the
        node whose location is shown, if it is inside `node`; `meant` is the name or value that was probably meant.
        """
        category = self.subject.category
        problem = Problem(rule, message, node, category=category, fix_steps=fix[0], safe=fix[1], evidence=values)
        self.problems.append(problem._replace(at=at, meant=meant) if at is not None or meant else problem)

    def invalid(self, message: str, node: Node, meant: str = "") -> None:
        """Report a value that is not valid, or not beside others."""
        self.report("invalid-value", message, node, meant=meant)

    def report_missing(self, what: str, owner: Fields, name: str, place: Node, other: str = "") -> None:
        """Report a missing field, at its empty value if there is one; `other` is what can be done instead."""
        value = owner.get(name)
        node = owner or place if value is None or value == {} else value
        message = f"{what} requires `{name}`; set it{other}"
        self.report(self.subject.missing, message, node, at=locatable(value, owner, place))

    def require_fields(self, what: str, owner: Fields, names: tuple[str, ...], place: Node) -> None:
        """Report fields that are missing, null or empty."""
        for name in names:
            if is_empty(owner.get(name)):
                self.report_missing(what, owner, name, place)

    def report_unsupported(
        self, key: str, value: Node, values: tuple[str, ...], original_values: tuple[str, ...] = ()
    ) -> None:
        """Report a value that is not one of the supported values, with the closest of them.

        `original_values` are those of the first release, which are in fingerprints.
        """
        found, known = as_text(value), [one for one in values if one]

        def describe(names: list[str], meant: str) -> str:
            return f"`{key}` is `{found}`, but must be {join_names(names, 'or')}{ask_for(meant)}"

        original, meant = list(original_values), find_closest(found, known)
        evidence = quoted_values(describe(original, find_closest(found, original))) if original else None
        fix = suggest_value(value, known)
        self.report(self.subject.unsupported, describe(known, meant), value, fix, evidence, meant=meant)

    def has_name(self, name: str) -> bool:
        """Return True if a pod of the template has this name."""
        base, _, index = name.rpartition("-")
        if self.pod_count and base == self.name.rpartition("-")[0]:
            return index in {str(number) for number in range(min(self.pod_count, _MAX_NAMES))}
        return name == self.name

    def is_true(self, field: str) -> bool:
        """Return True if a field of the pod spec is true."""
        return value_of(self.spec.get(field)) is True

    def iter_containers(self, *fields: str) -> Iterator[Fields]:
        """Yield the containers in these lists of the pod spec."""
        for field in fields:
            yield from list_mappings(self.spec.get(field))


Validator: TypeAlias = Callable[[str, Node, Fields, Validation], None]
"""Validates a field: its key, its value, the mapping that contains it. Items of a list get the list's key."""

Table: TypeAlias = Mapping[str, Validator]


Check: TypeAlias = Callable[[Fields, Node, Validation], None]
"""Validates a mapping; a problem of an empty one is shown at the node: its key, or its place in a list."""


def validate_fields(owner: Fields, table: Table, run: Validation) -> None:
    """Validate every field of the mapping that is in the table."""
    for key, value in owner.items():
        if key in table:
            table[key](key, value, owner, run)


def mapping(table: Table, *also: str | Check) -> Validator:
    """Return a validator for a mapping: its fields by the table, the names of required fields, and checks."""
    check = fields("", table, *also)

    def validate(key: str, value: Node, owner: Fields, run: Validation) -> None:
        if isinstance(value, dict):
            check(value, key, run)

    return validate


def fields(what: str, table: Table, *also: str | Check) -> Check:
    """Return a check of a mapping: its fields by the table, the names of fields that `what` requires, and checks.

    Without `what`, messages name the mapping by its key.
    """
    required = tuple(one for one in also if isinstance(one, str))
    checks = tuple(one for one in also if not isinstance(one, str))

    def check_all(owner: Fields, place: Node, run: Validation) -> None:
        if table:
            validate_fields(owner, table, run)
        if required:
            run.require_fields(what or f"`{place}`", owner, required, place)
        for check in checks:
            check(owner, place, run)

    return check_all


def inside(field: str, what: str, table: Table, *also: str | Check) -> Check:
    """Return a check of the mapping in a field, which counts as empty if it is missing."""
    check = fields(what, table, *also)

    def check_inside(owner: Fields, place: Node, run: Validation) -> None:
        check(as_mapping(owner.get(field)), find_key(owner, field, place), run)

    return check_inside


def items(what: str, table: Table, *also: str | Check, unique: tuple[str, str] | None = None) -> Validator:
    """Return a validator for a list of mappings, where null is an empty one.

    `unique` is a field by which items differ, and the message if two are equal.
    """
    check = fields(what, table, *also)

    def validate(key: str, value: Node, owner: Fields, run: Validation) -> None:
        seen: set[str] = set()
        for item, place in iter_items(key, value):
            check(item, place, run)
            if unique:
                found = as_text(item.get(unique[0]))
                if found and found in seen:
                    run.report("duplicate-item", unique[1].format(found), item[unique[0]])
                seen.add(found)

    return validate


def at_most(most: int, *validators: Validator, at_key: bool = True) -> Validator:
    """Return a validator for the size of a list; only if it is not too long, other validators follow."""

    def validate(key: str, value: Node, owner: Fields, run: Validation) -> None:
        size = len(value) if isinstance(value, list) else 0
        if size > most:
            message = f"`{key}` has `{size}` items; it can have at most {most}"
            run.report("out-of-range", message, key if at_key else value)
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

    def validate(key: str, value: Node, owner: Fields, run: Validation) -> None:
        seen: set[str] = set()
        for found, node in iter_strings(value):
            if known and found not in known:
                run.report_unsupported(key, node, known)
            elif is_valid and not is_valid(found):
                run.report(rule, message.format(found), node)
            elif twice and found in seen:
                run.report("duplicate-item", twice.format(found), node)
            seen.add(found)

    return validate


def each(validate_item: Validator) -> Validator:
    """Return a validator for a list: the same validator for every item."""

    def validate(key: str, value: Node, owner: Fields, run: Validation) -> None:
        if isinstance(value, list):
            for item in value:
                validate_item(key, item, owner, run)

    return validate


def all_of(*validators: Validator) -> Validator:
    """Return a validator that runs several validators on one value."""

    def validate(key: str, value: Node, owner: Fields, run: Validation) -> None:
        for one in validators:
            one(key, value, owner, run)

    return validate


def since(release: Release, validator: Validator) -> Validator:
    """Return a validator for a field that the API server drops before a release."""

    def validate(key: str, value: Node, owner: Fields, run: Validation) -> None:
        if run.release >= release:
            validator(key, value, owner, run)

    return validate


def gated(gate: str, validator: Validator) -> Validator:
    """Return a validator for a field that the API server drops if a feature gate is off by default."""

    def validate(key: str, value: Node, owner: Fields, run: Validation) -> None:
        if is_on(gate, run.release):
            validator(key, value, owner, run)

    return validate


def one_of(*values: str) -> Validator:
    """Return a validator for a string with fixed values; "" is one of them if the API server has a default for it."""
    known = frozenset(values)

    def validate(key: str, value: Node, owner: Fields, run: Validation) -> None:
        found = value_of(value)
        if type(found) is str and found not in known:
            run.report_unsupported(key, value, values)

    return validate


def text(rule: str, noun: str, is_valid: Callable[[str], bool], hint: str, *, allow_empty: bool = True) -> Validator:
    """Return a validator for a string; where `allow_empty`, an empty string means that the field is not set."""
    return valid_text(rule, f"`{{found}}` is not a valid {noun}; {hint}", is_valid, allow_empty=allow_empty)


def valid_text(rule: str, message: str, is_valid: Callable[[str], bool], *, allow_empty: bool = True) -> Validator:
    """Return a validator like `text` with a message of its own, for `{key}` and `{found}`."""

    def validate(key: str, value: Node, owner: Fields, run: Validation) -> None:
        found = value_of(value)
        if type(found) is str and (found or not allow_empty) and not is_valid(found):
            run.report(rule, message.format(key=key, found=found), value)

    return validate


dns_subdomain = partial(text, is_valid=is_dns_subdomain, hint=DNS_SUBDOMAIN)
dns_label = partial(text, is_valid=is_dns_label, hint=DNS_LABEL)
qualified_name = partial(text, is_valid=is_label_key, hint=LABEL_KEY)
path_segment = partial(text, is_valid=is_path_segment, hint=PATH_SEGMENT)


def number(low: int, high: int | None = None, *, allow_zero: bool = False, rule: str = "out-of-range") -> Validator:
    """Return a validator for an integer; where `allow_zero`, 0 means that the field is not set."""
    bounds = f"at least {low}" if high is None else f"between {low} and {high}" if low < high else str(low)

    def validate(key: str, value: Node, owner: Fields, run: Validation) -> None:
        found = value_of(value)
        if type(found) is not int or (allow_zero and found == 0):
            return
        if found < low or (high is not None and found > high):
            run.report(rule, f"`{key}` must be {bounds}, got `{found}`", value)

    return validate


def require_set(what: str, *names: str) -> Check:
    """Return a check that reports fields that are missing or null; without `what`, by the mapping's key."""

    def check(owner: Fields, place: Node, run: Validation) -> None:
        for name in names:
            if not is_set(owner.get(name)):
                run.report_missing(what or f"`{place}`", owner, name, place)

    return check


def choice(what: str, field: str, *values: str) -> Check:
    """Return a check of a required field that has one of some values."""

    def check(owner: Fields, place: Node, run: Validation) -> None:
        found = as_text(owner.get(field))
        if is_empty(owner.get(field)):
            run.report_missing(what, owner, field, place)
        elif found and found not in values:
            run.report_unsupported(field, owner[field], values)

    return check


def is_empty(value: Node) -> bool:
    """Return True if Kubernetes treats a value as not set; 0 and false are values."""
    found: Any = value_of(value)
    return found is None or found in ("", [], {})


def list_set_keys(owner: Fields, names: Container[str]) -> list[str]:
    """Return the keys of the mapping that are among the names and not null; the keys have locations."""
    return [key for key, value in owner.items() if key in names and is_set(value)]


def is_set(value: Node) -> bool:
    """Return True if a value is present and not null."""
    return value is not None and not (type(value) is TracedScalar and value.value is None)


def iter_mappings(value: Node) -> Iterator[Fields]:
    """Yield the mappings in a list."""
    return iter(list_mappings(value))


def list_mappings(value: Node) -> list[Fields]:
    """Return the mappings in a list."""
    return [item for item in value if type(item) is dict or isinstance(item, dict)] if isinstance(value, list) else []


def iter_items(key: Node, value: Node) -> Iterator[tuple[Fields, Node]]:
    """Yield the mappings in a list, each with a node at its location; Kubernetes reads null as an empty mapping.

    `key` is the list's key, in case that the location of an empty item is not known.
    """
    locations = value.item_locations if isinstance(value, TracedList) else []
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, dict):
            place: Node = TracedScalar(None, locations[index]) if index < len(locations) else key
            yield item, locatable(item, place)
        elif value_of(item) is None:
            yield {}, item or key


def find_key(owner: Fields, name: str, parent: Node) -> Node:
    """Return the key of a field, which has a location; without the field the mapping itself or its parent."""
    return next((key for key in owner if key == name), locatable(owner, parent))


def get_key(owner: Fields, name: str) -> str:
    """Return the key of a field, which has a location; without the field its name."""
    return next((key for key in owner if key == name), name)


def iter_strings(value: Node) -> Iterator[tuple[str, Node]]:
    """Yield the strings in a list, each with its node; Kubernetes reads null as an empty string."""
    nodes = value if isinstance(value, list) else ()
    return ((found or "", node) for node in nodes if (found := value_of(node)) is None or type(found) is str)


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

    def check_spec(obj: Fields, place: Node, run: Validation) -> None:
        if run.spec:
            check(obj, place, run)
        elif isinstance(obj.get("spec"), dict) or not is_set(obj.get("spec")):
            run.report("missing-field", "the object requires `spec`; set it", find_key(obj, "spec", obj))

    return check_spec


def validate_fixed_name(wanted: str, what: str, run: Validation) -> None:
    """Validate the name of an object, and its prefix if there is one: what other fields say together."""
    for field in ("name", "generateName"):
        name = as_text(run.metadata.get(field))
        if name and name != wanted:
            message = f"`{field}` is `{name}`, but must be {what}; write `{wanted}`"
            run.report("invalid-name", message, run.metadata[field])


def validate_port(key: str, value: Node, owner: Fields, run: Validation) -> None:
    """Validate the number of a port."""
    found = as_integer(value)
    if found is not None and not 0 < found < 65536:
        run.report("invalid-port", f"`{key}` is `{found}`, but must be between 1 and 65535", value)


count = number(0)
object_name = dns_subdomain("invalid-object-name", "object name")
namespace_name = dns_label("invalid-object-name", "namespace name")
label_key = qualified_name("invalid-label", "label key")
api_group = dns_subdomain("invalid-value", "API group", allow_empty=False)
