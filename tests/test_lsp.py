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
