"""docs/editors.md: the settings of each editor can be read by that editor, and start the server."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import lupa.lua51
import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/editors.md").read_text()
COMMAND = ["jobgen", "lsp"]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def read_lisp(text: str) -> list:
    """Return a text of Lisp as nested lists of atoms."""
    stack: list[list] = [[]]
    for token in re.findall(r'[()]|"[^"]*"|[^\s()]+', text):
        if token == "(":
            stack.append([])
        elif token == ")":
            finished = stack.pop()
            stack[-1].append(finished)
        else:
            stack[-1].append(token)
    assert len(stack) == 1
    return stack[0]


def test_helix_starts_the_server_for_yaml():
    (text,) = blocks("toml")
    settings = tomllib.loads(text)
    server = settings["language-server"]["jobgen"]

    assert [server["command"], *server["args"]] == COMMAND
    assert settings["language"][0]["name"] == "yaml"
    assert settings["language"][0]["language-servers"][0] == "jobgen"


def test_settings_in_json_start_the_server_or_exist():
    settings = [json.loads(text) for text in blocks("json")]
    known = json.loads((ROOT / "editors/vscode/package.json").read_text())["contributes"]["configuration"]["properties"]
    (zed,) = [each["lsp"]["yaml-language-server"]["binary"] for each in settings if "lsp" in each]
    (sublime,) = [each["clients"]["jobgen"] for each in settings if "clients" in each]
    own = {name for each in settings for name in each if name.startswith("jobgen.")}

    assert [zed["path"], *zed["arguments"]] == COMMAND
    assert sublime["command"] == COMMAND
    assert own == set(known)


@pytest.mark.parametrize("text", blocks("lua"))
def test_lua_is_valid(text):
    load = lupa.lua51.LuaRuntime().globals().loadstring

    assert lupa.lua51.lua_type(load(text)) == "function"
    assert load(f"{text} )")[0] is None


def test_neovim_starts_the_server_for_yaml():
    newest, older, *_ = blocks("lua")

    assert all('cmd = { "jobgen", "lsp" }' in each and '"yaml"' in each for each in (newest, older))


def test_emacs_starts_the_server_for_yaml():
    eglot, lsp_mode = blocks("elisp")
    ((name, _, (_, variable, _, ((*modes,), _, command))),) = read_lisp(eglot)

    assert (name, variable) == ("with-eval-after-load", "'eglot-server-programs")
    assert modes == ["yaml-mode", "yaml-ts-mode"]
    assert [word.strip('"') for word in command] == COMMAND

    ((_, package, (_, (maker, *fields))),) = read_lisp(lsp_mode)
    assert (package, maker) == ("'lsp-mode", "make-lsp-client")
    assert fields[::2] == [":new-connection", ":activation-fn", ":add-on?", ":server-id"]
    assert "yaml" in [word.strip('"') for word in fields[3]]


def test_every_setting_of_the_extension_is_on_its_page():
    manifest = json.loads((ROOT / "editors/vscode/package.json").read_text())

    assert [name for name in manifest["contributes"]["configuration"]["properties"] if name not in PAGE] == []
