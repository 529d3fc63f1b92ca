"""Hover, definitions, references and symbols of the language server, asked by a real client."""

import asyncio
import sys

import pytest
import pytest_lsp
from lspclient import answer_requests
from lsprotocol import types
from navigationfiles import FILES, find_mark, write_files
from pytest_lsp import ClientServerConfig, LanguageClient

from jobgen.features.editor.rendered import from_uri

BERT, SWEEP, PROD = "jobs/nlp/bert.yaml", "jobs/sweep.yaml", "overlays/prod/overlay.yaml"
TEXT = FILES[BERT].replace("{LOG_LEVEL: info,", "{NOTE: 🙂🙂, LOG_LEVEL: info,")


@pytest_lsp.fixture(config=ClientServerConfig(server_command=[sys.executable, "-m", "jobgen", "lsp"]))
async def client(lsp_client: LanguageClient, tmp_path):
    write_files(tmp_path)
    answer_requests(lsp_client)
    capabilities = pytest_lsp.client_capabilities("visual-studio-code")
    capabilities.workspace.text_document_content = types.TextDocumentContentClientCapabilities(True)
    await lsp_client.initialize_session(
        types.InitializeParams(
            capabilities=capabilities,
            workspace_folders=[types.WorkspaceFolder(tmp_path.as_uri(), "jobs")],
        )
    )
    yield
    await lsp_client.shutdown_session()


def locate(text, marked):
    """The position of a mark in UTF-16 units, in which the client counts."""
    line, column = find_mark(text, marked)
    before = text.split("\n")[line - 1][: column - 1]
    return types.Position(line - 1, len(before.encode("utf-16-le")) // 2)


def show(root, locations):
    return sorted(f"{each.uri.removeprefix(root.as_uri() + '/')}:{each.range.start.line + 1}" for each in locations)


@pytest.mark.asyncio
async def test_navigation(client, tmp_path):
    uri, overlay = (tmp_path / BERT).as_uri(), (tmp_path / PROD).as_uri()
    client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "yaml", 1, TEXT)))
    document, other = types.TextDocumentIdentifier(uri), types.TextDocumentIdentifier(overlay)

    hover = await client.text_document_hover_async(types.HoverParams(document, locate(TEXT, "LOG_LEVEL: in¦fo")))
    assert hover.contents.kind == types.MarkupKind.Markdown
    assert f"| prod | `warning` | [patch of prod]({overlay}#L11), overrides `info`" in hover.contents.value
    assert (hover.range.start, hover.range.end) == (locate(TEXT, ": ¦info"), locate(TEXT, ": info¦"))

    nothing = await client.text_document_hover_async(types.HoverParams(document, types.Position(900, 3)))
    assert nothing is None

    found = await client.text_document_definition_async(types.DefinitionParams(document, locate(TEXT, "repl¦icas: 3")))
    assert show(tmp_path, found) == [f"{PROD}:10"]

    for _ in range(600):
        # The index comes from the background process.
        found = await client.text_document_references_async(
            types.ReferenceParams(types.ReferenceContext(False), other, locate(FILES[PROD], "replicas: ¦5"))
        )
        if found:
            break
        await asyncio.sleep(0.1)
    assert show(tmp_path, found) == [f"{BERT}:1"]

    symbols = await client.text_document_document_symbol_async(types.DocumentSymbolParams(document))
    assert [(each.name, [child.name for child in each.children]) for each in symbols] == [
        ("bert", ["master", "worker"])
    ]
    assert symbols[0].range.end == locate(TEXT, "{replicas: 2¦}")

    known = await client.workspace_symbol_async(types.WorkspaceSymbolParams("swep"))
    assert [(each.name, show(tmp_path, [each.location])) for each in known] == [("sweep", ["jobs/sweep.yaml:1"])]

    sweep = types.TextDocumentIdentifier((tmp_path / SWEEP).as_uri())
    rendered = await client.text_document_definition_async(
        types.DefinitionParams(sweep, locate(FILES[SWEEP], "name: swe¦ep"))
    )
    assert [from_uri(each.uri)[:3] for each in rendered] == [(sweep.uri, 0, "dev"), (sweep.uri, 0, "prod")]
    content = await client.workspace_text_document_content_async(types.TextDocumentContentParams(rendered[1].uri))
    assert "namespace: ml-prod" in content.text

    unknown = types.TextDocumentIdentifier("untitled:Untitled-1")
    assert await client.text_document_hover_async(types.HoverParams(unknown, types.Position(0, 0))) is None
    assert not await client.text_document_definition_async(types.DefinitionParams(unknown, types.Position(0, 0)))
