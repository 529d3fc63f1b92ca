"""Health by rules about the status: as Lua for Argo CD and as CEL for Flux. Both give the same results.

The rules of a kind hold for suspended, failed and healthy objects, and are tried in this order. If none holds, the
object is in progress.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

from jobgen.k8s.kueue import QUEUE_LABEL, is_managed_kind
from jobgen.k8s.workloads import find_workload, list_template_paths
from jobgen.model.data import value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import NamedItem, Step
from jobgen.repo.lock import TREE
from jobgen.repo.shipped import find_shipped, read_data
from jobgen.spec.kinds import Kind

_WORKLOADS = "gitops/workloads.yaml"


def _read_lua(*names: str) -> str:
    """Return parts of a health check in `jobgen/data/gitops/`.

    Argo CD runs Lua 5.1 without the string library. If a check raises an error, the health is unknown, so the check
    tests the type of every value before it uses it.
    """
    return "\n".join((find_shipped("gitops") / f"{name}.lua").read_text("utf-8") for name in names)


def write_lua_list(texts: Iterable[str]) -> str:
    """Return a table of Lua."""
    return "{" + ", ".join(json.dumps(text, ensure_ascii=False) for text in texts) + "}"


def write_cel_list(texts: Iterable[str]) -> str:
    """Return a list of CEL."""
    return "[" + ", ".join(f"'{text}'" for text in texts) + "]"


def compare_text(texts: Collection[str]) -> str:
    """Return the part of a CEL comparison after the field: `== 'a'`, or `in ['a', 'b']`."""
    return f"in {write_cel_list(texts)}" if len(texts) > 1 else f"== '{next(iter(texts))}'"


class FieldTest(NamedTuple):
    """A field below `status` has one of these values, or none of them if `negated`."""

    path: str
    values: Sequence[str]
    negated: bool = False


class ConditionTest(NamedTuple):
    """A condition has this status, and one of these reasons if there are any."""

    type: str
    status: str = "True"
    reasons: Sequence[str] = ()


Test = FieldTest | ConditionTest
Rule = tuple[Test, ...]
"""Tests that must all hold."""


class StatusRules(NamedTuple):
    """What the status of a kind says about its health."""

    healthy: Sequence[Rule]
    failed: Sequence[Rule] = ()
    suspended: Sequence[Rule] = ()
    message: Sequence[str] = ()
    """The paths below `status` of a message; the first that is set is shown. Conditions have their own."""


def build_lua_rules(name: str, rules: StatusRules, suspend: Iterable[str]) -> str:
    """The Lua health check of a kind."""
    ordered = (("Suspended", rules.suspended), ("Degraded", rules.failed), ("Healthy", rules.healthy))
    lines = ",\n".join(
        f"  {{health = {json.dumps(health)}, tests = {{{', '.join(map(_lua_test, rule))}}}}}"
        for health, found in ordered
        for rule in found
    )
    messages = ", ".join(write_lua_list(path.split(".")) for path in rules.message)
    return f"""\
-- Health of {name}, printed by jobgen. The first rule that holds decides.
local rules = {{
{lines}
}}
local messages = {{{messages}}}
local suspend = {write_lua_list(suspend)}

{_read_lua("readers", "rules")}"""


def _lua_test(test: Test) -> str:
    if isinstance(test, ConditionTest):
        reasons = write_lua_list(test.reasons)
        return f"{{condition = {json.dumps(test.type)}, status = {json.dumps(test.status)}, reasons = {reasons}}}"
    negated = "true" if test.negated else "false"
    field, values = write_lua_list(test.path.split(".")), write_lua_list(test.values)
    return f"{{field = {field}, values = {values}, negated = {negated}}}"


def build_cel_rules(rules: StatusRules) -> dict[str, str]:
    """The CEL health checks of a kind: Flux tries `inProgress`, `failed` and `current` in this order."""
    checks = {"inProgress": rules.suspended, "failed": rules.failed, "current": rules.healthy}
    return {
        name: " ||\n".join(f"({' && '.join(map(_cel_test, rule))})" for rule in found)
        for name, found in checks.items()
        if found
    }


def _cel_test(test: Test) -> str:
    if isinstance(test, ConditionTest):
        reasons = f" && has(c.reason) && c.reason {compare_text(test.reasons)}" if test.reasons else ""
        found = f"status.conditions.exists(c, c.type == '{test.type}' && c.status == '{test.status}'{reasons})"
        return f"has(status.conditions) && {found}"
    steps = test.path.split(".")
    guards = [f"has(status.{'.'.join(steps[: count + 1])})" for count in range(len(steps))]
    field = f"status.{test.path}"
    found = f"!({field} in {write_cel_list(test.values)})" if test.negated else f"{field} {compare_text(test.values)}"
    return " && ".join([*guards, *([f"{field} != ''"] if test.negated else []), found])


class EngineWorkload(NamedTuple):
    """A kind for GitOps engines."""

    version: str
    rules: StatusRules | None = None
    """Its health; None if its conditions decide, or if it has none."""
    has_health: bool = True
    """True if Argo CD has no health check of its own, and the status of the object says how it is."""
    filled_in: Mapping[str, Sequence[str]] = {}
    """What the server fills in below items of lists: for each jq path, fields with their value in jq."""
    ignored: Sequence[str] = ()
    """Fields that controllers write, in jq."""
    queued: Sequence[str] = ()
    """Fields that Kueue writes beside `suspend` and pod templates, in jq."""


@cache
def list_workloads() -> Mapping[tuple[str, str], EngineWorkload]:
    """Return the kinds for GitOps engines of `jobgen/data/gitops/workloads.yaml`, by group and name."""
    found: dict[tuple[str, str], EngineWorkload] = {}
    for kind, fields in read_data(_WORKLOADS)["workloads"].items():
        group, _, name = kind.partition("/")
        rules = {key: _read_rules(key, value) for key, value in fields.get("rules", {}).items()}
        found[group, name] = EngineWorkload(**fields | {"rules": StatusRules(**rules) if rules else None})
    return found


def _read_rules(key: str, rules: Any) -> Any:
    if key == "message":
        return rules
    return [tuple((FieldTest if "path" in test else ConditionTest)(**test) for test in rule) for rule in rules]


def list_differences(workload: EngineWorkload) -> list[str]:
    """Differences from Git that no edit causes, in jq: a value that the server fills in where Git has none."""
    # Only the filled-in value is ignored, so that another value in Git is still a difference.
    defaults = [
        f"{path} | select(.{test}) | .{test.partition(' ')[0]}"
        for path, tests in workload.filled_in.items()
        for test in tests
    ]
    return [*defaults, *workload.ignored]


# What the documents for Argo CD and Flux are built from: the kinds, and the Git repository of the rendered tree.

QUEUE_MANAGER = "kueue.x-k8s.io/manager"
# Fields that Kueue writes to the pod templates of a job when it admits it.
INJECTED_FIELDS = ("nodeSelector", "schedulingGates", "tolerations")


class EngineKind(NamedTuple):
    """A kind with all its versions, because GitOps engines identify kinds by group and name."""

    group: str
    name: str
    versions: tuple[Kind, ...] = ()
    """Its descriptions; none for a kind that is only in the table of workloads."""

    @property
    def workload(self) -> EngineWorkload | None:
        """What the table of workloads says about it."""
        return list_workloads().get((self.group, self.name))

    @property
    def key(self) -> str:
        """The name of the kind in the settings of Argo CD."""
        return f"{self.group}_{self.name}"

    @property
    def api_version(self) -> str:
        """The first version; engines read only its group."""
        workload = self.workload
        return f"{self.group}/{workload.version}" if workload else str(value_of(self.versions[0].api_version))

    @property
    def is_job(self) -> bool:
        """Return True if it is a job; runtimes are not."""
        return self.workload is not None or any(kind.roles for kind in self.versions)

    @property
    def has_health(self) -> bool:
        """Return True if it needs a health check."""
        return self.workload.has_health if self.workload else self.is_job

    @property
    def is_queued(self) -> bool:
        """Return True if Kueue manages its jobs and writes to their objects; of other kinds, it holds back the pods."""
        if self.workload:
            return is_managed_kind(self.group, self.name) and bool(self.suspend_path)
        return any(QUEUE_LABEL in kind.fields["queue"].at for kind in self.versions if "queue" in kind.fields)

    @property
    def suspend_path(self) -> tuple[str, ...]:
        """The path of the field that suspends a job; empty if there is none."""
        if workload := find_workload(self.group, self.name):
            return workload.suspend
        paths = (kind.fields["suspend"].at for kind in self.versions if "suspend" in kind.fields)
        return _to_keys(next(paths, ()))

    @property
    def pod_paths(self) -> tuple[tuple[str, ...], ...]:
        """The paths of its pod specs, with `*` for any list item; empty for a kind without pod templates."""
        if self.workload:
            templates = list_template_paths(self.group, self.name)
            paths = {tuple("*" if isinstance(step, NamedItem) else str(step) for step in path) for path in templates}
            return tuple(sorted((*path, "spec") for path in paths))
        return tuple(sorted({path for kind in self.versions for path in _list_pod_paths(kind)}))

    @property
    def patch_paths(self) -> tuple[tuple[str, bool], ...]:
        """The paths of pod template patches in a kind without templates, and whether each patch has a `manager`."""
        shapes = [shape for kind in self.versions if kind.template for shape in kind.template.shapes]
        return tuple(sorted({(".".join(_to_keys(shape.at)), "manager" in shape.item) for shape in shapes}))


def list_engine_kinds(kinds: Iterable[Kind]) -> tuple[EngineKind, ...]:
    """The kinds that are described, and those of the table of workloads, sorted by API group and name."""
    versions: dict[tuple[str, str], tuple[Kind, ...]] = dict.fromkeys(list_workloads(), ())
    for kind in sorted(kinds, key=lambda kind: str(value_of(kind.api_version))):
        identity = str(value_of(kind.api_version)).partition("/")[0], kind.name
        versions[identity] = (*versions.get(identity, ()), kind)
    return tuple(EngineKind(*identity, described) for identity, described in sorted(versions.items()))


def _list_pod_paths(kind: Kind) -> list[tuple[str, ...]]:
    at, template = _to_keys(kind.replicas_at), (*_to_keys(kind.replicas.template), "spec")
    roles = {"map": [str(value_of(role.spelling)) for role in kind.roles.values()], "list": ["*"]}
    found = [(*_to_keys(path), "spec") for path in kind.pods]
    if kind.shape in ("map", "list", "item"):
        found += ((*_to_keys(role.at), *template) for role in kind.roles.values() if role.at)
    if kind.shape == "item":
        found.append((*at, *template))
    return [*found, *((*at, role, *template) for role in roles.get(kind.shape, ()))]


def _to_keys(path: tuple[Step, ...]) -> tuple[str, ...]:
    return tuple(map(str, path))


class GitSource(NamedTuple):
    """A Git repository with the tree that `jobgen render -o rendered` writes."""

    url: str
    revision: str
    prefix: tuple[str, ...] = ()
    """The folders between the root of the Git repository and the jobs repository."""
    has_runtimes: bool = False
    """True if the jobs repository has runtimes of TrainJobs."""
    has_teams: bool = False

    def environment_path(self, env: str) -> str:
        """The folder of an environment; for the unnamed environment, the tree itself."""
        return "/".join((*self.prefix, TREE, *([env] if env else [])))

    def input_paths(self, overlays: tuple[str, ...]) -> tuple[str, ...]:
        """All files and folders that an environment is rendered from, as absolute paths in the Git repository."""
        optional = {"runtimes": self.has_runtimes, "teams": self.has_teams}
        layers = [name for name in ("policies", "runtimes", "schemas", "teams") if optional.get(name, True)]
        names = ("jobgen.yaml", "jobs", *(f"overlays/{name}" for name in overlays), *layers)
        return tuple("/".join(("", *self.prefix, name)) for name in names)


def resource_name(env: str) -> str:
    """The name of an environment's Application or Kustomization."""
    return f"jobs-{env}" if env else "jobs"


# Health checks of jobs: the status conditions of each operator, as Lua for Argo CD and as CEL for Flux.

HEALTHY, DEGRADED, SUSPENDED, PROGRESSING = "Healthy", "Degraded", "Suspended", "Progressing"


class HealthConditions(NamedTuple):
    """The conditions that an operator sets, and the phases that take precedence over them."""

    failed: str
    finished: str
    suspended: str
    in_progress: Sequence[str] = ()
    phases: Mapping[str, str] = MappingProxyType({})

    @property
    def order(self) -> tuple[str, ...]:
        """All conditions; of two transitions in the same second, the later one in this order decides."""
        return (*self.in_progress, self.suspended, self.finished, self.failed)

    @property
    def health(self) -> dict[str, str]:
        """The health that each condition stands for."""
        in_progress = dict.fromkeys(self.in_progress, PROGRESSING)
        return in_progress | {self.suspended: SUSPENDED, self.finished: HEALTHY, self.failed: DEGRADED}


def _find_conditions(group: str) -> HealthConditions:
    """Return the conditions of a group; most operators use those of Kubeflow."""
    known = read_data(_WORKLOADS)["conditions"]
    return HealthConditions(**known.get(group, known["kubeflow.org"]))


def build_lua_check(kind: EngineKind) -> str:
    """The Lua health check of a kind, for Argo CD."""
    if kind.workload and kind.workload.rules:
        return build_lua_rules(kind.name, kind.workload.rules, kind.suspend_path)
    conditions = _find_conditions(kind.group)
    states = ",\n".join(f"  {write_lua_list((name, conditions.health[name]))}" for name in conditions.order)
    phases = ", ".join(f'{phase} = "{health}"' for phase, health in conditions.phases.items())
    return f"""\
-- Health of {kind.name}, printed by jobgen.
local states = {{
{states}
}}
local phases = {{{phases}}}
local suspend = {write_lua_list(kind.suspend_path)}

{_read_lua("ranks", "readers", "conditions")}"""


def build_cel_checks(kind: EngineKind) -> dict[str, str]:
    """The CEL health checks of a kind, for Flux: same results as in Lua; if none is true, the job is in progress.

    Flux evaluates `failed` before `current`, so a tie of the two is a failure, as in Lua.
    """
    if kind.workload and kind.workload.rules:
        return build_cel_rules(kind.workload.rules)
    conditions = _find_conditions(kind.group)
    ended = (conditions.finished, conditions.failed)
    in_progress = tuple(name for name in conditions.order if name not in ended)
    failed = _last_is([conditions.failed], conditions.order, "<=")
    finished = _last_is([conditions.finished], conditions.order, "<=")
    checks = {
        "inProgress": ((PROGRESSING, SUSPENDED), f"!has(status.conditions) || {_last_is(in_progress, ended, '<')}"),
        "failed": ((DEGRADED,), f"has(status.conditions) && {failed}"),
        "current": ((HEALTHY,), f"has(status.conditions) && {finished}"),
    }
    return {name: _check_phase(health, text, conditions.phases) for name, (health, text) in checks.items()}


def _last_is(names: Collection[str], others: Collection[str], before: str) -> str:
    """One of these conditions is true, and none of the others became true after it."""
    return f"""status.conditions.exists(c,
  c.status == 'True' && c.type {compare_text(names)} && status.conditions.all(d,
    d.status != 'True' || !(d.type in {write_cel_list(others)}) ||
    d.?lastTransitionTime.orValue('') {before} c.?lastTransitionTime.orValue('')))"""


def _check_phase(health: Collection[str], text: str, phases: Mapping[str, str]) -> str:
    """Return True if the health is one of these: by the phase if it is a known one, else by the conditions."""
    if not phases:
        return text
    names = [phase for phase, meaning in phases.items() if meaning in health]
    is_known = f"has(status.phase) && status.phase in {write_cel_list(phases)}"
    return f"{is_known} ? status.phase {compare_text(names)} :\n({text})"
