"""The language server, asked by a real client over standard input and output."""

import sys

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert}
spec:
  framework: pytorch
  image: registry.example.com/train:1.2
  resources: {cpu: 4, memory: 16Gi, gpu: 1}
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  namespace: ml-prod
  cluster: {platform: kubeflow}
  defaults: {labels: {team: nlp}}
"""


@pytest.fixture
def folder(tmp_path):
    for path, text in {
        "jobs/bert.yaml": JOB,
        "overlays/prod/overlay.yaml": OVERLAY,
        "jobgen.yaml": "environments: [prod]\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest_lsp.fixture(config=ClientServerConfig(server_command=[sys.executable, "-m", "jobgen", "lsp"]))
async def client(lsp_client: LanguageClient, folder):
    await lsp_client.initialize_session(
        types.InitializeParams(
            capabilities=pytest_lsp.client_capabilities("visual-studio-code"),
            workspace_folders=[types.WorkspaceFolder(folder.as_uri(), "jobs")],
        )
    )
    yield
    await lsp_client.shutdown_session()


@pytest.mark.asyncio
async def test_diagnostics_follow_the_buffer(client, folder):
    uri = (folder / "jobs/bert.yaml").as_uri()
    broken = JOB.replace("gpu: 1", "gpus: 1")
    client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "yaml", 1, broken)))
    await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)

    assert [each.code for each in client.diagnostics[uri]] == ["unknown-resource"]


@pytest.mark.asyncio
async def test_completion(client, folder):
    uri = (folder / "jobs/bert.yaml").as_uri()
    lines = JOB.replace("pytorch", "").split("\n")
    text = "# 🙂\n" + "\n".join([*lines[:-1], "  env: {A: \U0001f642, B: b} # jobgen: ignore[wron", ""])
    client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "yaml", 1, text)))
    document = types.TextDocumentIdentifier(uri)

    frameworks = await client.text_document_completion_async(
        types.CompletionParams(document, types.Position(5, len("  framework: ")))
    )
    [pytorch] = [item for item in frameworks.items if item.label == "pytorch"]
    assert pytorch.text_edit == types.TextEdit(types.Range(types.Position(5, 13), types.Position(5, 13)), "pytorch")
    [mxnet] = [item for item in frameworks.items if item.label == "mxnet"]
    assert list(mxnet.tags) == [types.CompletionItemTag.Deprecated]
    assert mxnet.sort_text > pytorch.sort_text

    # The client counts in UTF-16 by default.
    at = len("  env: {A: xx, B: b} # jobgen: ignore[wron")
    rules = await client.text_document_completion_async(types.CompletionParams(document, types.Position(8, at)))
    [rule] = [item for item in rules.items if item.label == "wrong-type"]
    assert rule.text_edit.range == types.Range(types.Position(8, at - 4), types.Position(8, at))
    resolved = await client.completion_item_resolve_async(rule)
    assert resolved.documentation.value

    # A space in a text offers nothing.
    context = types.CompletionContext(types.CompletionTriggerKind.TriggerCharacter, " ")
    nothing = await client.text_document_completion_async(
        types.CompletionParams(document, types.Position(4, 2), context)
    )
    assert list(nothing.items) == []
