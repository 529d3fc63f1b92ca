"""One object under one policy: the values that its expressions read, and their results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from jobgen.check.cel import Bound, EvaluationBudget, Failed
from jobgen.check.cel.together import PARAMS, Shared, evaluate_all
from jobgen.check.cel.values import THAN_ALLOWED
from jobgen.check.policy.expressions import PolicyExpression
from jobgen.check.policy.match import NAME_LABEL, Request
from jobgen.check.policy.parse import Binding, Judgment, Policy, Validation
from jobgen.check.schema.admitted import CREATION, UID, admit_metadata
from jobgen.model.data import Plain
from jobgen.model.limits import MAX_PARAMS, MAX_VARIABLE_SIZE
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import Place

Path = tuple[str | int, ...]
_MAX_MESSAGE_LENGTH = 5 * 1024


class Cause(NamedTuple):
    """A part of an object that makes an expression fail."""

    place: Place
    """Where it is reported."""
    part: Place = None
    """The whole part."""
    is_of_metadata: bool = False
    others: frozenset[Path] = frozenset()
    """The other parts that make it fail."""
    value: Plain = None
    """The value of the part; None if no part alone makes it fail."""


class AdmissionSubject(NamedTuple):
    """An object that is to be created: as it was rendered, and as the API server sees it."""

    source: Mapping[str, Plain]
    object: Mapping[str, Plain]
    request: Request


class SharedEvaluation:
    """The expressions of all policies that read one object, evaluated together when the first of them is asked for."""

    __slots__ = ("_expressions", "_last_params", "_values", "_verdicts", "budget", "is_slow", "subject")

    def __init__(self, subject: AdmissionSubject, budget: EvaluationBudget) -> None:
        self.subject = subject
        self.budget = budget
        self.is_slow = False
        self._expressions: dict[Shared, None] = {}
        self._values: dict[str, Plain] = {"object": subject.object, "oldObject": None}
        self._last_params = -1
        self._verdicts: dict[Shared, bool] | None = None

    def add(self, policy: Policy, values: Mapping[str, Plain]) -> int:
        """Add the expressions of a policy, and what they read; return the number of its params, -1 without any."""
        params = -1
        for name, value in values.items():
            if name == "params":
                params = self._last_params = self._last_params + 1
                self._values[f"{PARAMS}{params}"] = value
            else:
                self._values[name] = value
        self._expressions.update(dict.fromkeys(policy.judge(params).joined))
        if self.budget.owners is not None:
            self.budget.owners[policy.name] = policy.list_texts
        return params

    @property
    def expressions(self) -> tuple[Shared, ...]:
        """Everything that is evaluated together."""
        return tuple(self._expressions)

    def find_verdict(self, expression: PolicyExpression, params: int) -> bool | None:
        """Return True if an expression is true; None if only its own evaluation can say."""
        shared = expression.share(params)
        verdicts = self._find_verdicts()
        return verdicts.get(shared) if shared else None

    def passes(self, judgment: Judgment) -> bool:
        """Return True if the object passes a policy for sure."""
        return None not in judgment.conditions and judgment.passes(self._find_verdicts())

    def _find_verdicts(self) -> dict[Shared, bool]:
        if self._verdicts is None:
            bound = Bound(self._values, self.budget)
            self._verdicts = evaluate_all(self.expressions, bound)
            self.is_slow = bound.is_slow
        return self._verdicts


class EvalContext:
    """The values that a policy's expressions may read; variables are evaluated when first read."""

    __slots__ = ("_native", "_values", "bindings", "budget", "is_slow", "params", "policy", "shared")

    def __init__(
        self,
        policy: Policy,
        bindings: dict[str, Plain],
        shared: SharedEvaluation | None = None,
        budget: EvaluationBudget | None = None,
    ) -> None:
        self.policy = policy
        self.budget = shared.budget if shared else budget
        self.bindings = bindings
        self.shared = shared
        """The evaluation of its expressions together with those of other policies."""
        self.params = shared.add(policy, bindings) if shared else -1
        """The number of its params there."""
        self._native: Bound | None = None
        self._values: dict[str, Any] = {}
        self.is_slow = False
        """True if an evaluation took so long that it should not be repeated many times."""

    @property
    def _bound(self) -> Bound:
        """The values, bound when an expression is first evaluated by itself."""
        if self._native is None:
            self._native = Bound(self.bindings, self.budget)
        return self._native

    def with_object(self, obj: Plain) -> EvalContext:
        """The same context with another object."""
        budget = None if self.shared else self.budget
        return EvalContext(self.policy, {**self.bindings, "object": obj}, budget=budget)

    def passes(self) -> bool:
        """Return True if the object passes the policy for sure, so that nothing else has to be evaluated."""
        if self.shared is None or self.policy.annotations:
            return False
        return self.shared.passes(self.policy.judge(self.params))

    def evaluate(self, expression: PolicyExpression) -> Any | Failed:
        """The value of an expression, or why it failed."""
        verdict = self.shared.find_verdict(expression, self.params) if self.shared else None
        if verdict is not None:
            return verdict
        if not expression.has_variables:
            return self._run(expression, self._bound)
        result = expression.evaluate_fast(self._bound)
        if not isinstance(result, Failed):
            return result
        if not expression.variables:
            return self._run(expression, self._bound)
        values = {name: self._value(name) for name in expression.variables}
        first_failure = next((value for value in values.values() if isinstance(value, Failed)), None)
        # A variable that failed is left out: only an expression that really reads it fails too.
        known = {name: value for name, value in values.items() if not isinstance(value, Failed)}
        result = self._run(expression, Bound({**self.bindings, "variables": known}, self.budget))
        return first_failure if first_failure is not None and isinstance(result, Failed) else result

    def _run(self, expression: PolicyExpression, bound: Bound) -> Any | Failed:
        bound.is_slow = False
        result = expression.evaluate(bound)
        self.is_slow |= bound.is_slow
        return result

    def _value(self, name: str) -> Any | Failed:
        if name not in self._values:
            value = self.evaluate(self.policy.variables[name])
            if not isinstance(value, Failed) and len(repr(value)) > MAX_VARIABLE_SIZE + self._bound.measure():
                value = Failed(f"the variable `{name}` is larger {THAN_ALLOWED}: {MAX_VARIABLE_SIZE}")
            self._values[name] = value
        return self._values[name]

    def evaluate_conditions(self) -> bool | Failed:
        """Return True if all match conditions are true; one that is false outranks one that fails."""
        context = self
        # Conditions are checked before the namespace is known.
        if self.policy.has_early_conditions:
            bindings = {**self.bindings, "namespaceObject": {}}
            context = EvalContext(self.policy, bindings, budget=self.budget)
        results = [context.evaluate(condition) for condition in self.policy.conditions]
        if any(result is False for result in results):
            return False
        return next((result for result in results if isinstance(result, Failed)), True)

    def write_messages(self, validation: Validation, removals: Iterable[frozenset[Path]]) -> Iterator[str]:
        """The messages for an object that does not pass a validation, each without some parts of the object."""
        expression = validation.message_expression
        # Lists are converted to Python to put the keys of mappings in order, which takes long for a whole object.
        read = expression.project(self.bindings.get("object")) if expression else None
        otherwise = validation.message or f"failed expression: {' '.join(validation.expression.text.split())}"
        for removed in removals:
            message: Any = ""
            if expression and not (self.budget and self.budget.rest < 0):
                bindings = {**self.bindings, "object": remove_parts(read, removed)}
                context = EvalContext(self.policy, bindings, budget=self.budget)
                message = expression.find_once(context.bindings, partial(context.evaluate, expression))
            # The API server does not take values that are long or have several lines.
            is_taken = isinstance(message, str) and "\n" not in message.strip() and len(message) <= _MAX_MESSAGE_LENGTH
            yield message.strip() or otherwise if is_taken else otherwise


def remove_parts(tree: Plain, removed: frozenset[Path]) -> Plain:
    """The tree without some of its parts; subtrees that keep all their parts are shared."""
    if not removed:
        return tree
    below: dict[str | int, set[Path]] = {}
    for path in removed:
        below.setdefault(path[0], set()).add(path[1:])
    left = {
        step: remove_parts(child, frozenset(below[step])) if step in below else child
        for step, child in list_children(tree)
        if () not in below.get(step, ())
    }
    return {str(step): child for step, child in left.items()} if isinstance(tree, dict) else list(left.values())


def list_children(tree: Plain) -> list[tuple[str | int, Plain]]:
    """The parts of a mapping or a list, each with the step to it."""
    if isinstance(tree, dict):
        return list(tree.items())
    return list(enumerate(tree)) if isinstance(tree, list) else []


_NAMESPACE_METADATA = frozenset("name generateName labels annotations finalizers".split())
OPERATORS = "jobgen-operators"
"""The ConfigMap with the versions of a cluster's operators; offline, those that the environment declares."""


_Object = Mapping[str, Plain]


class MissingParams(NamedTuple):
    """Why a policy has no params: those that a binding requires do not exist, or there are too many."""

    message: str
    is_limit: bool = False


class ParamStore(NamedTuple):
    """Objects that policies may read: params by apiVersion and kind, namespaces by name."""

    params: Mapping[tuple[str, str], tuple[_Object, ...]]
    namespaces: Mapping[str, _Object]

    def namespace(self, name: str) -> _Object:
        """The namespace as the API server would return it; one that is not declared has a name and its label only."""
        known = self.namespaces.get(name, {})
        metadata = admit_metadata({**_metadata(known), "name": name, "labels": {NAME_LABEL: name, **_labels(known)}})
        kept = {field: value for field, value in metadata.items() if field in _NAMESPACE_METADATA}
        return {
            "metadata": {**kept, "uid": UID, "creationTimestamp": CREATION},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }

    def labels(self, name: str) -> Mapping[str, Plain] | None:
        """The labels of a namespace; None if it is not declared."""
        return {NAME_LABEL: name, **_labels(self.namespaces[name])} if name in self.namespaces else None

    def plus(self, documents: Iterable[_Object]) -> ParamStore:
        """A store with more objects, which replace those of the same name and namespace."""
        more = store_params(documents)
        params = {**self.params, **more.params}
        for kind, added in more.params.items():
            names = {(_name(param), _namespace(param)) for param in added}
            kept = (param for param in self.params.get(kind, ()) if (_name(param), _namespace(param)) not in names)
            params[kind] = (*added, *kept)
        return ParamStore(params, {**self.namespaces, **more.namespaces})

    def find_params(
        self, policy: Policy, binding: Binding, request: Request, operators: Mapping[str, str]
    ) -> Sequence[_Object | None] | MissingParams:
        """The params that a binding passes to its policy, which must pass for each; `None` if it passes none."""
        if policy.param_kind is None or binding.params is None:
            return [None]
        wanted = binding.params
        namespace = wanted.namespace or request.namespace
        found = [
            param
            for param in _with_operators(self.params.get(policy.param_kind, ()), policy.param_kind, operators)
            # A param without a namespace is found in all of them.
            if _namespace(param) in ("", namespace)
            and (not wanted.name or _name(param) == wanted.name)
            and all(requirement.matches(_labels(param)) for requirement in wanted.selector)
        ]
        if len(found) > MAX_PARAMS:
            number = f"`{len(found)}` objects of the kind {policy.param_kind[1]}"
            message = f"binding `{binding.name}` selects {number} as params; select at most {MAX_PARAMS}"
            return MissingParams(message, is_limit=True)
        if not found and wanted.denies:
            named = f" named `{wanted.name}`" if wanted.name else ""
            where = f" in namespace `{namespace}`" if namespace else ""
            return MissingParams(
                f"binding `{binding.name}` requires a {policy.param_kind[1]}{named}, which does not exist{where}; "
                "add it to policies/params/"
            )
        return found


def store_params(documents: Iterable[_Object]) -> ParamStore:
    """A store of objects that are neither policies nor bindings."""
    params: dict[tuple[str, str], list[_Object]] = {}
    namespaces: dict[str, _Object] = {}
    for document in documents:
        kind = (str(document.get("apiVersion")), str(document.get("kind")))
        params.setdefault(kind, []).append(document)
        if kind == ("v1", "Namespace"):
            namespaces[_name(document)] = document
    return ParamStore({kind: tuple(found) for kind, found in params.items()}, namespaces)


def _with_operators(params: tuple[_Object, ...], kind: tuple[str, str], operators: Mapping[str, str]) -> list[_Object]:
    """The params with the operator versions that the environment declares, which override those of a file."""
    if kind != ("v1", "ConfigMap") or not operators:
        return list(params)
    given: _Object = next((param for param in params if _name(param) == OPERATORS), {})
    declared: _Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": OPERATORS, **_metadata(given)},
        "data": {**_get_mapping(given, "data"), **operators},
    }
    return [declared, *(param for param in params if _name(param) != OPERATORS)]


def _get_mapping(obj: _Object, field: str) -> Mapping[str, Plain]:
    found = obj.get(field)
    return found if isinstance(found, dict) else {}


def _metadata(obj: _Object) -> Mapping[str, Plain]:
    return _get_mapping(obj, "metadata")


def _name(obj: _Object) -> str:
    return str(_metadata(obj).get("name", ""))


def _namespace(obj: _Object) -> str:
    return str(_metadata(obj).get("namespace", ""))


def _labels(obj: _Object) -> Mapping[str, Plain]:
    return _get_mapping(_metadata(obj), "labels")
