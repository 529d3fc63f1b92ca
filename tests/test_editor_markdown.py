"""Markdown of hovers: as it is for clients that render it, easy to read in its source for others."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
import pytest_lsp
from lsprotocol import types

from jobgen.features.editor.server.requests import to_hover_markup
from jobgen.features.editor.values import code, simplify

TABLE = """\
| environment | value | set by |
| --- | --- | --- |
| dev | `2` | [job](file:///r/jobs/a.yaml#L10) |
| production | `a\\|b` | [patch of \\[x\\]](file:///r/o.yaml#L8), overrides `2` of [job](file:///r/jobs/a.yaml#L10) |"""
PLAIN = """\
| environment | value  | set by |
| ----------- | ------ | --- |
| dev         | `2`    | job |
| production  | `a\\|b` | patch of \\[x\\], overrides `2` of job |"""


def test_tables_are_aligned_and_links_lose_their_targets():
    assert simplify(TABLE) == PLAIN
    assert simplify(f"Reaches [a](file:///a#L1)\n\n{TABLE}\n\nend") == f"Reaches a\n\n{PLAIN}\n\nend"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no table",
        "```yaml\n| a | b |\n[x](file:///y)\n```",
        "| one |",
        "[x](https://example.com)",
        "\\[x\\](file:///y)",
        "| a | b\n| c |",
    ],
)
def test_other_text_stays(text):
    assert simplify(text) == text


@pytest.mark.parametrize("text", ["| a |\n| b | c | d |", "|  |", "| | |", "| \\| |"])
def test_rows_of_any_length_are_kept(text):
    assert [line.count("|") for line in simplify(text).split("\n")] == [line.count("|") for line in text.split("\n")]


@pytest.mark.parametrize(
    ("client", "is_rendered"),
    [("visual-studio-code", True), ("neovim", False), ("neovim@0.7", False), ("emacs", False)],
)
def test_clients_get_what_they_can_show(client, is_rendered):
    server = SimpleNamespace(client_capabilities=pytest_lsp.client_capabilities(client))
    markup = to_hover_markup(server, TABLE)

    assert markup.kind is types.MarkupKind.Markdown
    assert markup.value == (TABLE if is_rendered else PLAIN)


def test_a_client_without_markdown_gets_plain_text():
    server = SimpleNamespace(client_capabilities=types.ClientCapabilities())

    assert to_hover_markup(server, TABLE) == types.MarkupContent(types.MarkupKind.PlainText, PLAIN)


@pytest.mark.parametrize("text", [r"\|[a](command:x)", r"a\\| <img src=x>", r"\|`[b](http://example.com)`"])
def test_backslash_before_a_vertical_line_does_not_end_the_cell(text):
    shown = code(text)

    # A vertical line after an odd number of backslashes is part of the cell; what follows stays code or is escaped.
    assert all(len(found[1]) % 2 for found in re.finditer(r"(\\*)\|", shown))
    assert not re.search(r"(?<!\\)[\[<]", shown)
