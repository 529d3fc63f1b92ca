-- Several conditions can be true: the last transition decides; in the same second, the later one of the list.
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
