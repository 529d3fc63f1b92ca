"""What the cluster will say of an object: its schema, its metadata, and the pods that its operator makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from jobgen import repo
from jobgen.admission import pod_problems
from jobgen.admission.objects import metadata_problems
from jobgen.kinds import Kind
from jobgen.model import Data, Problem, Severity, bare, derive
from jobgen.structural import compile_structural

Schemas = dict[str, Callable[[Data], list[Problem]] | None]

_SERVER_FIELDS = (
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
# The schema has said it already, where it has said anything.
_SAID_BY_SCHEMA = frozenset(("invalid-quantity", "missing-pod-field"))


class Judge:
    """Judges the objects of one cluster; schemas are read and compiled when first needed."""

    def __init__(self, root: Path, kinds: Sequence[Kind], operators: Mapping[str, str]) -> None:
        self.root = root
        self.kinds = {
            (str(bare(kind.api_version)), name): kind for kind in kinds for name in (kind.name, *kind.spellings)
        }
        self.operators = operators
        self._schemas: Schemas = {}

    def __call__(self, made: Data) -> list[Problem]:
        """Everything that is wrong with an object."""
        api_version, name = str(bare(made.get("apiVersion"))), str(bare(made.get("kind")))
        kind = self.kinds.get((api_version, name))
        check = self._check(api_version, kind.name if kind else name, kind)
        if check is None:
            return [*metadata_problems(made.get("metadata")), self._unchecked(api_version, name, made)]
        problems = check(made)
        problems += metadata_problems(made.get("metadata"))
        problems += _server_fields(made)
        if kind is not None:
            found = [problem for template in templates(made, kind) for problem in pod_problems(*template)]
            if problems:
                found = [problem for problem in found if problem.rule not in _SAID_BY_SCHEMA]
            problems += found
        return problems

    def _check(self, api_version: str, name: str, kind: Kind | None) -> Callable[[Data], list[Problem]] | None:
        group, _, version = api_version.rpartition("/")
        file = f"{group}/{name.lower()}_{version}{self._shape(kind)}.json"
        if file not in self._schemas:
            text = repo.schema(self.root, file)
            self._schemas[file] = compile_structural(json.loads(text)) if text is not None else None
        return self._schemas[file]

    def _shape(self, kind: Kind | None) -> str:
        """The ending of the schema for the declared version of a kind's operator."""
        declared = self.operators.get(kind.operator, "") if kind else ""
        older = [span for span in kind.older if declared and span.holds(declared)] if kind else []
        return f"-until-{older[0].until}" if older else ""

    def _unchecked(self, api_version: str, name: str, made: Data) -> Problem:
        """A kind without a schema is told, never passed in silence."""
        group = api_version.rpartition("/")[0]
        for (known, kind), described in self.kinds.items():
            if kind == name and known.rpartition("/")[0] == group:
                message = f"`{api_version}` is an old version of {described.name}; use `{known}`"
                return Problem("old-api-version", message, made.get("apiVersion"), category="schema")
        message = f"there is no schema for `{name}` of `{api_version}`, so it was not checked"
        return Problem("missing-schema", message, made.get("kind"), category="meta", severity=Severity.WARNING)


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
            yield replica["template"], derive(policy, "Never") if bare(policy) == "ExitCode" else policy


def _server_fields(made: Data) -> Iterator[Problem]:
    """What a cluster wrote into an object that was exported from it."""
    metadata = made.get("metadata")
    holders = [(made, ("status",)), (metadata if isinstance(metadata, dict) else {}, _SERVER_FIELDS)]
    for holder, names in holders:
        for key in holder:
            if key in names:
                message = f"`{key}` is written by the cluster; take it out of the manifest"
                yield Problem("server-field", message, key, category="gitops", severity=Severity.WARNING)
