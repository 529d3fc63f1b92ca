"""Health by rules about the status: as Lua for Argo CD and as CEL for Flux. Both give the same results.

The rules of a kind hold for suspended, failed and healthy objects, and are tried in this order. If none holds, the
object is in progress.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from jobgen.features.gitops.expressions import LUA_READERS, compare_text, write_cel_list, write_lua_list
from jobgen.model.named_tuple import NamedTuple


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


_LUA_CHECK = """\
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
{_LUA_CHECK}"""


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
