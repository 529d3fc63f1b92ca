import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import * as os from "node:os";
import * as path from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { installEditor, type Editor } from "./stand_in";

interface Extension {
  activate(context: { subscriptions: unknown[] }): Promise<void>;
  deactivate(): Promise<void>;
}

const FINE = `apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert}
spec: {framework: pytorch, image: registry.example.com/train:1.2}
`;
const WRONG = `apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: llama}
spec: {framework: pytorch, image: registry.example.com/train:1.2, resources: {gpus: 1}}
`;
const JOB = `${FINE}---\n${WRONG}`;
/** The words of a command that starts jobgen with its extra, such as `python3 -m jobgen`. */
const COMMAND = (process.env["JOBGEN_COMMAND"] ?? "").split(" ").filter((word) => word !== "");

const NEEDS_SERVER = { skip: COMMAND.length === 0 && "JOBGEN_COMMAND is not set" };

async function waitFor(condition: () => unknown): Promise<void> {
  for (let tries = 0; tries < 300 && !condition(); tries++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

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
    isActive: false,
    messages: [],
    shown: [],
    providers: new Map(),
    diagnostics: new Map(),
    commands: new Map(),
    executed: [],
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

test("without a server, the rendered manifest is not shown, but why", async () => {
  editor.messages = [];
  await editor.commands.get("jobgen.showRenderedManifest")?.();
  editor.isActive = true;
  await editor.commands.get("jobgen.showRenderedManifest")?.();

  assert.match(editor.messages[0] ?? "", /No file is open/);
  assert.match(editor.messages[1] ?? "", /server does not run/);
});

test("the findings of the real server reach the editor", NEEDS_SERVER, async () => {
  editor.settings = { path: COMMAND[0], arguments: COMMAND.slice(1) };
  editor.messages = [];
  await editor.commands.get("jobgen.restartServer")?.();
  const uri = pathToFileURL(editor.document.file).href;
  await waitFor(() => editor.diagnostics.get(uri)?.length);

  assert.deepEqual(editor.messages, []);
  assert.match(JSON.stringify(editor.diagnostics.get(uri)), /unknown-resource/);
});

test("the rendered manifest of the job at the cursor is shown", NEEDS_SERVER, async () => {
  editor.shown = [];
  await editor.commands.get("jobgen.showRenderedManifest")?.();
  await waitFor(() => editor.shown.length);
  const text = await editor.providers.get("jobgen-rendered")?.(editor.shown[0] ?? "");

  assert.deepEqual(editor.messages, []);
  assert.match(editor.shown[0] ?? "", /^jobgen-rendered:.*bert\.yaml/);
  assert.match(text ?? "", /kind: PyTorchJob/);
});

test("the jobs that a lens names are shown as references", NEEDS_SERVER, async () => {
  const start = { line: 2, character: 1 };
  const uri = pathToFileURL(editor.document.file).href;
  await editor.commands.get("jobgen.showReferences")?.(uri, start, [{ uri, range: { start, end: start } }]);
  const [name, target, position, locations] = editor.executed.at(-1) ?? [];

  assert.equal(name, "editor.action.showReferences");
  assert.equal(String(target), uri);
  assert.deepEqual({ ...(position as object) }, start);
  assert.equal((locations as unknown[]).length, 1);
});

test("the server learns which commands the editor has, and the setting for hints", async () => {
  const recorder = path.join(editor.folder, "recorder");
  const recorded = path.join(editor.folder, "recorded");
  const script = `let text = "";
process.stdin.on("data", (part) => {
  text += part;
  require("node:fs").writeFileSync(${JSON.stringify(recorded)}, text);
  if (text.endsWith("}")) process.exit(1);
});`;
  await writeFile(recorder, `#!/usr/bin/env node\n${script}\n`, { mode: 0o755 });
  editor.settings = { path: recorder, inlayHints: true };
  await editor.commands.get("jobgen.restartServer")?.();

  assert.match(await readFile(recorded, "utf8"), /"initializationOptions":\{"inlayHints":true\}/);
  assert.match(await readFile(recorded, "utf8"), /"experimental":\{"commands":\{"commands":\["jobgen.showReferences"\]\}\}/);
});
