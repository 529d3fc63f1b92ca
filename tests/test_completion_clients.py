"""Completion items in the form that each client supports."""

import pytest_lsp
from completioncases import ask, load_known
from lsprotocol import types

from jobgen.features.editor.server.app import JobgenServer
from jobgen.features.editor.server.requests import to_item

OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n  patches:\n    - █\n"
JOB = "kind: TrainingJob\nspec:\n  framework: █\n"
PLACE = types.Range(types.Position(4, 6), types.Position(4, 6))


def make_item(tmp_path, client, marked, label, file):
    server = JobgenServer()
    server.protocol.client_capabilities = pytest_lsp.client_capabilities(client)
    completion = ask(load_known(tmp_path), marked, file).completion
    offer = next(each for each in completion.offers if each.item.label == label)
    return to_item(server, 1, offer, 0, PLACE)


def test_lines_of_a_snippet_are_indented_once(tmp_path):
    def make(client):
        return make_item(tmp_path, client, OVERLAY, "patch", "overlays/a/overlay.yaml")

    code, neovim, old = (make(client) for client in ("visual-studio-code", "neovim@0.11.0", "neovim@0.9.1"))

    assert code.insert_text_mode is types.InsertTextMode.AsIs
    assert "\n      merge:" in code.text_edit.new_text
    # Neovim indents the lines of a snippet itself.
    assert (neovim.insert_text_format, neovim.insert_text_mode) == (types.InsertTextFormat.Snippet, None)
    assert "\nmerge:" in neovim.text_edit.new_text
    assert old.insert_text_format is types.InsertTextFormat.PlainText
    assert old.text_edit.new_text.startswith('match: {names: ["*"]}\n      merge:')


def test_documentation_is_sent_at_once_to_clients_that_do_not_ask_for_it(tmp_path):
    marked = "kind: TrainingJob\nspec:\n  █\n"
    items = {
        client: make_item(tmp_path, client, marked, "framework", "jobs/a.yaml")
        for client in ("visual-studio-code", "neovim@0.11.0", "neovim@0.9.1", "emacs")
    }

    assert {client: bool(item.documentation) for client, item in items.items()} == {
        "visual-studio-code": False,
        "neovim@0.11.0": True,
        "neovim@0.9.1": True,
        "emacs": False,
    }


def test_deprecated_items_are_marked_in_old_and_new_clients(tmp_path):
    new = make_item(tmp_path, "visual-studio-code", JOB, "mxnet", "jobs/a.yaml")
    old = make_item(tmp_path, "neovim@0.9.1", JOB, "mxnet", "jobs/a.yaml")

    assert (list(new.tags), new.deprecated) == ([types.CompletionItemTag.Deprecated], None)
    assert (old.tags, old.deprecated) == (None, True)
