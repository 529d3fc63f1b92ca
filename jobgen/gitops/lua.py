"""Health checks of Argo CD, in Lua: one text for all kinds, with a few lines of data before it."""

from __future__ import annotations

import json
from collections.abc import Iterable

from jobgen.gitops.health import words_of
from jobgen.gitops.known import Known

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


def lua_check(kind: Known) -> str:
    """The check of a kind."""
    words = words_of(kind.group)
    states = ",\n".join(f"  {_list((word, words.verdicts[word]))}" for word in words.order)
    phases = ", ".join(f'{phase} = "{verdict}"' for phase, verdict in words.phases.items())
    return f"""\
-- Health of {kind.name}, printed by jobgen.
local states = {{
{states}
}}
local phases = {{{phases}}}
local suspend = {_list(kind.suspend)}

{_CHECK}"""


def _list(texts: Iterable[str]) -> str:
    return "{" + ", ".join(json.dumps(text, ensure_ascii=False) for text in texts) + "}"
