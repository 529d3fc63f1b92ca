"""Build validators from tables that map a field's name to its validator, so that only present fields cost time."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from jobgen.k8s.device_catalog import CatalogSource, no_catalog
from jobgen.k8s.nodes import as_text
from jobgen.k8s.releases import NEWEST_RELEASE, Release
from jobgen.model.data import Node, TracedList, TracedScalar, locatable, value_of
from jobgen.model.finding import Problem, quoted_values
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import NO_FIX, SuggestedFix, did_you_mean, suggest_value

# The pods of a job whose names are compared.
_MAX_NAMES = 1000
# The names of rules for objects where pods have a rule of their own.
_RULES_OF_OBJECTS = {"missing-pod-field": "missing-field", "unsupported-value": "invalid-value"}


class Validation(NamedTuple):
    """The pod or object that is validated: what validators of one part need to know of others, the problems so far."""

    metadata: Mapping[str, Node]
    spec: Mapping[str, Node]
    problems: list[Problem]
    volumes: Mapping[str, Mapping[str, Node]] = MappingProxyType({})
    restart_policy: Node = None
    name: str = ""
    needs_images: bool = True
    release: Release = NEWEST_RELEASE
    """The release of Kubernetes that validates."""
    category: str = "pod"
    """The category of the problems: `pod`, or `schema` for objects."""
    read_catalog: CatalogSource = no_catalog
    """Reads what is known of the cluster's devices."""
    is_template: bool = False
    """Whether the API server validates the template itself, before there are pods."""
    pod_count: int = 0
    """The number of pods whose names end in their index; `name` is that of the last one."""
    drops_nulls: bool = False
    """Whether the API server has dropped null from mappings, as it does in custom resources."""

    def report(
        self,
        rule: str,
        message: str,
        node: Node,
        fix: SuggestedFix = NO_FIX,
        values: tuple[str, ...] | None = None,
        *,
        at: Node = None,
    ) -> None:
        """Add a problem for which the API server rejects the pod or object, with its fix if there is one.

        `values` identify the problem in fingerprints where they are not those in backticks in the message; `at` is the
        node whose location is shown, if it is inside `node`.
        """
        if self.category == "schema":
            rule = _RULES_OF_OBJECTS.get(rule, rule)
        problem = Problem(rule, message, node, category=self.category, fix_steps=fix[0], safe=fix[1], evidence=values)
        self.problems.append(problem._replace(at=at) if at is not None else problem)

    def has_name(self, name: str) -> bool:
        """Return whether a pod of the template has this name."""
        base, _, index = name.rpartition("-")
        if self.pod_count and base == self.name.rpartition("-")[0]:
            return index in {str(number) for number in range(min(self.pod_count, _MAX_NAMES))}
        return name == self.name

    def is_true(self, field: str) -> bool:
        """Return whether a field of the pod spec is true."""
        return value_of(self.spec.get(field)) is True

    def iter_containers(self, *fields: str) -> Iterator[Mapping[str, Node]]:
        """Yield the containers in these lists of the pod spec."""
        for field in fields:
            yield from iter_mappings(self.spec.get(field))


Validator: TypeAlias = Callable[[str, Node, Mapping[str, Node], Validation], None]
"""Validates a field: its key, its value, the mapping that contains it, the pod. Items of a list get the list's key."""

ValidatorTable: TypeAlias = Mapping[str, Validator]


def validate_fields(mapping: Mapping[str, Node], table: ValidatorTable, pod: Validation) -> None:
    """Validate every field of the mapping that is in the table."""
    for key, value in mapping.items():
        validate = table.get(key)
        if validate is not None:
            validate(key, value, mapping, pod)


def validate_mapping(table: ValidatorTable, *required: str) -> Validator:
    """Return a validator for a mapping: its fields by the table, and its required fields."""

    def validate(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
        if isinstance(value, dict):
            validate_fields(value, table, pod)
            require_fields(f"`{key}`", value, required, key, pod)

    return validate


def validate_each(validate_item: Validator) -> Validator:
    """Return a validator for a list: the same validator for every item."""

    def validate(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
        if isinstance(value, list):
            for item in value:
                validate_item(key, item, owner, pod)

    return validate


def validate_all(*validators: Validator) -> Validator:
    """Return a validator that runs several validators on one value."""

    def validate(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
        for one in validators:
            one(key, value, owner, pod)

    return validate


def validate_enum(*values: str) -> Validator:
    """Return a validator for a string with fixed values; "" is one of them if the API server has a default for it."""
    known = frozenset(values)

    def validate(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
        found = value_of(value)
        if type(found) is str and found not in known:
            report_unsupported(key, value, values, pod)

    return validate


def report_unsupported(
    key: str, value: Node, values: tuple[str, ...], pod: Validation, original_values: tuple[str, ...] = ()
) -> None:
    """Report a value that is not one of the supported values, with the closest of them.

    `original_values` are those of the first release, which are in fingerprints.
    """
    known = [one for one in values if one]
    evidence = quoted_values(_describe_unsupported(key, value, original_values)) if original_values else None
    message = _describe_unsupported(key, value, known)
    pod.report("unsupported-value", message, value, suggest_value(value, known), evidence)


def _describe_unsupported(key: str, value: Node, known: Sequence[str]) -> str:
    found = as_text(value)
    return f"`{key}` is `{found}`, but must be {join_names(list(known), 'or')}{did_you_mean(found, list(known))}"


def validate_string(
    rule: str, noun: str, is_valid: Callable[[str], bool], hint: str, *, allow_empty: bool = True
) -> Validator:
    """Return a validator for a string; where `allow_empty`, an empty string means that the field is not set."""

    def validate(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
        found = value_of(value)
        if type(found) is str and (found or not allow_empty) and not is_valid(found):
            pod.report(rule, f"`{found}` is not a valid {noun}; {hint}", value)

    return validate


def validate_number(
    low: int, high: int | None = None, *, allow_zero: bool = False, rule: str = "out-of-range"
) -> Validator:
    """Return a validator for an integer; where `allow_zero`, 0 means that the field is not set."""
    bounds = f"at least {low}" if high is None else f"between {low} and {high}" if low < high else str(low)

    def validate(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
        found = value_of(value)
        if type(found) is not int or (allow_zero and found == 0):
            return
        if found < low or (high is not None and found > high):
            pod.report(rule, f"`{key}` must be {bounds}, got `{found}`", value)

    return validate


def require_fields(what: str, owner: Mapping[str, Node], names: tuple[str, ...], parent: Node, pod: Validation) -> None:
    """Report fields that are missing, null or empty."""
    for name in names:
        if is_empty(owner.get(name)):
            report_missing(what, owner, name, parent, pod)


def report_missing(what: str, owner: Mapping[str, Node], name: str, parent: Node, pod: Validation) -> None:
    """Report a missing field, at its empty value if there is one."""
    value = owner.get(name)
    node = owner or parent if value is None or value == {} else value
    pod.report("missing-pod-field", f"{what} requires `{name}`; set it", node, at=locatable(value, owner, parent))


def is_empty(value: Node) -> bool:
    """Return whether Kubernetes treats a value as not set; 0 and false are values."""
    found: Any = value_of(value)
    return found is None or found in ("", [], {})


def list_set_keys(owner: Mapping[str, Node], names: Container[str]) -> list[str]:
    """Return the keys of the mapping that are among the names and not null; the keys have locations."""
    return [key for key, value in owner.items() if key in names and is_set(value)]


def is_set(value: Node) -> bool:
    """Return whether a value is present and not null."""
    return value is not None and not (type(value) is TracedScalar and value.value is None)


def iter_mappings(value: Node) -> Iterator[Mapping[str, Node]]:
    """Yield the mappings in a list."""
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def iter_items(key: Node, value: Node) -> Iterator[tuple[Mapping[str, Node], Node]]:
    """Yield the mappings in a list, each with a node at its location; Kubernetes reads null as an empty mapping.

    `key` is the list's key, in case that the location of an empty item is not known.
    """
    if isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict):
                yield item, locatable(item, locate_item(key, value, index))
            elif value_of(item) is None:
                yield {}, item or key


def locate_item(key: Node, items: Sequence[Node], index: int) -> Node:
    """Return a node at the location of an item that has none itself, such as an empty mapping."""
    locations = items.item_locations if isinstance(items, TracedList) else []
    return TracedScalar(None, locations[index]) if index < len(locations) else key


def find_key(owner: Mapping[str, Node], name: str, parent: Node) -> Node:
    """Return the key of a field, which has a location; without the field the mapping itself or its parent."""
    return next((key for key in owner if key == name), locatable(owner, parent))


def get_key(owner: Mapping[str, Node], name: str) -> str:
    """Return the key of a field, which has a location; without the field its name."""
    return next((key for key in owner if key == name), name)


def iter_strings(value: Node) -> Iterator[tuple[str, Node]]:
    """Yield the strings in a list, each with its node."""
    if isinstance(value, list):
        for item in value:
            found = value_of(item)
            if type(found) is str:
                yield found, item


def iter_texts(value: Node) -> Iterator[tuple[str, Node]]:
    """Yield the strings in a list, each with its node; Kubernetes reads null as an empty string."""
    if isinstance(value, list):
        for item in value:
            found = value_of(item)
            if found is None or type(found) is str:
                yield found or "", item


def join_names(names: list[str], conjunction: str) -> str:
    """Return the names in backticks as one phrase: `a`, `b` and `c`."""
    quoted = [f"`{name}`" for name in names]
    return f" {conjunction} ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
