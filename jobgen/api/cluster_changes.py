"""What the mutating policies of a repository change in an object when the cluster creates it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from jobgen.model.data import Node
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.environment import EnvironmentRunner
from jobgen.repo import layout

_KIND = b"MutatingAdmissionPolicy"


class ClusterChange(NamedTuple):
    """A field that a mutating policy changes; the values are not shown, because they may be secrets."""

    environment: str
    policy: str
    field: str
    """A JSON pointer; empty if the policy fails."""
    action: str
    """`adds`, `changes`, `removes`, or `fails: ` with the reason."""


def list_cluster_changes(project: ProjectConfig, env: str, obj: Mapping[str, Node]) -> Iterator[ClusterChange]:
    """The changes of an object in the order in which the policies make them."""
    files = tuple(layout.read_own_policies(project.root))
    if not any(_KIND in file.content for file in files):
        return
    # Imported late: most repositories have no such policies.
    from jobgen.check.policy.mutate import list_changed_paths
    from jobgen.pipeline.load_policies import load_policies

    checker = EnvironmentRunner(project, env, lambda: load_policies(project.root).policies).checker
    if checker.evaluator is None:
        return
    for change in checker.evaluator.list_changes(obj, checker.schema_source):
        if change.error:
            yield ClusterChange(env, change.policy, "", f"fails: {change.error}")
        for pointer, before, after in list_changed_paths(change.before, change.after):
            action = "adds" if before is None else "removes" if after is None else "changes"
            yield ClusterChange(env, change.policy, pointer, action)
