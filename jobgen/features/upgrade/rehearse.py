"""Check, decide about and create everything at the declared versions and at others, and compare.

The checks of a lint, the decisions of Kueue and the pods of operators are functions of the declared versions. So a
rehearsal is the same work twice. A job that cannot be rendered is left out, and named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from jobgen.api.errors import UsageError
from jobgen.api.lint import finish_findings
from jobgen.api.project import Project, select_environments
from jobgen.features.convert.operators.compare import PodDifference, compare_pods
from jobgen.features.convert.operators.create import create_pods
from jobgen.features.kueue.queue import QueuedWorkload, queue
from jobgen.features.upgrade.facts import Action, Requirement, find_broken, order_changes, read_actions
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.pipeline.lint_checks import LintChecks
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import Rendered
from jobgen.rendering.left_out import LeftOutFile, join_environments
from jobgen.rendering.run import Run
from jobgen.spec.kinds import parse_version
from jobgen.spec.overlay import Cluster

FAILING = frozenset(("never", "unmanaged"))
"""Decisions of Kueue after which a job does not run as it should."""
_QUEUE_RULES = frozenset(("ineffective-queue-label", "inadmissible-job"))
"""Rules that report a decision of Kueue."""


class VersionChange(NamedTuple):
    """A component whose version changes."""

    component: str
    old: str
    """The declared version; empty if none is declared."""
    new: str

    @property
    def is_downgrade(self) -> bool:
        """Return True if the declared version is the newer one."""
        return bool(self.old) and parse_version(self.new) < parse_version(self.old)


class Step(NamedTuple):
    """One component to upgrade, at its place in the order."""

    change: VersionChange
    actions: tuple[Action, ...]
    broken: tuple[Requirement, ...]
    """What no longer fits together after this step, although it did before."""


class QueueChange(NamedTuple):
    """A job about which Kueue decides differently."""

    workload: QueuedWorkload
    """The job with the decision after the upgrade."""
    before: str


class PodChange(NamedTuple):
    """Something that an operator writes into the pods of a job, and the other version of it does not."""

    kind: str
    name: str
    location: Location
    difference: PodDifference


class EnvironmentUpgrade(NamedTuple):
    """What an upgrade does to one environment."""

    environment: str
    changes: tuple[VersionChange, ...]
    refused: tuple[Finding, ...]
    """Errors that only the new versions have."""
    warnings: tuple[Finding, ...]
    """Warnings that only the new versions have."""
    solved: tuple[Finding, ...]
    """Errors and warnings that only the old versions have."""
    queues: tuple[QueueChange, ...]
    pods: tuple[PodChange, ...]
    steps: tuple[Step, ...]
    broken: tuple[Requirement, ...]
    """What does not fit together after the upgrade."""

    @property
    def failed(self) -> bool:
        """Return True if something would be refused, never admitted, or run unmanaged."""
        return bool(self.refused) or any(each.workload.decision in FAILING for each in self.queues)


class Rehearsal(NamedTuple):
    """What an upgrade does to the environments of a repository."""

    environments: tuple[EnvironmentUpgrade, ...]
    objects: int
    left_out: tuple[LeftOutFile, ...]
    """Jobs that cannot be rendered at all; the answer is about the others."""
    findings: tuple[Finding, ...]
    """The errors of these jobs."""

    @property
    def failed(self) -> bool:
        """Return True if something would be refused, never admitted, or run unmanaged, or could not be checked."""
        return bool(self.left_out) or any(each.failed for each in self.environments)


def rehearse(project: Project, versions: Mapping[str, str], environments: Sequence[str] = ()) -> Rehearsal:
    """Rehearse an upgrade to some versions of components, in some environments or in all."""
    selected = select_environments(project.config, environments)
    changed = _set_versions(project.config, versions)
    before, after = (_Revision(project, config, selected) for config in (project.config, changed))
    found = [_compare(env, before, after, versions) for env in selected if env in before.clusters]
    left_out = tuple(join_environments(before.run.not_rendered))
    errors = dict.fromkeys(finding for each in left_out for finding in each.errors)
    return Rehearsal(tuple(found), len(before.objects), left_out, tuple(errors))


def _set_versions(config: ProjectConfig, versions: Mapping[str, str]) -> ProjectConfig:
    # What was read from the store has the declared versions.
    return config._replace(versions=dict(versions), layers="")


class _Revision:
    """The same repository with one set of versions: its findings, objects and decisions."""

    def __init__(self, project: Project, config: ProjectConfig, environments: Sequence[str]) -> None:
        self.config = config
        self.run = Run(config, environments, finish=_keep, checks=LintChecks(keeps_objects=True))
        self.objects: list[Rendered] = list(self.run)
        self.findings, _ = finish_findings(self.run.findings, config.mandatory)
        self.clusters: dict[str, Cluster] = {
            runner.name: runner.expander.environment.cluster for runner in self.run.runners
        }
        self._decisions: dict[tuple[str, ...], QueuedWorkload] = {}
        # Without a queue, there is nothing to decide.
        with suppress(UsageError):
            result = queue(project._replace(config=config), environments=environments)
            self._decisions = {
                (each.environment, each.kind, each.namespace, each.name): each for each in result.workloads
            }

    def list_findings(self, env: str) -> list[Finding]:
        """Return the findings about an environment."""
        return [each for each in self.findings if env in (each.env, "") or env in each.env.split(", ")]

    def list_decisions(self, env: str) -> dict[tuple[str, ...], QueuedWorkload]:
        """Return the decisions about the jobs of an environment."""
        return {key: each for key, each in self._decisions.items() if key[0] == env}

    def list_objects(self, env: str) -> dict[tuple[str, ...], Rendered]:
        """Return the objects of an environment by kind, namespace and name."""
        objects = (each for each in self.objects if each.env == env)
        return {(each.identity.kind, each.identity.namespace, each.identity.name): each for each in objects}


def _keep(obj: Any) -> Any:
    return obj


def _compare(env: str, before: _Revision, after: _Revision, versions: Mapping[str, str]) -> EnvironmentUpgrade:
    old, new = before.clusters[env], after.clusters.get(env, before.clusters[env])
    changes = {
        name: VersionChange(name, old.find_version(name), version)
        for name, version in versions.items()
        if _pad(old.find_version(name)) != _pad(version)
    }
    was, now = ({_identify(finding): finding for finding in each.list_findings(env)} for each in (before, after))
    added = [finding for key, finding in now.items() if key not in was]
    # An object that is refused as a whole is not checked any further.
    refused = {finding.object for finding in added if finding.severity is Severity.ERROR}
    solved = [finding for key, finding in was.items() if key not in now and finding.object not in refused]
    kinds = {Manifest(each.object, None, old).kind_name for each in before.objects if each.env == env}
    states = [{"kubernetes": each.kubernetes, **each.operators} for each in (old, new)]
    steps = [
        Step(
            changes[name],
            tuple(
                each
                for each in read_actions()
                if each.component == name and each.concerns(changes[name].old, changes[name].new, kinds)
            ),
            tuple(broken),
        )
        for name, broken in order_changes(*states)
        if name in changes
    ]
    queues = tuple(_compare_queues(before.list_decisions(env), after.list_decisions(env)))
    # What the queue decides differently is said once.
    queued = {(change.workload.kind, change.workload.name) for change in queues}
    added = [
        each
        for each in added
        if each.rule not in _QUEUE_RULES or not each.object or (each.object.kind, each.object.name) not in queued
    ]
    return EnvironmentUpgrade(
        env,
        tuple(changes.values()),
        tuple(each for each in added if each.severity is Severity.ERROR),
        tuple(each for each in added if each.severity is Severity.WARNING),
        tuple(each for each in solved if each.severity is not Severity.INFO),
        queues,
        tuple(_compare_pods(before.list_objects(env), after.list_objects(env), old, new)),
        tuple(steps),
        tuple(find_broken(states[1])),
    )


def _identify(finding: Finding) -> tuple[object, ...]:
    """Return what two findings have in common, although their messages name different versions."""
    return finding.rule, finding.severity, finding.location


def _pad(version: str) -> tuple[int, ...]:
    return (*parse_version(version), 0, 0)[:3] if version else ()


def _compare_queues(
    before: Mapping[tuple[str, ...], QueuedWorkload], after: Mapping[tuple[str, ...], QueuedWorkload]
) -> Iterator[QueueChange]:
    for key, now in after.items():
        was = before.get(key)
        if was is not None and was.decision != now.decision:
            yield QueueChange(now, was.decision)


def _compare_pods(
    before: Mapping[tuple[str, ...], Rendered], after: Mapping[tuple[str, ...], Rendered], old: Cluster, new: Cluster
) -> Iterator[PodChange]:
    """Compare the pods that both versions of an operator create."""
    sides = [[each.object for each in objects.values()] for objects in (before, after)]
    for key, was in before.items():
        now = after.get(key)
        if now is None:
            continue
        pods = [
            create_pods(each.object, others, cluster)
            for each, others, cluster in ((was, sides[0], old), (now, sides[1], new))
        ]
        for difference in compare_pods(*pods) if all(pods) else ():
            yield PodChange(was.identity.kind, was.identity.name, was.location, difference)
