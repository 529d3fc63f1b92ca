"""Checks an object as its cluster would: its schema, its metadata, its pods, the rules and the policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cache, cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from jobgen.check.admission import validate_pod_patch, validate_pod_template
from jobgen.check.admission.metadata import validate_object_metadata
from jobgen.check.admission.names import DNS_SUBDOMAIN, MAX_SUBDOMAIN, is_dns_subdomain
from jobgen.check.operators.checks import fill_in_defaults
from jobgen.check.rule_runner import RuleRunner, report_exception
from jobgen.check.rules import Fact, Rule
from jobgen.check.schema.admitted import Admission
from jobgen.check.schema.crd_schema import compile_structural
from jobgen.check.schema.decoded import decode_nulls
from jobgen.check.schema.shipped import find_shipped_admission, find_shipped_schema, read_shipped_bundle
from jobgen.check.validation import find_metadata_format, validate_object
from jobgen.check.validation.pods import is_workload, validate_workload_pod
from jobgen.k8s.devices import CatalogSource, no_catalog
from jobgen.k8s.kinds import BUILTIN_GROUPS, DefinitionSource, Release, no_definitions, parse_release
from jobgen.k8s.kueue import creates_wrapped_objects
from jobgen.k8s.nodes import as_text, find_nodes
from jobgen.k8s.object_paths import ObjectPath, is_app_wrapper, list_wrapped_objects
from jobgen.k8s.objects import Manifest, Pod, Role, no_configs
from jobgen.k8s.operators import name_last_pod
from jobgen.k8s.secrets import without_ciphertext
from jobgen.k8s.workloads import list_claim_paths
from jobgen.model.data import Plain
from jobgen.model.finding import UNCHECKED, FixStep, Problem, Severity, drop_consequences
from jobgen.model.limits import MAX_FINDINGS, TOO_MANY_FINDINGS
from jobgen.model.mutated import Mutated
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import find_closest
from jobgen.repo import layout
from jobgen.repo.files import File
from jobgen.repo.layout import Layers
from jobgen.schema.shipped_kinds import find_known_version, is_shipped_kind, select_releases
from jobgen.spec.kinds import Kind
from jobgen.spec.overlay import Cluster
from jobgen.spec.replicas import find_template
from jobgen.spec.teams import TeamScope

if TYPE_CHECKING:
    from jobgen.check.policy import PolicyEvaluator
    from jobgen.check.policy.evaluator import SchemaSource
    from jobgen.check.policy.mutator import Mutator
    from jobgen.check.schema.tree_definitions import TreeKind

_SchemaCheck = Callable[[Mapping[str, Plain]], list[Problem]]

# Pod rules that the schema of a CRD covers too; its messages are more precise.
_ALSO_IN_SCHEMA = frozenset(("invalid-quantity", "missing-pod-field"))
# The cluster does not have the kind, so it does not look at the rest of the object. Pods stay in a newer version.
_NOT_SERVED = frozenset(("old-api-version", "unknown-kind"))
# Rules rely on the types of a schema, so they do not see the value that has such a problem.
_PRECLUDES_RULES = frozenset(("wrong-type",))
_VALIDATION = "the validation of the object and its pods"
# Those of pods; a faulty one is reported where it is declared.
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
# Rules about objects that users apply and queue themselves, not about those inside them.
_ABOUT_APPLIED_OBJECTS = frozenset(("gitops", "scheduling", "team"))
_APP_WRAPPER: Mapping[str, Plain] = {
    "apiVersion": "workload.codeflare.dev/v1beta2",
    "kind": "AppWrapper",
    "name": "app-wrapper",
    "uid": "app-wrapper",
    "controller": True,
}
"""The owner of the objects that an AppWrapper creates."""


def _keep_certain(problems: Iterable[Problem], *, is_typed: bool) -> list[Problem]:
    """Return what policies find in an object: with wrong types, policies may fail because of them.

    The API server refuses such an object before policies read it.
    """
    return [problem for problem in problems if is_typed or problem.cause != "not evaluated"]


class Checker:
    """Checks the objects of one cluster; schemas are read and compiled when first needed."""

    def __init__(
        self,
        layers: Layers,
        kinds: Sequence[Kind],
        cluster: Cluster,
        rules: Iterable[Rule] = (),
        evaluator: PolicyEvaluator | None = None,
        read_catalog: CatalogSource = no_catalog,
        find_definitions: DefinitionSource = no_definitions,
        find_config: Callable[..., Mapping[str, Plain] | None] | None = None,
    ) -> None:
        self.layers = layers
        self.kinds = {(str(kind.api_version), name): kind for kind in kinds for name in (kind.name, *kind.aliases)}
        self.cluster = cluster
        self.evaluator = evaluator
        self.team: TeamScope | None = None
        """What the team of the objects may use; None if no team owns them."""
        self.folder = ""
        """The folder of the objects' files: of definitions that differ, the nearest one counts."""
        self._read_catalog = read_catalog
        self._find_definitions = find_definitions
        self._find_config = find_config
        self._tree_kinds: dict[tuple[str, str], TreeKind | None] = {}
        self._rule_runner = RuleRunner(rules)
        self._release = parse_release(cluster.kubernetes)
        self._mutator: Mutator | None = None
        self._schemas: dict[tuple[str, str], _SchemaCheck | None] = {}
        self._admissions: dict[tuple[str, str], Admission] = {}

    def limit_to_team(self, team: TeamScope) -> Checker:
        """Return a checker for the objects of a team, which shares everything else with this one."""
        limited = copy(self)
        limited.team = team
        return limited

    def place_in(self, folder: str) -> Checker:
        """Return a checker for the objects in a folder, which shares everything else with this one."""
        placed = copy(self)
        placed.folder = folder
        return placed

    def with_policies(self, evaluator: PolicyEvaluator) -> Checker:
        """Return a checker with other policies, which shares everything else with this one."""
        other = copy(self)
        other.evaluator, other._mutator = evaluator, None  # noqa: SLF001 -- it is one of its own
        return other

    def __call__(self, obj: Mapping[str, Plain]) -> list[Problem]:
        """Everything that is wrong with an object that mutating policies have changed, with paths into it."""
        return self.find_problems(self.manifest(obj))

    def find_problems(self, manifest: Manifest) -> list[Problem]:
        """Everything that is wrong with an object that mutating policies have changed, with paths into it."""
        problems = self._find_placed(manifest)
        for path, inner, failures in self._list_wrapped(manifest.object):
            from jobgen.model.placed import place_problems

            problems += place_problems(failures, inner.object, path)
            found = self._find_placed(inner, path, _APP_WRAPPER)
            problems += (problem for problem in found if problem.category not in _ABOUT_APPLIED_OBJECTS)
        if len(problems) > MAX_FINDINGS:
            # Looking up the locations of more would take long.
            rest = Problem("too-many-errors", TOO_MANY_FINDINGS, problems[MAX_FINDINGS].node)
            problems[MAX_FINDINGS:] = [rest]
        return problems

    def _find_placed(
        self, manifest: Manifest, path: ObjectPath = (), owner: Mapping[str, Plain] | None = None
    ) -> list[Problem]:
        """What is wrong with an object at a path in another one, which owns it, or with one by itself."""
        problems = self._validate(manifest)
        faults = [problem for problem in problems if problem.rule in _PRECLUDES_RULES]
        is_typed = not faults
        problems += self._rule_runner.find_problems(manifest) if is_typed else self._find_independent(manifest, faults)
        # Policies may leave out objects that belong to another one, as the cluster shows them.
        metadata = {**manifest.metadata, "ownerReferences": [owner]} if owner else manifest.metadata
        obj = {**manifest.object, "metadata": metadata} if owner else manifest.object
        denied = self._find_denied(obj, manifest, is_typed=is_typed)
        if not (problems or denied):
            return problems
        # Imported late: most objects have no problems.
        from jobgen.model.placed import place_problems

        if obj is manifest.object:
            return place_problems([*problems, *denied], obj, path)
        return place_problems(problems, manifest.object, path) + place_problems(denied, obj, path)

    def _find_denied(self, obj: Mapping[str, Plain], manifest: Manifest, *, is_typed: bool) -> list[Problem]:
        """What policies deny or warn about in an object and its pods."""
        if self.evaluator is None:
            return []
        found = self.evaluate_policies(obj)
        if is_typed:
            found += self._evaluate_pods(manifest, found)
        return _keep_certain(found, is_typed=is_typed) if found else found

    def _find_independent(self, manifest: Manifest, faults: Sequence[Problem]) -> list[Problem]:
        """What rules find in an object that does not depend on its values of wrong types."""
        # Imported late: most objects have none.
        from jobgen.check.independent import find_independent

        return find_independent(
            manifest.object, faults, lambda obj: self._rule_runner.find_problems(self.manifest(obj))
        )

    def collect_facts(
        self, manifest: Manifest, problems: list[Problem], names: frozenset[str] | None = None
    ) -> Iterator[tuple[str, Fact]]:
        """The facts that the fleet rules collect from an object, each with its rule's name: all rules, or these."""
        yield from self._rule_runner.collect_facts(manifest, problems, names)
        wrapped = self._list_wrapped(manifest.object) if creates_wrapped_objects(manifest) else ()
        for path, inner, _ in wrapped:
            for name, fact in self._rule_runner.collect_facts(inner, problems, names):
                yield name, fact._replace(path=(*path, *fact.path))

    def _list_wrapped(self, obj: Mapping[str, Plain]) -> Iterator[tuple[ObjectPath, Manifest, tuple[Problem, ...]]]:
        """The objects inside an AppWrapper, as mutating policies change them when its operator creates them."""
        for path, inner in list_wrapped_objects(obj) if is_app_wrapper(obj) else ():
            mutated = self.mutate(inner)
            yield path, self.manifest(mutated.object), mutated.failures

    def mutate(self, obj: Mapping[str, Any]) -> Mutated:
        """An object with what the mutating policies of the repository change when it is created."""
        if self.evaluator is None or not self.evaluator.policies.mutating:
            return Mutated(obj)
        if self._mutator is None:
            # Imported late: most repositories have no such policies.
            from jobgen.check.policy.mutator import Mutator

            self._mutator = Mutator(self.evaluator, self.schema_source)
        try:
            return self._mutator.mutate(obj)
        except Exception as error:  # noqa: BLE001 -- a faulty policy must not hide what the checks find
            return Mutated(obj, (report_exception("the mutation by policies", error, obj),))

    def mutate_all(self, obj: Mapping[str, Any]) -> Mutated:
        """An object with what mutating policies change, also in the objects inside it."""
        mutated = self.mutate(obj)
        if mutated.object is obj and (self.evaluator is None or not self.evaluator.policies.mutating):
            return mutated
        for path, inner in list_wrapped_objects(mutated.object) if is_app_wrapper(mutated.object) else ():
            own = self.mutate(inner)
            if own.object is not inner:
                mutated = mutated._replace(
                    object=_replace(mutated.object, path, own.object), removals=(*mutated.removals, *own.removals)
                )
        return mutated

    def manifest(self, obj: Mapping[str, Plain]) -> Manifest:
        """The object with its kind and cluster, as rules read it; without values that SOPS encrypted."""
        obj = without_ciphertext(obj)
        api_version, name = str(obj.get("apiVersion")), str(obj.get("kind"))
        find = no_configs if self._find_config is None else partial(self._find_config, self.folder)
        return Manifest(obj, self.kinds.get((api_version, name)), self.cluster, self._read_catalog, self.team, find)

    def read_schema(self, api_version: str, kind: str) -> dict[str, Any] | None:
        """The schema that the cluster has for a kind; None if it is not known, or the repository's own is broken."""
        own = self._read_own_schema(self.manifest({"apiVersion": api_version, "kind": kind}))
        if own is not None:
            from jobgen.check.schema.untrusted import read_untrusted

            return read_untrusted(own.content)
        shipped = find_shipped_schema(api_version, kind, self.cluster, any_release=True)
        return shipped.schema if shipped and not shipped.missing else None

    def read_json_schema(self, manifest: Manifest) -> bytes:
        """The JSON Schema that the cluster has for an object; empty if there is none."""
        own = self._read_own_schema(manifest)
        if own is not None:
            return own.content
        return read_shipped_bundle(*_name_kind(manifest), self.cluster, any_release=manifest.kind is not None)

    def has_own_schema(self, manifest: Manifest) -> bool:
        """Return True if the schema of an object is one of the repository."""
        return self._read_own_schema(manifest) is not None

    def find_schema_problems(self, obj: Mapping[str, Plain]) -> list[Problem]:
        """What the schema of an object refuses, without the validation that Kubernetes and operators add in code."""
        return _run_stage(obj, lambda: self._check_schema(self.manifest(obj)))

    def name_schema_file(self, manifest: Manifest) -> str:
        """The path, in a schema folder of the repository, of the schema that the cluster has for an object."""
        api_version, name = _name_kind(manifest)
        group, _, version = api_version.rpartition("/")
        kind = manifest.kind
        declared = self.cluster.operators.get(kind.operator, "") if kind else ""
        older = [span for span in kind.older if declared and span.contains(declared)] if kind else []
        suffix = f"-until-{older[0].until}" if older else ""
        return f"{group}/{name.lower()}_{version}{suffix}.json"

    def _validate(self, manifest: Manifest) -> list[Problem]:
        """Why the API server refuses the object, or the pods that its operator creates."""
        obj = manifest.object
        problems = _run_stage(obj, lambda: self._check_schema(manifest))
        if any(problem.rule in _NOT_SERVED for problem in problems):
            is_old = problems[0].rule == "old-api-version" and problems[0].severity is Severity.ERROR
            return [*problems, *_run_stage(obj, lambda: self._check_old_pods(manifest))] if is_old else problems
        metadata_format = find_metadata_format(obj, self._release)
        problems += _run_stage(obj, lambda: validate_object_metadata(obj.get("metadata"), metadata_format))
        manifest = self._decode(manifest)
        own = _run_stage(obj, lambda: validate_object(manifest.object, self._release, self._read_catalog))
        is_checked_twice = bool(problems or own) and not is_workload(manifest.group, manifest.kind_name)
        hidden = _ALSO_IN_SCHEMA if is_checked_twice else frozenset()
        pods: Sequence[Pod] = ()
        try:
            pods = manifest.pods
        except Exception as error:  # noqa: BLE001 -- a faulty check must not hide what the others find
            own.append(report_exception(_VALIDATION, error, obj))
        for pod in pods:
            found = _run_stage(obj, partial(_validate_pod, pod, self._release))
            own += (problem for problem in found if problem.rule not in hidden)
        # Reports merge what the schema of a CRD and a pod rule both report.
        causes = [one for one in problems if one.rule in _PRECLUDES_RULES or manifest.group in BUILTIN_GROUPS]
        problems += drop_consequences(own, causes) if causes else own
        return problems

    def _check_old_pods(self, manifest: Manifest) -> Iterator[Problem]:
        """What stays wrong in the pods of an object when its version is replaced."""
        # Imported late: few objects have an old version.
        from jobgen.check.old_versions import check_fields, find_pods

        for pod in find_pods(manifest):
            found = check_fields(pod)
            yield from found
            hidden = _ALSO_IN_SCHEMA if found else frozenset()
            yield from (problem for problem in _validate_pod(pod, self._release) if problem.rule not in hidden)

    def _decode(self, manifest: Manifest) -> Manifest:
        """An object of one of Kubernetes' own kinds as Go reads its null items; others as they are."""
        shipped = find_shipped_schema(*_name_kind(manifest), self.cluster) if manifest.group in BUILTIN_GROUPS else None
        decoded = decode_nulls(manifest.object, shipped.schema) if shipped else manifest.object
        return manifest if decoded is manifest.object else self.manifest(decoded)

    def _check_schema(self, manifest: Manifest) -> list[Problem]:
        check = self._schema_check(manifest)
        if check is not None:
            return check(fill_in_defaults(manifest.object))
        missing = self._report_missing_schema(manifest)
        # An object of an old version is not served at all, so this is enough to say.
        return [missing] if missing.rule == "old-api-version" else [missing, *_check_metadata()(manifest.object)]

    def evaluate_policies(self, obj: Mapping[str, Plain]) -> list[Problem]:
        """What the policies of the repository deny or warn about."""
        if self.evaluator is None:
            return []
        problems: list[Problem] = []
        try:
            problems += islice(self.evaluator.find_problems(obj, self.schema_source), MAX_FINDINGS + 1)
        except Exception as error:  # noqa: BLE001 -- a faulty check must not hide what the others find
            problems.append(report_exception("the evaluation of the policies", error, obj))
        return problems

    def _evaluate_pods(self, manifest: Manifest, reported: Sequence[Problem]) -> list[Problem]:
        """What policies deny or warn about in the pods of an object, unless they report something about the object."""
        if self.evaluator is None or not self.evaluator.reads_pods:
            return []
        from jobgen.check.admitted_pods import list_admitted_pods

        known = {problem.rule for problem in reported}
        problems: list[Problem] = []
        for pod in list_admitted_pods(manifest):
            mutated = self.mutate(pod.object)
            found = self.evaluate_policies(mutated.object)
            problems += (pod.locate(problem) for problem in found if problem.rule not in known)
        return problems

    @cached_property
    def schema_source(self) -> SchemaSource:
        """What policies need to know about kinds."""
        from jobgen.check.policy.evaluator import SchemaSource

        return SchemaSource(self.find_admission, self.read_schema)

    def find_admission(self, obj: Mapping[str, Plain]) -> Admission:
        """The conversion of an object to what the API server passes to policies."""
        written = as_text(obj.get("apiVersion")), as_text(obj.get("kind"))
        if written not in self._admissions:
            manifest = self.manifest(obj)
            own = self._read_own_schema(manifest)
            if own:
                from jobgen.check.schema.untrusted import compile_untrusted_admission

                self._admissions[written] = compile_untrusted_admission(own.content, *_name_kind(manifest))
            else:
                self._admissions[written] = find_shipped_admission(*_name_kind(manifest), self.cluster)
        return self._admissions[written]

    def _read_own_schema(self, manifest: Manifest) -> File | None:
        """The schema that the repository has for an object: of its folder of schemas, or of a CRD among its files."""
        own = self._read_schema_file(manifest)
        defined = self._find_tree_kind(manifest) if own is None else None
        return defined.schema if defined else own

    def _read_schema_file(self, manifest: Manifest) -> File | None:
        """The schema in the repository's folder of schemas; one that is added does not replace a shipped one."""
        name = self.name_schema_file(manifest)
        own, judging = layout.read_schema(self.layers, name), self.layers.judging
        if own is None or judging is None or layout.read_schema(judging, name) is not None:
            return own
        return None if is_shipped_kind(*_name_kind(manifest)) else own

    def _find_tree_kind(self, manifest: Manifest) -> TreeKind | None:
        """What CRDs among the files of the run say about the kind of an object.

        None if they define no such kind, if the declared release of its operator decides, or if jobgen knows more.
        """
        name = api_version, kind = _name_kind(manifest)
        group = api_version.rpartition("/")[0]
        # Asked for each object: the results of its file depend on the definitions.
        definitions = () if group in BUILTIN_GROUPS else self._find_definitions(group)
        if name not in self._tree_kinds:
            found: TreeKind | None = None
            same = [definition for definition in definitions if definition.kind == kind]
            if same and not select_releases(*name, self.cluster)[1]:
                # Imported late: most files define no kinds.
                from jobgen.check.schema.tree_definitions import TreeKind

                shipped = find_shipped_schema(*name, self.cluster, any_release=manifest.kind is not None)
                found = TreeKind(api_version, same, self._release, shipped)
                found = None if found.is_open and shipped is not None and not shipped.missing else found
            self._tree_kinds[name] = found
        return self._tree_kinds[name]

    def _schema_check(self, manifest: Manifest) -> _SchemaCheck | None:
        defined = self._find_tree_kind(manifest)
        if defined and self._read_schema_file(manifest) is None:
            return partial(defined.check, self.folder)
        name = _name_kind(manifest)
        if name not in self._schemas:
            own = self._read_schema_file(manifest)
            # Rules of their own report kinds with a description that the operator does not have.
            shipped = find_shipped_schema(*name, self.cluster, any_release=manifest.kind is not None)
            self._schemas[name] = _compile_own_schema(own, self._release) if own else shipped.check if shipped else None
        return self._schemas[name]

    def _report_missing_schema(self, manifest: Manifest) -> Problem:
        """An object without a schema was not checked, and the user must know."""
        # Imported late: most kinds have a schema.
        from jobgen.check.missing_schemas import (
            RENAMED_GROUPS,
            WITHOUT_CRDS,
            describe_version,
            find_misspelled,
            suggest_import,
        )

        obj, name, place = manifest.object, manifest.kind_name, At(manifest.object, "kind")
        api_version = as_text(obj.get("apiVersion"))
        group = api_version.rpartition("/")[0]
        for (known, kind), described in self.kinds.items():
            if kind == name and known != api_version and known.rpartition("/")[0] == group:
                message = describe_version(api_version, described.name, known)
                written = At(obj, "apiVersion")
                newer = (FixStep("set", written, known),)
                return Problem("old-api-version", message, written, category="schema", fix_steps=newer, safe=False)
        if group in RENAMED_GROUPS:
            renamed = RENAMED_GROUPS[group]
            message = f"the group `{group}` was renamed, and current releases serve `{name}` as one of `{renamed}`"
            at = At(obj, "apiVersion")
            advice = "use that group, and read what else changed"
            return Problem(
                "old-api-version", Sentence("{}; {}", message, advice), at, category="schema", severity=Severity.WARNING
            )
        defined = sorted({definition.kind for definition in self._find_definitions(group)})
        meant = name[:1].upper() + name[1:]
        if meant != name and (meant in defined or is_shipped_kind(api_version, meant)):
            message = f"`{name}` is not a kind: kinds start with a capital letter; write `{meant}`"
            return Problem("unknown-kind", message, place, category="schema", severity=Severity.WARNING)
        if defined:
            # Kinds of one group often share most of their letters.
            close = find_closest(name, defined, 0.8)
            hint = f"did you mean `{close}`?" if close else "add its CRD, or check that the kind still exists"
            message = f"no CRD in these files defines `{name}` of `{group}`, so {UNCHECKED}; {hint}"
            return Problem("kind-without-crd", message, place, category="schema", severity=Severity.WARNING)
        if misspelled := find_misspelled(api_version, name):
            message, field, replacement = misspelled
            at = At(obj, field)
            rule = "unknown-kind" if field == "kind" else "old-api-version"
            steps = (FixStep("set", at, replacement),)
            return Problem(rule, message, at, category="schema", fix_steps=steps, safe=False)
        message = f"there is no schema for `{name}` of `{api_version}`, so {UNCHECKED}"
        known_version = find_known_version(api_version, name)
        if known_version:
            message += f"; use `{known_version}`, which jobgen knows, or add the schema of this version"
        if group in WITHOUT_CRDS:
            message += f"; the API server of OpenShift has the kinds of `{group}`, so there is no CRD to add"
            return Problem("missing-schema", message, place, category="meta", severity=Severity.INFO)
        message += suggest_import(group, name)
        return Problem("missing-schema", message, place, category="meta", severity=Severity.WARNING)


def _replace(tree: Any, path: ObjectPath, value: Plain) -> Any:
    """Return a copy of a tree with another node at a path."""
    if not path:
        return value
    step, *rest = path
    if isinstance(tree, list):
        return [_replace(each, tuple(rest), value) if at == step else each for at, each in enumerate(tree)]
    return {key: _replace(each, tuple(rest), value) if key == step else each for key, each in tree.items()}


@cache
def _check_metadata() -> _SchemaCheck:
    """The check of an object without a schema: its metadata, which is the same for all kinds."""
    return compile_structural({})


def _name_kind(manifest: Manifest) -> tuple[str, str]:
    name = manifest.kind.name if manifest.kind else manifest.kind_name
    return as_text(manifest.object.get("apiVersion")), name


def _compile_own_schema(schema: File, release: Release) -> _SchemaCheck:
    """The check of a repository's schema; if the schema is broken, a check that reports this."""
    # Imported late: most repositories have no schemas of their own.
    from jobgen.check.schema.untrusted import BrokenSchemaError, compile_untrusted, list_ignored_keywords

    path, content, finding = schema

    def report_broken(reason: str, obj: Mapping[str, Plain]) -> list[Problem]:
        message = Sentence("the schema `{}` cannot be used: {}", path, reason)
        return [Problem("broken-schema", message, At(obj, "kind"), category="meta")]

    try:
        check = compile_untrusted(content, release)
    except BrokenSchemaError as error:
        return partial(report_broken, finding.message if finding else str(error))
    words = ", ".join(f"`{word}`" for word in list_ignored_keywords(content))
    ignored = f"the schema `{path}` has {words}, which is not evaluated, because a CRD cannot have it"
    ignored += "; write an `x-kubernetes-validations` rule instead"

    def check_or_report(obj: Mapping[str, Plain]) -> list[Problem]:
        try:
            found = check(obj)
        except BrokenSchemaError as error:
            return report_broken(str(error), obj)
        if words:
            rule, place = "ignored-schema-keyword", At(obj, "kind")
            found = [Problem(rule, ignored, place, category="meta", severity=Severity.WARNING), *found]
        return found

    return check_or_report


def _run_stage(obj: Mapping[str, Plain], find: Callable[[], Iterable[Problem]]) -> list[Problem]:
    """The problems that one stage of the validation finds; an exception in it hides nothing that the others find."""
    problems: list[Problem] = []
    try:
        problems += find()
    except Exception as error:  # noqa: BLE001 -- a faulty check must not hide what the others find
        problems.append(report_exception(_VALIDATION, error, obj))
    return problems


def _validate_pod(pod: Pod, release: Release) -> list[Problem]:
    """Why the API server refuses the pods of a template, with the restart policy that their operator gives them."""
    if pod.part == "patch":
        return validate_pod_patch(pod.template, replaces_resources=pod.role is not None, release=release)
    # Kueue creates no pods from the templates of a Workload.
    if (pod.manifest.group, pod.manifest.kind_name) == ("kueue.x-k8s.io", "Workload"):
        return []
    kind = pod.manifest.kind
    if is_workload(pod.manifest.group, pod.manifest.kind_name):
        return validate_workload_pod(pod, release)
    paths = kind.added_volumes if kind else list_claim_paths(pod.manifest.group, pod.manifest.kind_name)
    volumes = [as_text(node) for path in paths for node in find_nodes(pod.manifest.object, path)]
    if pod.undeclared_volumes:
        # Imported late: few pods mount what they do not declare.
        from jobgen.k8s.injected_volumes import list_injected_volumes

        volumes += list_injected_volumes(pod)
    if pod.role is None:
        needs_images = pod.part == "whole"
        return validate_pod_template(pod.template, added_volumes=volumes, needs_images=needs_images, release=release)
    has_template = kind is not None and find_template(pod.role.replica_spec, kind.replicas) is pod.template
    # The operator adds the containers of a base without any.
    if kind is None or not has_template or (pod.part == "base" and not pod.containers):
        return []
    if kind.replicas.keeps_restart_policy:
        return validate_pod_template(pod.template, added_volumes=volumes, count=pod.role.count, release=release)
    return _validate_pod_of_role(pod, pod.role, volumes, release)


def _validate_pod_of_role(pod: Pod, role: Role, volumes: list[str], release: Release) -> list[Problem]:
    # Operators have a default, and none of them uses the policy of the template.
    policy = role.restart_policy_node or role.restart_policy or "OnFailure"
    if policy == "ExitCode":
        # This is a policy of the operator; the pods get `Never`.
        policy = "Never"
    # `Always` is not suggested: a role that completes the job would never complete it.
    supported = [name for name in pod.manifest.kind.restart_policies if name != "Always"] if pod.manifest.kind else ()
    place = None
    if policy not in _RESTART_POLICIES and pod.manifest.kind:
        place = find_at(role.replica_spec, *map(str, pod.manifest.kind.replicas.restart_policy))
    name = name_last_pod(role)
    is_valid_name = is_dns_subdomain(name)
    problems = validate_pod_template(
        pod.template,
        policy,
        name if is_valid_name else "",
        policy_place=place,
        restart_policies=supported,
        added_volumes=volumes,
        count=role.count,
        release=release,
    )
    if problems:
        # Imported late: most pods are right.
        from jobgen.check.bare_roles import place_in_role

        problems = place_in_role(problems, role)
    # Rules report names that are too long.
    if name and not is_valid_name and len(name) < MAX_SUBDOMAIN and is_dns_subdomain(pod.manifest.name):
        message = Sentence("role `{}` gives a pod the invalid name `{}`; {}", role.replica_type, name, DNS_SUBDOMAIN)
        problems.append(Problem("invalid-name", message, role.place, category="pod"))
    return problems
