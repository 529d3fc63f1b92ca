"""What the cluster will say of an object: its schema, its metadata, and the pods that its operator makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jobgen.check.admission import validate_pod_template
from jobgen.check.admission.objects import validate_object_metadata
from jobgen.check.rule_runner import RuleRunner
from jobgen.check.rules import Fact, Rule
from jobgen.check.schema.crd_schema import compile_structural
from jobgen.check.schema.untrusted import BrokenSchemaError, compile_foreign
from jobgen.k8s.objects import Manifest, as_text
from jobgen.model.data import Data, value_of, with_value
from jobgen.model.finding import FixStep, Problem, Severity
from jobgen.model.limits import MAX_FINDINGS, TOO_MANY_FINDINGS
from jobgen.repo import layout
from jobgen.spec.kinds import Kind
from jobgen.spec.overlay import Cluster

if TYPE_CHECKING:
    from jobgen.check.policy import PolicyEvaluator

Schemas = dict[str, Callable[[Data], list[Problem]] | None]

# The schema has said it already, where it has said anything.
_SAID_BY_SCHEMA = frozenset(("invalid-quantity", "missing-pod-field"))
# What is not of the shape that its schema says makes no sense to the rules.
_OF_ANOTHER_SHAPE = frozenset(("wrong-type",))


class Checker:
    """Judges the objects of one cluster; schemas are read and compiled when first needed."""

    def __init__(
        self,
        root: Path,
        kinds: Sequence[Kind],
        cluster: Cluster,
        rules: Iterable[Rule] = (),
        evaluator: PolicyEvaluator | None = None,
    ) -> None:
        self.root = root
        self.kinds = {
            (str(value_of(kind.api_version)), name): kind for kind in kinds for name in (kind.name, *kind.aliases)
        }
        self.cluster = cluster
        self.rulebook = RuleRunner(rules)
        self.evaluator = evaluator
        self._schemas: Schemas = {}

    def __call__(self, made: Data) -> list[Problem]:
        """Everything that is wrong with an object."""
        manifest = self.manifest(made)
        problems = self.admission(manifest)
        if not any(problem.rule in _OF_ANOTHER_SHAPE for problem in problems):
            problems += self.rulebook.problems(manifest)
        if self.evaluator is not None:
            problems += self.evaluator.problems(made)
        if len(problems) > MAX_FINDINGS:
            # To find the places of more would take long, and nobody reads them.
            rest = Problem("too-many-faults", TOO_MANY_FINDINGS, problems[MAX_FINDINGS].node)
            problems[MAX_FINDINGS:] = [rest]
        return problems

    def has_problems(self, manifest: Manifest) -> bool:
        """Whether anything is wrong with an object; stops at the first check that finds something."""
        if self.admission(manifest) or self.rulebook.problems(manifest):
            return True
        return self.evaluator is not None and any(True for _ in self.evaluator.problems(manifest.object))

    def rows(self, manifest: Manifest) -> Iterator[tuple[str, Fact]]:
        """What the rules about all objects keep of this one."""
        return self.rulebook.rows(manifest)

    def manifest(self, made: Data) -> Manifest:
        """The object as rules look at it."""
        api_version, name = str(value_of(made.get("apiVersion"))), str(value_of(made.get("kind")))
        return Manifest(made, self.kinds.get((api_version, name)), self.cluster)

    def admission(self, manifest: Manifest) -> list[Problem]:
        """Why the API server refuses the object, or the pods that its operator makes of it."""
        made, kind = manifest.object, manifest.kind
        check = self._check(self.schema_of(manifest))
        if check is None:
            return [*validate_object_metadata(made.get("metadata")), self._unchecked(manifest)]
        problems = check(made)
        problems += validate_object_metadata(made.get("metadata"))
        if kind is not None:
            found = [problem for template in templates(made, kind) for problem in validate_pod_template(*template)]
            if problems:
                found = [problem for problem in found if problem.rule not in _SAID_BY_SCHEMA]
            problems += found
        return problems

    def schema_of(self, manifest: Manifest) -> str:
        """The file in a schema folder that holds the schema of an object, as this cluster has it."""
        name = manifest.kind.name if manifest.kind else manifest.kind_name
        group, _, version = as_text(manifest.object.get("apiVersion")).rpartition("/")
        return f"{group}/{name.lower()}_{version}{self._shape(manifest.kind)}.json"

    def _check(self, file: str) -> Callable[[Data], list[Problem]] | None:
        if file not in self._schemas:
            found = layout.read_schema(self.root, file)
            self._schemas[file] = _compiled(found) if found is not None else None
        return self._schemas[file]

    def _shape(self, kind: Kind | None) -> str:
        """The ending of the schema for the declared version of a kind's operator."""
        declared = self.cluster.operators.get(kind.operator, "") if kind else ""
        older = [span for span in kind.older if declared and span.contains(declared)] if kind else []
        return f"-until-{older[0].until}" if older else ""

    def _unchecked(self, manifest: Manifest) -> Problem:
        """A kind without a schema is told, never passed in silence."""
        made, name = manifest.object, manifest.kind_name
        api_version = as_text(made.get("apiVersion"))
        group = api_version.rpartition("/")[0]
        for (known, kind), described in self.kinds.items():
            if kind == name and known != api_version and known.rpartition("/")[0] == group:
                message = f"`{api_version}` is an old version of {described.name}; use `{known}`"
                node = made.get("apiVersion")
                newer = (FixStep("set", node, known),)
                return Problem("old-api-version", message, node, category="schema", fix_steps=newer, safe=False)
        message = f"there is no schema for `{name}` of `{api_version}`, so it was not checked"
        return Problem("missing-schema", message, made.get("kind"), category="meta", severity=Severity.WARNING)


def _compiled(schema: layout.SchemaFile) -> Callable[[Data], list[Problem]]:
    """The check of a schema; of one that is broken, that it is."""
    path, content, finding = schema.file
    if schema.is_shipped:
        return compile_structural(json.loads(content))
    try:
        check = compile_foreign(content)
    except BrokenSchemaError as fault:
        reason = finding.message if finding else str(fault)
        return lambda made: [_broken(path, reason, made)]

    def guarded(made: Data) -> list[Problem]:
        try:
            return check(made)
        except BrokenSchemaError as fault:
            return [_broken(path, str(fault), made)]

    return guarded


def _broken(path: str, reason: str, made: Data) -> Problem:
    message = f"the schema `{path}` cannot be used: {reason}"
    return Problem("broken-schema", message, made.get("kind"), category="meta")


def templates(made: Data, kind: Kind) -> Iterator[tuple[Data, Data]]:
    """The pod templates of an object, each with the restart policy that its operator gives the pods."""
    node = made
    for step in kind.replicas_at:
        node = node.get(str(step)) if isinstance(node, dict) else None
    replicas = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for replica in replicas:
        if isinstance(replica, dict) and isinstance(replica.get("template"), dict):
            policy = replica.get("restartPolicy")
            # ExitCode is the operator's own: the pods get Never.
            yield replica["template"], with_value(policy, "Never") if value_of(policy) == "ExitCode" else policy
