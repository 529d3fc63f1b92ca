"""The language server, asked by a real client over standard input and output."""

import sys

import pytest
import pytest_lsp
from lspclient import answer_requests, opened, wait_for
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("repository")
    for path, text in {
        "jobs/bert.yaml": JOB,
        "overlays/prod/overlay.yaml": OVERLAY,
        "jobgen.yaml": "environments: [prod]\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest_lsp.fixture(
    config=ClientServerConfig(server_command=[sys.executable, "-m", "jobgen", "lsp"]),
    scope="module",
)
async def client(lsp_client: LanguageClient, folder):
    answer_requests(lsp_client)
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
    with opened(client, uri, broken):
        await wait_for(lambda: client.diagnostics.get(uri))
        assert [each.code for each in client.diagnostics[uri]] == ["unknown-resource"]
    await wait_for(lambda: not client.diagnostics[uri])


@pytest.mark.asyncio
async def test_completion(client, folder):
    uri = (folder / "jobs/bert.yaml").as_uri()
    lines = JOB.replace("pytorch", "").split("\n")
    text = "# 🙂\n" + "\n".join([*lines[:-1], "  env: {A: \U0001f642, B: b} # jobgen: ignore[wron", ""])
    with opened(client, uri, text) as document:
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
        assert nothing is None


@pytest.mark.asyncio
async def test_completion_adds_the_version_of_a_kind(client, folder):
    uri = (folder / "jobs/queue.yaml").as_uri()
    with opened(client, uri, "kind: \n"):
        found = await client.text_document_completion_async(
            types.CompletionParams(types.TextDocumentIdentifier(uri), types.Position(0, 6))
        )

        [queue] = [item for item in found.items if item.label == "LocalQueue"]
        [above] = queue.additional_text_edits
        start = types.Position(0, 0)
        assert above == types.TextEdit(types.Range(start, start), "apiVersion: kueue.x-k8s.io/v1beta2\n")


@pytest.mark.asyncio
async def test_inlay_hints(client, folder):
    uri = (folder / "jobs/old.yaml").as_uri()
    text = "apiVersion: v1\nkind: Pod\n---\napiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: a}\n"
    with opened(client, uri, text):
        whole = types.Range(types.Position(0, 0), types.Position(6, 0))

        hints = await client.text_document_inlay_hint_async(
            types.InlayHintParams(types.TextDocumentIdentifier(uri), whole)
        )

        [hint] = hints
        assert (hint.position, hint.label) == (types.Position(3, 25), "removed in Kubernetes 1.25; use `batch/v1`")


def edit_text(text, edits):
    """The text after edits of one document. Its characters are one unit each."""
    lines = text.splitlines(keepends=True)
    for edit in sorted(edits, key=lambda each: (each.range.start.line, each.range.start.character), reverse=True):
        start, end = edit.range.start, edit.range.end
        before, after = "".join(lines[: start.line]) + lines[start.line][: start.character], lines[end.line :]
        lines = (before + edit.new_text + after[0][end.character :] + "".join(after[1:])).splitlines(keepends=True)
    return "".join(lines)


@pytest.mark.asyncio
async def test_code_actions_fix_and_suppress_in_the_buffer(client, folder):
    uri = (folder / "jobs/fixed.yaml").as_uri()
    broken = JOB.replace("bert", "fixed").replace("gpu: 1", "gpus: 1").replace("image:", "# Größe 🚀\n  image:")
    with opened(client, uri, broken):
        await wait_for(lambda: client.diagnostics.get(uri))
        [diagnostic] = client.diagnostics[uri]

        async def ask(*only):
            context = types.CodeActionContext([diagnostic], only=only or None)
            return await client.text_document_code_action_async(
                types.CodeActionParams(types.TextDocumentIdentifier(uri), diagnostic.range, context)
            )

        actions = {each.title: each for each in await ask()}
        fix = actions["Fix unknown-resource: rename to `gpu`"]
        assert (fix.is_preferred, fix.edit, list(fix.diagnostics)) == (True, None, [diagnostic])
        [change] = (await client.code_action_resolve_async(fix)).edit.document_changes
        assert (change.text_document.uri, change.text_document.version) == (uri, 1)
        assert edit_text(broken, change.edits) == broken.replace("gpus", "gpu")
        assert len(change.edits) == 1

        [all_safe] = await ask("source.fixAll")
        [change] = (await client.code_action_resolve_async(all_safe)).edit.document_changes
        assert (all_safe.kind, edit_text(broken, change.edits)) == (
            "source.fixAll.jobgen",
            broken.replace("gpus", "gpu"),
        )

        suppress = actions["Suppress unknown-resource on this line with a reason"]
        [change] = (await client.code_action_resolve_async(suppress)).edit.document_changes
        assert "# jobgen: ignore[unknown-resource] -- TODO" in edit_text(broken, change.edits)

        # The document has changed since the action was offered.
        new = types.TextDocumentContentChangeWholeDocument(broken + "# more\n")
        client.text_document_did_change(
            types.DidChangeTextDocumentParams(types.VersionedTextDocumentIdentifier(2, uri), [new])
        )
        assert (await client.code_action_resolve_async(fix)).edit is None
        for data in (None, {"uri": 3}, [], {**fix.data, "range": [1]}):
            other = types.CodeAction("other", data=data)
            assert (await client.code_action_resolve_async(other)).edit is None


@pytest.mark.asyncio
async def test_code_actions_that_change_several_files_are_confirmed(client, folder):
    uri, other = ((folder / f"jobs/{name}.yaml").as_uri() for name in ("größe 🚀", "bart"))
    text = JOB.replace("spec:", "spec:\n  labels: {size: small}").replace("  image:", "  # 🚀\n  image:")
    with opened(client, other, JOB.replace("bert", "bart")), opened(client, uri, text):

        async def ask(line, kind, trigger=types.CodeActionTriggerKind.Invoked):
            at = types.Position(line, 4)
            context = types.CodeActionContext([], only=[kind], trigger_kind=trigger)
            params = types.CodeActionParams(types.TextDocumentIdentifier(uri), types.Range(at, at), context)
            return await client.text_document_code_action_async(params)

        [move] = await ask(7, "refactor.extract")
        assert move.title == "Move `image` to the defaults of overlay prod"
        edit = (await client.code_action_resolve_async(move)).edit
        job, overlay = edit.document_changes
        assert (job.text_document.version, overlay.text_document.version) == (1, None)
        assert overlay.text_document.uri == (folder / "overlays/prod/overlay.yaml").as_uri()
        moved = OVERLAY.replace("nlp}", "nlp}, image: registry.example.com/train:1.2")
        assert edit_text(OVERLAY, overlay.edits) == moved
        assert not await ask(7, "refactor.extract", types.CodeActionTriggerKind.Automatic)

        manifest = """\
    apiVersion: kubeflow.org/v1
    kind: PyTorchJob
    metadata: {name: bert, namespace: ml}
    spec:
      pytorchReplicaSpecs:
        Master: {template: {spec: {containers: [{name: pytorch, image: "registry.example.com/a:1"}]}}}
    """
        new = types.TextDocumentContentChangeWholeDocument(manifest)
        client.text_document_did_change(
            types.DidChangeTextDocumentParams(types.VersionedTextDocumentIdentifier(2, uri), [new])
        )
        [migrate] = await ask(1, "refactor.rewrite")
        edit = (await client.code_action_resolve_async(migrate)).edit
        kinds = [getattr(each, "kind", "edit") for each in edit.document_changes]
        assert (migrate.title, kinds) == ("Migrate to TrainJob of trainer", ["edit", "create", "edit"])
        [annotation] = edit.change_annotations.values()
        assert annotation.needs_confirmation


@pytest.mark.asyncio
async def test_hover_in_a_large_file_says_that_it_is_too_large(client, folder):
    path = folder / "jobs/large.yaml"
    path.write_text(JOB + "  env:\n" + "".join(f"    A{number}: b\n" for number in range(60_000)))
    asked = types.HoverParams(types.TextDocumentIdentifier(path.as_uri()), types.Position(5, 4))
    found = await client.text_document_hover_async(asked)
    path.unlink()

    assert "This file is too large for a description: at most 10000 lines" in found.contents.value
