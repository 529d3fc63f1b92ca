"""How a job is doing, by what its operator writes into its status: the words of each group, and their order."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from jobgen.gitops.inputs import EngineKind

HEALTHY, DEGRADED, SUSPENDED, PROGRESSING = "Healthy", "Degraded", "Suspended", "Progressing"


class HealthConditions(NamedTuple):
    """The conditions that an operator sets, and the phases that decide where it has them."""

    failed: str
    finished: str
    suspended: str
    moving: tuple[str, ...] = ()
    phases: Mapping[str, str] = MappingProxyType({})

    @property
    def order(self) -> tuple[str, ...]:
        """All conditions; of two that turned in the same second, the later one here tells."""
        return (*self.moving, self.suspended, self.finished, self.failed)

    @property
    def verdicts(self) -> dict[str, str]:
        """What each condition means where it tells."""
        moving = dict.fromkeys(self.moving, PROGRESSING)
        return moving | {self.suspended: SUSPENDED, self.finished: HEALTHY, self.failed: DEGRADED}


_KUBEFLOW = HealthConditions("Failed", "Succeeded", "Suspended", ("Created", "Running", "Restarting"))
_WORDS = {
    "kubeflow.org": _KUBEFLOW,
    "trainer.kubeflow.org": HealthConditions("Failed", "Complete", "Suspended"),
    "batch.tensorstack.dev": HealthConditions(
        "Failed",
        "Completed",
        "Paused",
        # A replica that fails may be started again, so that alone is no failure of the job.
        ("Initialized", "ReplicaFailure", "Running"),
        MappingProxyType({"Failed": DEGRADED, "Paused": SUSPENDED, "Succeeded": HEALTHY}),
    ),
}


def conditions_of(group: str) -> HealthConditions:
    """The words of a group; a group that nobody has told us about speaks as Kubeflow does, as most do."""
    return _WORDS.get(group, _KUBEFLOW)


# Argo CD runs Lua 5.1 without the string library, and a check that fails makes the health unknown:
# so nothing is taken for a table or a text before its type has been looked at.
_CHECK = """\
local ranks, verdicts = {}, {}
for rank, state in ipairs(states) do
  ranks[state[1]], verdicts[state[1]] = rank, state[2]
end

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

-- Several conditions may be true: the one that turned last tells; in the same second, the later one of the list.
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
    """The check of a kind."""
    words = conditions_of(kind.group)
    states = ",\n".join(f"  {_lua_table((word, words.verdicts[word]))}" for word in words.order)
    phases = ", ".join(f'{phase} = "{verdict}"' for phase, verdict in words.phases.items())
    return f"""\
-- Health of {kind.name}, printed by jobgen.
local states = {{
{states}
}}
local phases = {{{phases}}}
local suspend = {_lua_table(kind.suspend)}

{_CHECK}"""


def _lua_table(texts: Iterable[str]) -> str:
    return "{" + ", ".join(json.dumps(text, ensure_ascii=False) for text in texts) + "}"


def build_cel_checks(kind: EngineKind) -> dict[str, str]:
    """The expressions of a kind; Flux takes a job for which none is true to be in progress."""
    words = conditions_of(kind.group)
    ended = (words.finished, words.failed)
    going = tuple(word for word in words.order if word not in ended)
    # `failed` is asked before `current`, so a tie of the two is a failure in both engines.
    return {
        "inProgress": _by_phase(
            (PROGRESSING, SUSPENDED), f"!has(status.conditions) || {_last(going, ended, '<')}", words
        ),
        "failed": _by_phase(
            (DEGRADED,), f"has(status.conditions) && {_last([words.failed], words.order, '<=')}", words
        ),
        "current": _by_phase(
            (HEALTHY,), f"has(status.conditions) && {_last([words.finished], words.order, '<=')}", words
        ),
    }


def _last(told: Collection[str], others: Collection[str], before: str) -> str:
    """One of these conditions is true, and none of the others turned true after it."""
    return f"""status.conditions.exists(c,
  c.status == 'True' && c.type {_among(told)} && status.conditions.all(d,
    d.status != 'True' || !(d.type in {_cel_list(others)}) ||
    d.?lastTransitionTime.orValue('') {before} c.?lastTransitionTime.orValue('')))"""


def _by_phase(verdicts: Collection[str], text: str, words: HealthConditions) -> str:
    """Whether the verdict is one of these: by the phase where it decides, else by the conditions."""
    if not words.phases:
        return text
    meant = [phase for phase, verdict in words.phases.items() if verdict in verdicts]
    return f"has(status.phase) && status.phase in {_cel_list(words.phases)} ? status.phase {_among(meant)} :\n({text})"


def _among(texts: Collection[str]) -> str:
    """`== 'a'`, or `in ['a', 'b']`."""
    return f"in {_cel_list(texts)}" if len(texts) > 1 else f"== '{next(iter(texts))}'"


def _cel_list(texts: Iterable[str]) -> str:
    return "[" + ", ".join(f"'{text}'" for text in texts) + "]"
