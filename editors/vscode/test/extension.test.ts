import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import * as os from "node:os";
import * as path from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { installEditor, type Editor } from "./stand_in";

interface Extension {
  activate(context: { subscriptions: unknown[] }): Promise<void>;
  deactivate(): Promise<void>;
}

const JOB = `apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert}
spec:
  framework: pytorch
  image: registry.example.com/train:1.2
  resources: {cpu: 4, memory: 16Gi, gpus: 1}
`;
/** The words of a command that starts jobgen with its extra, such as `python3 -m jobgen`. */
const COMMAND = (process.env["JOBGEN_COMMAND"] ?? "").split(" ").filter((word) => word !== "");

let editor: Editor;
let extension: Extension;

before(async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), "jobgen-vscode-"));
  await mkdir(path.join(folder, "jobs"));
  await writeFile(path.join(folder, "jobgen.yaml"), "");
  const file = path.join(folder, "jobs", "bert.yaml");
  await writeFile(file, JOB);
  editor = {
    settings: {},
    isTrusted: true,
    folder,
    document: { file, text: JOB },
    messages: [],
    diagnostics: new Map(),
    commands: new Map(),
  };
  installEditor(editor);
  extension = require(path.resolve("dist/extension.js")) as Extension;
});

after(async () => {
  await extension.deactivate();
  await rm(editor.folder, { recursive: true });
});

test("a missing command is one message with what to do", async () => {
  editor.settings = { path: "/none/jobgen" };
  await extension.activate({ subscriptions: [] });

  assert.equal(editor.messages.length, 1);
  assert.match(editor.messages[0] ?? "", /`\/none\/jobgen` was not found.*\| How to install \| Open settings \| Show log$/);
});

test("an old version is one message, and the command to restart stays", async () => {
  const old = path.join(editor.folder, "old");
  await writeFile(old, `#!/bin/sh\necho "jobgen: no such command 'lsp'" >&2\nexit 2\n`, { mode: 0o755 });
  editor.settings = { path: old };
  editor.messages = [];
  await editor.commands.get("jobgen.restartServer")?.();

  assert.equal(editor.messages.length, 1, editor.messages.join("\n"));
  assert.match(editor.messages[0] ?? "", /too old/);
});

test("the findings of the real server reach the editor", { skip: COMMAND.length === 0 && "JOBGEN_COMMAND is not set" }, async () => {
  editor.settings = { path: COMMAND[0], arguments: COMMAND.slice(1) };
  editor.messages = [];
  await editor.commands.get("jobgen.restartServer")?.();
  const uri = pathToFileURL(editor.document.file).href;
  for (let tries = 0; tries < 300 && !editor.diagnostics.get(uri)?.length; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }

  assert.deepEqual(editor.messages, []);
  assert.match(JSON.stringify(editor.diagnostics.get(uri)), /unknown-resource/);
});
