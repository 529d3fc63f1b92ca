"""Health by rules about the status: as Lua for Argo CD and as CEL for Flux. Both give the same results.

The rules of a kind hold for suspended, failed and healthy objects, and are tried in this order. If none holds, the
object is in progress.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

# Argo CD runs Lua 5.1 without the string library. If a check raises an error, the health is unknown, so the check
# tests the type of every value before it uses it.
LUA_READERS = """\
local function at(value, path)
  for _, key in ipairs(path) do
    if type(value) ~= "table" then return nil end
    value = value[key]
  end
  return value
end

local function text(value)
  if type(value) == "string" then return value end
  return ""
end
"""


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
    values: tuple[str, ...]
    negated: bool = False


class ConditionTest(NamedTuple):
    """A condition has this status, and one of these reasons if there are any."""

    type: str
    status: str = "True"
    reasons: tuple[str, ...] = ()


Test = FieldTest | ConditionTest
Rule = tuple[Test, ...]
"""Tests that must all hold."""


class StatusRules(NamedTuple):
    """What the status of a kind says about its health."""

    healthy: tuple[Rule, ...]
    failed: tuple[Rule, ...] = ()
    suspended: tuple[Rule, ...] = ()
    message: tuple[str, ...] = ()
    """The paths below `status` of a message; the first that is set is shown. Conditions have their own."""


_LUA_RULES = """\
local function contains(list, value)
  for _, item in ipairs(list) do
    if item == value then return true end
  end
  return false
end

local status = at(obj, {"status"})
local function find_condition(test)
  local conditions = at(status, {"conditions"})
  if type(conditions) ~= "table" then return nil end
  for _, condition in ipairs(conditions) do
    if at(condition, {"type"}) == test.condition and condition.status == test.status
      and (#test.reasons == 0 or contains(test.reasons, condition.reason)) then
      return condition
    end
  end
  return nil
end

local function describe(tests)
  for _, test in ipairs(tests) do
    local condition = test.condition and find_condition(test)
    if condition then
      if text(condition.message) ~= "" then return condition.message end
      return test.condition
    end
  end
  for _, path in ipairs(messages) do
    if text(at(status, path)) ~= "" then return at(status, path) end
  end
  return "in progress"
end

for _, rule in ipairs(rules) do
  local holds = true
  for _, test in ipairs(rule.tests) do
    if test.condition then
      holds = holds and find_condition(test) ~= nil
    else
      local value = text(at(status, test.field))
      holds = holds and value ~= "" and contains(test.values, value) ~= test.negated
    end
  end
  if holds then return {status = rule.health, message = describe(rule.tests)} end
end
if at(obj, suspend) == true then
  return {status = "Suspended", message = "suspended, or waiting in a queue"}
end
if status == nil then return {status = "Progressing", message = "waiting for the operator"} end
return {status = "Progressing", message = describe({})}
"""


def build_lua_rules(name: str, rules: StatusRules, suspend: Iterable[str]) -> str:
    """The Lua health check of a kind."""
    ordered = (("Suspended", rules.suspended), ("Degraded", rules.failed), ("Healthy", rules.healthy))
    lines = ",\n".join(f"  {_lua_rule(health, rule)}" for health, found in ordered for rule in found)
    messages = ", ".join(write_lua_list(path.split(".")) for path in rules.message)
    return f"""\
-- Health of {name}, printed by jobgen. The first rule that holds decides.
local rules = {{
{lines}
}}
local messages = {{{messages}}}
local suspend = {write_lua_list(suspend)}

{LUA_READERS}
{_LUA_RULES}"""


def _lua_rule(health: str, rule: Rule) -> str:
    return f"{{health = {json.dumps(health)}, tests = {{{', '.join(map(_lua_test, rule))}}}}}"


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
    return {name: " ||\n".join(map(_cel_rule, found)) for name, found in checks.items() if found}


def _cel_rule(rule: Rule) -> str:
    return "(" + " && ".join(map(_cel_test, rule)) + ")"


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
    """Whether Argo CD has no health check of its own, and the status of the object says how it is."""
    filled_in: Mapping[str, tuple[str, ...]] = {}
    """What the server fills in below items of lists: for each jq path, fields with their value in jq."""
    ignored: tuple[str, ...] = ()
    """Fields that controllers write, in jq."""
    queued: tuple[str, ...] = ()
    """Fields that Kueue writes beside `suspend` and pod templates, in jq."""


_DEPLOYMENT, _JOB = "jobDeploymentStatus", "jobStatus"
_RAY_JOB = StatusRules(
    healthy=((FieldTest(_DEPLOYMENT, ("Complete",)), FieldTest(_JOB, ("SUCCEEDED",))),),
    # A job that somebody stopped is also complete.
    failed=(
        (FieldTest(_DEPLOYMENT, ("Failed", "ValidationFailed")),),
        (FieldTest(_DEPLOYMENT, ("Complete",)), FieldTest(_JOB, ("SUCCEEDED",), negated=True)),
    ),
    suspended=((FieldTest(_DEPLOYMENT, ("Suspended", "Suspending")),),),
    message=("message", _DEPLOYMENT),
)
_RAY_CLUSTER = StatusRules(
    healthy=((ConditionTest("RayClusterProvisioned"),),),
    failed=((ConditionTest("ReplicaFailure"),),),
    suspended=((ConditionTest("RayClusterSuspended"),), (ConditionTest("RayClusterSuspending"),)),
    message=("reason",),
)
_RAY_SERVICE = StatusRules(
    healthy=((ConditionTest("Ready"),),),
    failed=((ConditionTest("Ready", "False", ("ValidationFailed", "InitializingTimeout")),),),
    suspended=((ConditionTest("Suspended"),), (ConditionTest("Suspending"),)),
)
_VOLCANO_JOB = StatusRules(
    healthy=((FieldTest("state.phase", ("Completed",)),),),
    failed=((FieldTest("state.phase", ("Failed", "Aborted", "Terminated")),),),
    message=("state.message", "state.reason", "state.phase"),
)
_LEADER_WORKER_SET = StatusRules(healthy=((ConditionTest("Available"),),))
_APP_WRAPPER = StatusRules(
    healthy=((FieldTest("phase", ("Succeeded",)),),),
    failed=((FieldTest("phase", ("Failed",)),),),
    suspended=((FieldTest("phase", ("Suspended", "Suspending")),),),
    message=("phase",),
)
# The defaults of the CRD in items of a list.
_WORKER_GROUP = ("replicas == 0", "minReplicas == 0", "maxReplicas == 2147483647", "numOfHosts == 1")
_TENSORSTACK = EngineWorkload("v1beta1")

ENGINE_WORKLOADS: Mapping[tuple[str, str], EngineWorkload] = {
    ("batch", "CronJob"): EngineWorkload("v1", has_health=False),
    ("batch", "Job"): EngineWorkload("v1", has_health=False),
    ("batch.tensorstack.dev", "BeamJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "ColossalAIJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "DeepSpeedJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "GenericJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "MPIJob"): _TENSORSTACK,
    ("batch.volcano.sh", "CronJob"): EngineWorkload("v1alpha1", has_health=False),
    ("batch.volcano.sh", "Job"): EngineWorkload(
        "v1alpha1",
        _VOLCANO_JOB,
        filled_in={".spec.tasks[]?": ("maxRetry == 3", 'name | strings | test("^default[0-9]+$")')},
    ),
    ("jobset.x-k8s.io", "JobSet"): EngineWorkload(
        "v1alpha2",
        filled_in={
            ".spec.replicatedJobs[]?": ("replicas == 1", 'groupName == "default"'),
            ".spec.replicatedJobs[]?.template.spec": ('completionMode == "Indexed"',),
            ".spec.replicatedJobs[]?.template.spec.template.spec": ('restartPolicy == "OnFailure"',),
        },
    ),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): EngineWorkload("v1", _LEADER_WORKER_SET),
    ("ray.io", "RayCluster"): EngineWorkload(
        "v1",
        _RAY_CLUSTER,
        filled_in={".spec.workerGroupSpecs[]?": _WORKER_GROUP},
        # The autoscaler writes these; `scaleStrategy` has only the workers to delete.
        ignored=(
            ".spec | select(.enableInTreeAutoscaling == true) | .workerGroupSpecs[]?.replicas",
            ".spec | select(.enableInTreeAutoscaling == true) | .workerGroupSpecs[]?.scaleStrategy",
        ),
    ),
    ("ray.io", "RayCronJob"): EngineWorkload(
        "v1", has_health=False, filled_in={".spec.jobTemplate.rayClusterSpec.workerGroupSpecs[]?": _WORKER_GROUP}
    ),
    ("ray.io", "RayJob"): EngineWorkload(
        "v1", _RAY_JOB, filled_in={".spec.rayClusterSpec.workerGroupSpecs[]?": _WORKER_GROUP}
    ),
    ("ray.io", "RayService"): EngineWorkload(
        "v1", _RAY_SERVICE, filled_in={".spec.rayClusterConfig.workerGroupSpecs[]?": _WORKER_GROUP}
    ),
    ("workload.codeflare.dev", "AppWrapper"): EngineWorkload(
        "v1beta2", _APP_WRAPPER, queued=(".spec.components[]?.podSetInfos",)
    ),
}


def find_engine_workload(group: str, kind: str) -> EngineWorkload | None:
    """The entry of a kind, if it is in the table."""
    return ENGINE_WORKLOADS.get((group, kind))


def list_differences(workload: EngineWorkload) -> list[str]:
    """Differences from Git that no edit causes, in jq: a value that the server fills in where Git has none."""
    # Only the filled-in value is ignored, so that another value in Git is still a difference.
    defaults = [
        f"{path} | select(.{test}) | .{test.partition(' ')[0]}"
        for path, tests in workload.filled_in.items()
        for test in tests
    ]
    return [*defaults, *workload.ignored]
