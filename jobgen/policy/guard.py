"""What the policies say of an object: the guard of one cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from jobgen.cel import Bound, Failed, bind
from jobgen.model import Data, Leaf, Problem, Severity, bare, plain
from jobgen.policy.match import Match, Request, plural
from jobgen.policy.params import Missing, Shelf
from jobgen.policy.parse import Binding, Policy, Validation
from jobgen.policy.place import places
from jobgen.policy.scene import Scene, Subject

_WITHOUT_NAMESPACE = frozenset(
    """ClusterQueue ClusterRole ClusterRoleBinding ClusterTrainingRuntime Namespace PersistentVolume PriorityClass
    ResourceFlavor StorageClass ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding""".split()
)
_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
# Who asks is not known offline: somebody without special rights.
_SOMEBODY = {"username": "", "uid": "", "groups": ["system:authenticated"], "extra": {}}
_CONDITIONS, _PARAMS = -1, -2
_OBJECT = frozenset(("object", "oldObject"))


class Facts(NamedTuple):
    """What is known of the cluster that objects are meant for."""

    environment: str = ""
    operators: Mapping[str, str] = MappingProxyType({})
    plurals: Mapping[tuple[str, str], str] = MappingProxyType({})


class Policies(NamedTuple):
    """The policies of a repository with the bindings that use them, and what they may read."""

    policies: tuple[tuple[Policy, tuple[Binding, ...]], ...] = ()
    shelf: Shelf = Shelf({}, {})

    def problems(self, made: Data, facts: Facts) -> Iterator[Problem]:
        """What the policies say of one object; whoever has many keeps a Guard."""
        return Guard(self, facts).problems(made)


class _Violation(NamedTuple):
    """A validation that an object does not pass, and the binding's word on how grave that is."""

    severity: Severity
    scene: Scene
    validation: Validation | None
    error: str


class _Concern(NamedTuple):
    """A policy that means a kind, and its bindings; which of them mean every object of it."""

    policy: Policy
    bindings: tuple[tuple[Binding, bool], ...]
    takes_all: bool


class Guard:
    """The policies at the door of one cluster; which of them mean a kind is looked up once."""

    def __init__(self, policies: Policies, facts: Facts) -> None:
        self.policies = policies
        self.facts = facts
        self._by_kind: dict[tuple[str, str], tuple[_Concern, ...]] = {}

    def problems(self, made: Data) -> Iterator[Problem]:
        """Everything that the policies have against the creation of an object."""
        api_version, kind = made.get("apiVersion"), made.get("kind")
        key = (str(bare(api_version)), str(bare(kind)))
        concerned = self._by_kind.get(key)
        if concerned is None:
            concerned = self._by_kind[key] = self._concerned(*key)
        if not concerned:
            return
        subject = self._subject(made, *key, traced=type(kind) is Leaf or type(api_version) is Leaf)
        # An object is handed to the engine once, for all policies that read nothing else.
        bound = bind(_seen(subject))
        for concern in concerned:
            if _passes(concern.policy, bound):
                continue
            if concern.takes_all or concern.policy.match.takes(subject.request):
                for violation in self._violations(concern, subject, bound):
                    yield from _told(violation, subject)

    def _concerned(self, api_version: str, kind: str) -> tuple[_Concern, ...]:
        group, _, version = api_version.rpartition("/")
        resource = self._resource(group, kind)
        return tuple(
            _Concern(
                policy=policy,
                bindings=tuple((binding, binding.match == Match()) for binding in bindings),
                takes_all=policy.match.takes_all,
            )
            for policy, bindings in self.policies.policies
            if bindings and policy.validations and policy.match.means(group, version, resource)
        )

    def _resource(self, group: str, kind: str) -> str:
        return self.facts.plurals.get((group, kind)) or plural(kind)

    def _subject(self, made: Data, api_version: str, kind: str, *, traced: bool) -> Subject:
        group, _, version = api_version.rpartition("/")
        seen = plain(made) if traced else made
        metadata = seen.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        namespace = "" if kind in _WITHOUT_NAMESPACE else str(metadata.get("namespace") or "default")
        if namespace and metadata.get("namespace") != namespace:
            seen = {**seen, "metadata": {**metadata, "namespace": namespace}}
        labels = metadata.get("labels")
        request = Request(
            group=group,
            version=version,
            kind=kind,
            resource=self._resource(group, kind),
            namespace=namespace,
            name=str(metadata.get("name", "")),
            labels=labels if isinstance(labels, dict) else {},
            namespace_labels=self.policies.shelf.labels(namespace),
        )
        return Subject(made, seen, request, traced)

    def _violations(self, concern: _Concern, subject: Subject, bound: Bound) -> list[_Violation]:
        """What a policy has against an object, the gravest word of its bindings for each validation."""
        found: dict[int, _Violation] = {}
        for binding, takes_all in concern.bindings:
            if not takes_all and not binding.match.takes(subject.request):
                continue
            for number, violation in self._by_binding(concern.policy, binding, subject, bound):
                if number not in found or _RANK[violation.severity] < _RANK[found[number].severity]:
                    found[number] = violation
        return [found[number] for number in sorted(found)]

    def _by_binding(
        self, policy: Policy, binding: Binding, subject: Subject, bound: Bound
    ) -> Iterator[tuple[int, _Violation]]:
        params = self.policies.shelf.params_of(policy, binding, subject.request, self.facts.operators)
        if isinstance(params, Missing):
            # The API server denies such a request, whatever the binding's actions are.
            if not policy.ignores_errors:
                yield _PARAMS, _Violation(Severity.ERROR, Scene(policy, {}), None, params.message)
            return
        for param in params:
            scene = self._scene(policy, subject, param, bound)
            for number, validation, error in _failures(scene):
                if not (error and policy.ignores_errors):
                    yield number, _Violation(binding.severity, scene, validation, error)

    def _scene(self, policy: Policy, subject: Subject, param: Data, bound: Bound) -> Scene:
        """What a policy's expressions see; what costs something is made where it is read."""
        seen = _seen(subject)
        more: dict[str, Data] = {}
        if "params" in policy.reads:
            more["params"] = param
        if "request" in policy.reads:
            more["request"] = _request(subject.request)
        if "namespaceObject" in policy.reads:
            name = subject.request.namespace
            more["namespaceObject"] = self.policies.shelf.namespace(name) if name else None
        return Scene(policy, {**seen, **more}) if more else Scene(policy, seen, bound)


def _seen(subject: Subject) -> dict[str, Data]:
    return {"object": subject.object, "oldObject": None}


def _passes(policy: Policy, bound: Bound) -> bool:
    """Whether an object passes without further ado, as most do; if not, the long way tells why."""
    if policy.param_kind is not None:
        return False
    for code in policy.conditions:
        result = code.run(bound) if code.names <= _OBJECT else None
        if result is not True:
            return result is False
    return all(item.code.names <= _OBJECT and item.code.run(bound) is True for item in policy.validations)


def _failures(scene: Scene) -> Iterator[tuple[int, Validation | None, str]]:
    """The validations that do not hold, by number; the match conditions, if they cannot be evaluated."""
    policy = scene.policy
    applies = scene.applies() if policy.conditions else True
    if isinstance(applies, Failed):
        yield _CONDITIONS, None, applies.message
    if applies is not True:
        return
    for number, validation in enumerate(policy.validations):
        result = scene.run(validation.code)
        if isinstance(result, Failed):
            yield number, validation, result.message
        elif result is not True:
            yield number, validation, ""


def _told(violation: _Violation, subject: Subject) -> Iterator[Problem]:
    """A violation as problems: one for each part of the object that is to blame."""
    severity, scene, validation, error = violation
    name = scene.policy.name
    if not subject.traced or validation is None:
        nodes = [(_name_of(subject), subject.object)]
    else:
        nodes = list(places(subject, scene, validation.code))
    for node, tree in nodes:
        if error or validation is None:
            message = f"policy `{name}` could not be evaluated: {error}"
        else:
            message = scene.of(tree).message(validation)
        yield Problem(name, message, node, category="policy", severity=severity)


def _name_of(subject: Subject) -> Data:
    metadata = subject.made.get("metadata")
    return metadata.get("name") if isinstance(metadata, dict) and subject.traced else None


def _request(request: Request) -> dict[str, Data]:
    kind = {"group": request.group, "version": request.version, "kind": request.kind}
    resource = {"group": request.group, "version": request.version, "resource": request.resource}
    return {
        "uid": "",
        "kind": kind,
        "resource": resource,
        "subResource": "",
        "requestKind": kind,
        "requestResource": resource,
        "requestSubResource": "",
        "name": request.name,
        "namespace": request.namespace,
        "operation": "CREATE",
        "userInfo": _SOMEBODY,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
    }
