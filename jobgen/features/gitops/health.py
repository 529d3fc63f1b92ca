"""Health checks of jobs: the status conditions of each operator, as Lua for Argo CD and as CEL for Flux."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from jobgen.features.gitops.inputs import EngineKind
from jobgen.features.gitops.status_rules import (
    LUA_READERS,
    build_cel_rules,
    build_lua_rules,
    compare_text,
    write_cel_list,
    write_lua_list,
)

HEALTHY, DEGRADED, SUSPENDED, PROGRESSING = "Healthy", "Degraded", "Suspended", "Progressing"


class HealthConditions(NamedTuple):
    """The conditions that an operator sets, and the phases that take precedence over them."""

    failed: str
    finished: str
    suspended: str
    in_progress: tuple[str, ...] = ()
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


_KUBEFLOW = HealthConditions("Failed", "Succeeded", "Suspended", ("Created", "Running", "Restarting"))
_CONDITIONS = {
    "kubeflow.org": _KUBEFLOW,
    "jobset.x-k8s.io": HealthConditions("Failed", "Completed", "Suspended"),
    "trainer.kubeflow.org": HealthConditions("Failed", "Complete", "Suspended"),
    "batch.tensorstack.dev": HealthConditions(
        "Failed",
        "Completed",
        "Paused",
        # A failed replica may be restarted, so it is not a failure of the job.
        ("Initialized", "ReplicaFailure", "Running"),
        MappingProxyType({"Failed": DEGRADED, "Paused": SUSPENDED, "Succeeded": HEALTHY}),
    ),
}


def _conditions_of(kind: EngineKind) -> HealthConditions:
    """The conditions of a kind; most operators use those of Kubeflow, so they are the default."""
    return _CONDITIONS.get(kind.group, _KUBEFLOW)


_LUA_RANKS = """\
local ranks, verdicts = {}, {}
for rank, state in ipairs(states) do
  ranks[state[1]], verdicts[state[1]] = rank, state[2]
end
"""
_LUA_CHECK = """\
-- Several conditions may be true: the last transition decides; in the same second, the later one of the list.
local last, when = nil, ""
local conditions = at(obj, {"status", "conditions"})
if type(conditions) == "table" then
  for _, condition in ipairs(conditions) do
    local rank = ranks[text(at(condition, {"type"}))]
    if rank and condition.status == "True" then
      local time = text(condition.lastTransitionTime)
      if not last or time > when or (time == when and rank > ranks[last.type]) then
        last, when = condition, time
      end
    end
  end
end

local phase = text(at(obj, {"status", "phase"}))
local health = {status = phases[phase] or "Progressing", message = "waiting for the operator"}
if last then
  health.status = phases[phase] or verdicts[last.type]
  health.message = text(last.message)
  if health.message == "" then health.message = last.type end
elseif phase ~= "" then
  health.message = phase
elseif at(obj, {"status"}) ~= nil then
  health.message = "in progress"
end
if health.status == "Progressing" and at(obj, suspend) == true then
  return {status = "Suspended", message = "suspended, or waiting in a queue"}
end
return health
"""


def build_lua_check(kind: EngineKind) -> str:
    """The Lua health check of a kind, for Argo CD."""
    if kind.workload and kind.workload.rules:
        return build_lua_rules(kind.name, kind.workload.rules, kind.suspend_path)
    conditions = _conditions_of(kind)
    states = ",\n".join(f"  {write_lua_list((name, conditions.health[name]))}" for name in conditions.order)
    phases = ", ".join(f'{phase} = "{health}"' for phase, health in conditions.phases.items())
    return f"""\
-- Health of {kind.name}, printed by jobgen.
local states = {{
{states}
}}
local phases = {{{phases}}}
local suspend = {write_lua_list(kind.suspend_path)}

{_LUA_RANKS}
{LUA_READERS}
{_LUA_CHECK}"""


def build_cel_checks(kind: EngineKind) -> dict[str, str]:
    """The CEL health checks of a kind, for Flux: same results as in Lua; if none is true, the job is in progress.

    Flux evaluates `failed` before `current`, so a tie of the two is a failure, as in Lua.
    """
    if kind.workload and kind.workload.rules:
        return build_cel_rules(kind.workload.rules)
    conditions = _conditions_of(kind)
    ended = (conditions.finished, conditions.failed)
    in_progress = tuple(name for name in conditions.order if name not in ended)
    checks = {
        "inProgress": ((PROGRESSING, SUSPENDED), f"!has(status.conditions) || {_last_is(in_progress, ended, '<')}"),
        "failed": (
            (DEGRADED,),
            f"has(status.conditions) && {_last_is([conditions.failed], conditions.order, '<=')}",
        ),
        "current": (
            (HEALTHY,),
            f"has(status.conditions) && {_last_is([conditions.finished], conditions.order, '<=')}",
        ),
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
