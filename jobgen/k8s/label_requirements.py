"""What selectors require of the labels of one node, and requirements that no node meets together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path, list_mappings
from jobgen.model.budget import Work, charge
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At

_SELECTOR, _AFFINITY = "`nodeSelector`", "the node affinity"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Requirement(NamedTuple):
    """What one entry of a selector requires of a label."""

    label: str
    operator: str
    values: frozenset[str]
    place: At
    source: str
    """Where it stands, as messages name it."""

    def describe(self) -> str:
        """Return what it requires, for a message."""
        values = " or ".join(f"`{value}`" for value in sorted(self.values))
        words = {
            "DoesNotExist": "no such label",
            "Exists": "the label",
            "Gt": f"more than {values}",
            "In": values,
            "Lt": f"less than {values}",
            "NotIn": f"none of {values}" if len(self.values) > 1 else f"not {values}",
        }
        return words[self.operator]

    def accepts(self, value: str) -> bool:
        """Return True if a node can have the label with a value."""
        if self.operator in ("Gt", "Lt"):
            bound = next(iter(self.values), "")
            if not (_is_integer(value) and _is_integer(bound)):
                return not _is_integer(bound)
            return int(value) > int(bound) if self.operator == "Gt" else int(value) < int(bound)
        return self.operator == "Exists" or (self.operator == "In") == (value in self.values)


class Contradiction(NamedTuple):
    """Two requirements of one label, of which a node can meet only one."""

    first: Requirement
    second: Requirement


def find_contradiction(spec: Mapping[str, Plain]) -> Contradiction | None:
    """Return requirements of a pod that no node meets together; None if some node can meet all of them.

    A node has to meet the selector, and one of the terms of the affinity.
    """
    required = as_mapping(get_path(spec, "affinity", "nodeAffinity", REQUIRED))
    selector = as_mapping(spec.get("nodeSelector"))
    own = [
        Requirement(str(label), "In", frozenset((as_text(value),)), At(selector, label), _SELECTOR)
        for label, value in selector.items()
    ]
    found = [
        _find_in_term((*own, *_list_requirements(term))) for term in list_mappings(required.get("nodeSelectorTerms"))
    ]
    return found[0] if found and all(found) else None


def _list_requirements(term: Mapping[str, Plain]) -> Iterator[Requirement]:
    for expression in list_mappings(term.get("matchExpressions")):
        operator = as_text(expression.get("operator"))
        if operator in ("DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"):
            place = At(expression, "values" if "values" in expression else "operator")
            values = frozenset(map(as_text, as_list(expression.get("values"))))
            yield Requirement(as_text(expression.get("key")), operator, values, place, _AFFINITY)


def _find_in_term(requirements: Iterable[Requirement]) -> Contradiction | None:
    by_label: dict[str, list[Requirement]] = {}
    for requirement in requirements:
        known = by_label.setdefault(requirement.label, [])
        charge(Work.PLACEMENT, sum(2 + len(each.values) + len(requirement.values) for each in known))
        other = next((each for each in known if _excludes(each, requirement)), None)
        if other is not None:
            return Contradiction(other, requirement)
        known.append(requirement)
    return None


def _excludes(one: Requirement, other: Requirement) -> bool:
    """Return True if no value of a label, and no missing label, meets two requirements."""
    for first, second in ((one, other), (other, one)):
        if first.operator == "In":
            # A label that is missing is in no list.
            return second.operator == "DoesNotExist" or not any(map(second.accepts, first.values))
        if first.operator == "DoesNotExist" and second.operator in ("Exists", "Gt", "Lt"):
            return True
    return False


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 20
