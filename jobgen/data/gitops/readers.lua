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
