"""Type-check policies against the kinds that they match, as the API server does after it accepted them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from jobgen.check.cel.admission_scope import AdmissionScope
from jobgen.check.schema.cel_types import declare_object
from jobgen.model.finding import Problem, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, identify
from jobgen.model.sentence import Sentence

MAX_TYPES = 10
"""The API server checks a rule against no more kinds than this."""


RULE = "invalid-policy"


class Resource(NamedTuple):
    """A kind with the name that it has in resource rules."""

    group: str
    version: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        """The version with the group."""
        return f"{self.group}/{self.version}" if self.group else self.version


FindSchema = Callable[[str, str], dict[str, Any] | None]


def find_type_problems(
    document: Mapping[str, Any], resources: Sequence[Resource], find_schema: FindSchema
) -> Iterator[Problem]:
    """The warnings of the API server for a policy that it accepts, each on its expression."""
    spec = document["spec"]
    items = [item for field in ("variables", "validations") for item in spec.get(field, ())]
    texts = [str(item.get(field, "")) for item in items for field in ("expression", "messageExpression")]
    found: dict[object, tuple[At, dict[str, list[str]]]] = {}
    for resource in _match_resources(spec, resources):
        schema = find_schema(resource.api_version, resource.kind)
        if schema is not None:
            scope = AdmissionScope(has_params="paramKind" in spec, has_variables=True)
            kind, fields = declare_object(schema, texts, "object")
            scope.declare_data({"object": kind, "oldObject": kind}, fields)
            if "paramKind" in spec:
                param = spec["paramKind"]
                known = find_schema(str(param.get("apiVersion")), str(param.get("kind")))
                if known is not None:
                    kind, fields = declare_object(known, texts, "params")
                    scope.declare_data({"params": kind}, fields)
            for node, message in _check(spec, scope):
                name = f"{resource.kind} of {resource.api_version}"
                found.setdefault(identify(node), (node, {}))[1].setdefault(message, []).append(name)
    for node, messages in found.values():
        for message, kinds in messages.items():
            listed = ", ".join(kinds)
            yield Problem(
                RULE,
                Sentence("{}, if the object is a {}", message, listed),
                node,
                category="policy",
                severity=Severity.WARNING,
            )


def _match_resources(spec: Any, resources: Iterable[Resource]) -> list[Resource]:
    """The kinds that the rules of a policy name; a rule with a wildcard is not checked."""
    by_name = {(each.group, each.version, each.plural): each for each in resources}
    found: dict[Resource, None] = {}
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        listed = [sorted(rule.get(field) or ()) for field in ("apiGroups", "apiVersions", "resources")]
        if not any("*" in name for names in listed for name in names):
            known = (by_name.get(name) for name in product(*listed))
            found |= dict.fromkeys([each for each in known if each][:MAX_TYPES])
    return sorted(found)


def _check(spec: Mapping[str, Any], scope: AdmissionScope) -> Iterator[tuple[At, str]]:
    """The errors of the expressions; one in a variable is reported there, although the server says where it is read."""
    for item in spec.get("variables", ()):
        error = scope.add_variable(str(item["name"]), str(item["expression"]))
        if error:
            yield At(item, "expression"), error
    for item in spec.get("validations", ()):
        for field in ("expression", "messageExpression"):
            text = str(item.get(field, ""))
            error = scope.find_type_error(text) if text.strip() else ""
            if error:
                yield At(item, field), error
