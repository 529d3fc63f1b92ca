"""Lua and CEL that all health checks have in common: how they read fields, and how texts are written in them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

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
