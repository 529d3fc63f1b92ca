"""Check, decide about and create everything at the declared versions and at others, compare, and write the steps.

The checks of a lint, the decisions of Kueue and the pods of operators are functions of the declared versions. So a
rehearsal is the same work twice. A job that cannot be rendered is left out, and named. With `--fix`, a step declares
the new version of a component where the old one is declared, and applies the fixes of what only the new version
reports. A file in which fixes lead to more errors stays as it was.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from jobgen.api.errors import UsageError
from jobgen.api.fix import apply_fixes
from jobgen.api.lint import lint
from jobgen.api.project import Project, select_environments
from jobgen.features.convert.operators.compare import PodDifference, compare_pods
from jobgen.features.convert.operators.create import create_pods
from jobgen.features.kueue.queue import QueuedWorkload, queue
from jobgen.features.upgrade.facts import Action, Requirement, find_broken, order_changes, read_actions
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Location, location_of, value_of
from jobgen.model.finding import Finding, Severity, TextEdit, pluralize
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.finish import OF_REPORT, Finishing, finish
from jobgen.pipeline.lint_checks import LintTask
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import Rendered
from jobgen.rendering.left_out import LeftOutFile, join_environments
from jobgen.rendering.render_task import render_jobs
from jobgen.repo import git
from jobgen.repo.atomic import replace_file
from jobgen.reports.sections import EnvironmentSections, Section, SectionReport
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
    left_out = tuple(join_environments(before.result.not_rendered))
    errors = dict.fromkeys(finding for each in left_out for finding in each.errors)
    return Rehearsal(tuple(found), len(before.objects), left_out, tuple(errors))


def _set_versions(config: ProjectConfig, versions: Mapping[str, str]) -> ProjectConfig:
    # What was read from the store has the declared versions.
    return config._replace(versions=dict(versions), digest="")


class _Revision:
    """The same repository with one set of versions: its findings, objects and decisions."""

    def __init__(self, project: Project, config: ProjectConfig, environments: Sequence[str]) -> None:
        self.config = config
        self.result = render_jobs(config, environments, task=LintTask(keeps_objects=True))
        self.objects = self.result.objects
        self.findings = finish(self.result.findings, Finishing(config.mandatory), OF_REPORT)
        self.clusters: dict[str, Cluster] = {
            runner.name: runner.expander.environment.cluster for runner in self.result.layers.runners
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


VERSION = 1
"""The version of the data."""
_SKEW_POLICY = "kubernetes/website:content/en/releases/version-skew-policy.md"


def describe(rehearsal: Rehearsal) -> SectionReport:
    """Return what a rehearsal says, as sections and as data; docs/upgrade.md describes the data."""
    left_out = [each.describe() for each in rehearsal.left_out]
    data = {
        "version": VERSION,
        "failed": rehearsal.failed,
        "objects": rehearsal.objects,
        "environments": list(map(_to_plain, rehearsal.environments)),
        "leftOut": left_out,
    }
    parts = [EnvironmentSections(each.environment, list(list_sections(each))) for each in rehearsal.environments]
    return SectionReport("Upgrade", summarize(rehearsal, len(left_out)), parts, left_out, data)


def summarize(rehearsal: Rehearsal, left_out: int) -> str:
    """Return what an upgrade does, in one line."""
    errors = [each.rule in _QUEUE_RULES for upgrade in rehearsal.environments for each in upgrade.refused]
    refused, queued = errors.count(False), errors.count(True)
    decisions = [change.workload.decision for each in rehearsal.environments for change in each.queues]
    parts = [
        f"{refused} refused" if refused else "",
        f"{queued} not admitted or not managed by Kueue" if queued else "",
        *(f"{decisions.count(each)} {each}" for each in sorted(FAILING) if each in decisions),
    ]
    if left_out:
        parts.append(f"{left_out} not rehearsed, because of errors")
    what = ", ".join(filter(None, parts)) or "nothing would be refused, never admitted, or run unmanaged"
    where = pluralize(len(rehearsal.environments), "environment")
    return f"{pluralize(rehearsal.objects, 'object')} in {where} rehearsed: {what}"


def list_sections(upgrade: EnvironmentUpgrade) -> Iterator[Section]:
    """Yield the sections of an environment that have something to say."""
    refused = (each for each in upgrade.refused if each.rule not in _QUEUE_RULES)
    # A job that runs without its quota is not refused.
    queued = (_describe_finding(each) for each in upgrade.refused if each.rule in _QUEUE_RULES)
    found = (
        Section("Versions", tuple(map(_describe_change, upgrade.changes))),
        Section("Refused", tuple(map(_describe_finding, refused))),
        Section("Queues", (*_list_queue_lines(upgrade), *queued)),
        Section("Pods that differ", tuple(_list_pod_lines(upgrade))),
        Section("New warnings", tuple(map(_describe_finding, upgrade.warnings))),
        Section("No longer reported", tuple(map(_describe_finding, upgrade.solved))),
        Section("Versions that do not fit together", tuple(map(_describe_requirement, upgrade.broken))),
        Section("Steps", tuple(_list_steps(upgrade))),
    )
    return (section for section in found if section.lines)


def _describe_change(change: VersionChange) -> str:
    shown = f"{change.component} {change.old or '(not declared)'} → {change.new}"
    return f"{shown}, a downgrade" if change.is_downgrade else shown


def _describe_finding(finding: Finding) -> str:
    return f"{finding.location}: {finding.message} [{finding.rule}]"


def _list_queue_lines(upgrade: EnvironmentUpgrade) -> Iterator[str]:
    for workload, before in upgrade.queues:
        yield f"{workload.kind} {workload.name}: {before} → {workload.decision}"
        yield f"  {workload.reason}"


def _list_pod_lines(upgrade: EnvironmentUpgrade) -> Iterator[str]:
    """Yield the differences, each once with the jobs that have it."""
    jobs: dict[str, list[str]] = {}
    for change in upgrade.pods:
        jobs.setdefault(_describe_pods(change), []).append(f"{change.kind} {change.name}")
    for text, names in jobs.items():
        several = dict.fromkeys(names)
        more = f" and {len(several) - 3} more" if len(several) > 3 else ""
        yield f"{text} ({', '.join([*several][:3])}{more})"


def _describe_pods(change: PodChange) -> str:
    difference = change.difference
    before, after = (_show(each) for each in (difference.before, difference.after))
    return f"{difference.field} of {difference.where}: {before} → {after}"


def _show(value: object) -> str:
    text = "(none)" if value is None else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _describe_requirement(each: Requirement) -> str:
    wanted = (f"{each.at_least} or newer" if each.at_least else "", f"before {each.below}" if each.below else "")
    return f"{each.component} needs {each.needs} {' and '.join(filter(None, wanted))}: {each.reason} ({each.source})"


def _list_steps(upgrade: EnvironmentUpgrade) -> Iterator[str]:
    for number, step in enumerate(upgrade.steps, 1):
        yield from _list_step(number, step, upgrade.broken)


def _list_step(number: int, step: Step, broken: Collection[Requirement]) -> Iterator[str]:
    yield f"{number}. {_describe_change(step.change)}"
    if between := _list_minors(step.change):
        yield f"  on the way: {between}; the control plane skips no minor release ({_SKEW_POLICY})"
    titles = {"before": "before", "with": "in the same step", "running": "running jobs", "after": "after"}
    for when, title in titles.items():
        for action in step.actions:
            if action.when == when:
                yield f"  {title}: {action.text} ({action.source})"
    for requirement in step.broken:
        until = "from here on" if requirement in broken else "until a later step"
        yield f"  {until}: {_describe_requirement(requirement)}"


def _list_minors(change: VersionChange) -> str:
    """Return the releases of Kubernetes between two of them; empty if there is none."""
    if change.component != "kubernetes" or not change.old:
        return ""
    (major, first, *_), (_, last, *_) = parse_version(change.old), parse_version(change.new)
    return ", ".join(f"{major}.{minor}" for minor in range(first + 1, min(last, first + _MOST_MINORS)))


def _to_plain(upgrade: EnvironmentUpgrade) -> dict[str, Any]:
    return {
        "environment": upgrade.environment,
        "versions": [each._asdict() for each in upgrade.changes],
        "refused": list(map(_finding_to_plain, upgrade.refused)),
        "warnings": list(map(_finding_to_plain, upgrade.warnings)),
        "solved": list(map(_finding_to_plain, upgrade.solved)),
        "queues": [{**each.workload._asdict(), "before": each.before} for each in upgrade.queues],
        "pods": [
            {
                "kind": each.kind,
                "name": each.name,
                "file": each.location.file,
                "line": each.location.line,
                "where": each.difference.where,
                "field": each.difference.field,
                "before": each.difference.before,
                "after": each.difference.after,
                "training": each.difference.training,
            }
            for each in upgrade.pods
        ],
        "broken": [each._asdict() for each in upgrade.broken],
        "steps": [
            {
                **step.change._asdict(),
                "actions": [{"when": each.when, "text": each.text, "source": each.source} for each in step.actions],
                "broken": [each._asdict() for each in step.broken],
            }
            for step in upgrade.steps
        ],
    }


def _finding_to_plain(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "message": finding.message,
        "file": finding.location.file,
        "line": finding.location.line,
    }


_MOST_ROUNDS = 5
_MOST_MINORS = 100


class WrittenStep(NamedTuple):
    """A step that was committed."""

    change: VersionChange
    files: tuple[str, ...]
    left: int
    """Errors that the new version has, and that no fix solves."""


def write_steps(project: Project, rehearsal: Rehearsal) -> Iterator[WrittenStep]:
    """Write and commit each step of a rehearsal; yield what was written. Raise a UsageError if files have changes."""
    root = project.root
    if git.find_work_tree(root) is None or git.list_changed(root):
        raise UsageError("`--fix` commits each step, so it needs a Git repository without uncommitted changes")
    for change in (change for each in rehearsal.environments for change in each.changes):
        if change.is_downgrade:
            raise UsageError(f"`--fix` writes upgrades, and {change.component} {change.old} is newer than {change.new}")
    # All environments that declare a component are upgraded in one step.
    steps = {step.change.component: step.change for each in rehearsal.environments for step in each.steps}
    for name, change in steps.items():
        known = {_identify_fault(each) for each in lint(root).findings}
        files = {*_declare(project, rehearsal.environments, name)}
        files |= _fix(root, known) if files else set()
        if files:
            git.commit_files(root, sorted(files), f"Upgrade {name} to {change.new}")
            yield WrittenStep(change, tuple(sorted(files)), len(_list_new(root, known)))


def _identify_fault(finding: Finding) -> tuple[object, ...]:
    return finding.rule, finding.severity, finding.env, finding.object, finding.pointer, finding.location.file


def _list_new(root: Path, known: Collection[tuple[object, ...]]) -> list[Finding]:
    """Return the errors that were not there before."""
    return [
        each for each in lint(root).findings if each.severity is Severity.ERROR and _identify_fault(each) not in known
    ]


def _declare(project: Project, upgrades: Sequence[EnvironmentUpgrade], name: str) -> Iterator[str]:
    """Write the new version of a component where the old one is declared; yield the files."""
    traced = config.load(project.config.layers, traced=True)
    blocks: list[Any] = [traced.settings.get("cluster", {})]
    wanted = {change.old: change.new for each in upgrades for change in each.changes if change.component == name}
    blocks += (spec.get("cluster", {}) for overlay in traced.overlays.values() for spec in overlay.specs)
    edits: dict[str, list[TextEdit]] = {}
    for block in blocks:
        nodes = [block.get("kubernetes")] if name == "kubernetes" else [block.get("operators", {}).get(name)]
        nodes += [block.get("kueue", {}).get("version")] if name == "kueue" else []
        for node in nodes:
            place = location_of(node)
            if place and str(value_of(node)) in wanted:
                edits.setdefault(place.file, []).append(TextEdit("set", place, wanted[str(value_of(node))]))
    for file, several in edits.items():
        path = project.root / file
        new, _ = apply_fixes(path.read_bytes(), file, [(edit,) for edit in several])
        replace_file(path, new, project.root)
        yield file


def _fix(root: Path, known: Collection[tuple[object, ...]]) -> set[str]:
    """Apply the fixes of what only the new versions report; return the fixed files."""
    originals: dict[str, bytes] = {}
    refused: set[str] = set()
    for _ in range(_MOST_ROUNDS):
        found = _list_new(root, known)
        errors = Counter(each.location.file for each in found)
        wanted: dict[str, list[tuple[TextEdit, ...]]] = {}
        for edits in (each.fix.edits for each in found if each.fix):
            wanted.setdefault(edits[0].location.file, []).append(edits)
        changed = False
        for file in sorted(wanted.keys() - refused):
            path = root / file
            old = path.read_bytes()
            new, _ = apply_fixes(old, file, list(dict.fromkeys(wanted[file])))
            if new == old:
                continue
            replace_file(path, new, root)
            if Counter(each.location.file for each in _list_new(root, known))[file] > errors[file]:
                replace_file(path, old, root)
                refused.add(file)
                continue
            originals.setdefault(file, old)
            changed = True
        if not changed:
            break
    return {file for file, old in originals.items() if (root / file).read_bytes() != old}
