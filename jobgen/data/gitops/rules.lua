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
