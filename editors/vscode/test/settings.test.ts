import assert from "node:assert/strict";
import * as path from "node:path";
import { test } from "node:test";
import { chooseValue, readSettings, resolveLaunch, type Launch, type Refusal, type Surroundings } from "../src/settings";

const AROUND: Surroundings = {
  isTrusted: true,
  folders: ["/work/jobs", "/work/other"],
  home: "/home/ada",
  env: { PATH: "/usr/bin:/work/jobs/bin:bin:/home/ada/.local/bin", JOBGEN_HOME: "/opt/jobgen" },
};
const UNTRUSTED = { ...AROUND, isTrusted: false };

function resolve(program: string, args: string[] = [], around = AROUND): Launch | Refusal {
  return resolveLaunch({ path: program, arguments: args }, around);
}

function commandOf(program: string, args: string[] = [], around = AROUND): string {
  const launch = resolve(program, args, around);
  assert.ok("command" in launch, JSON.stringify(launch));
  return launch.command;
}

test("without settings, `jobgen lsp` of the PATH is started", () => {
  const settings = readSettings(() => undefined, true);
  const launch = resolveLaunch(settings, AROUND);

  assert.deepEqual(settings, { path: "jobgen", arguments: [], inlayHints: false });
  assert.ok("command" in launch);
  assert.equal(launch.command, "jobgen");
  assert.deepEqual(launch.args, ["lsp", "--stdio"]);
  assert.equal(launch.env["JOBGEN_HOME"], "/opt/jobgen");
});

test("the current folder of the server is never the workspace", () => {
  for (const around of [AROUND, UNTRUSTED]) {
    const launch = resolve("jobgen", [], around);
    assert.ok("cwd" in launch && launch.cwd === "/home/ada");
  }
});

test("a path is relative to the first folder, and variables are replaced", () => {
  assert.equal(commandOf(".venv/bin/jobgen"), "/work/jobs/.venv/bin/jobgen");
  assert.equal(commandOf("${workspaceFolder}/.venv/bin/jobgen"), "/work/jobs/.venv/bin/jobgen");
  assert.equal(commandOf("~/bin/jobgen"), "/home/ada/bin/jobgen");
  assert.equal(commandOf("${userHome}/bin/jobgen"), "/home/ada/bin/jobgen");
  assert.equal(commandOf("${env:JOBGEN_HOME}/bin/jobgen"), "/opt/jobgen/bin/jobgen");
  assert.equal(commandOf(".venv/bin/jobgen", [], { ...AROUND, folders: [] }), "/home/ada/.venv/bin/jobgen");
});

test("a variable is replaced once, not again in its value", () => {
  const env = { ODD: "${userHome}" };

  assert.equal(commandOf("${env:ODD}/x", [], { ...AROUND, env }), path.resolve("/work/jobs", "${userHome}/x"));
  assert.equal(commandOf("/x/${env:MISSING}y"), "/x/y");
});

test("arguments come before `lsp`", () => {
  const launch = resolve("uvx", ["--from", "jobgen[lsp]", "jobgen"]);

  assert.ok("args" in launch);
  assert.deepEqual(launch.args, ["--from", "jobgen[lsp]", "jobgen", "lsp", "--stdio"]);
});

test("the nearest scope applies, and only the user's in a workspace that is not trusted", () => {
  const scopes = { defaultValue: "a", globalValue: "b", workspaceValue: "c", workspaceFolderValue: "d" };

  assert.equal(chooseValue(scopes, true, "z"), "d");
  assert.equal(chooseValue(scopes, false, "z"), "b");
  assert.equal(chooseValue({ defaultValue: "a", workspaceValue: "c" }, false, "z"), "a");
  assert.equal(chooseValue({ workspaceValue: "c" }, false, "z"), "z");
});

test("a hostile workspace sets neither the program nor its arguments", () => {
  const hostile: Record<string, { defaultValue: unknown; workspaceValue: unknown; workspaceFolderValue: unknown }> = {
    path: { defaultValue: "jobgen", workspaceValue: "/bin/sh", workspaceFolderValue: "./evil" },
    arguments: { defaultValue: [], workspaceValue: ["-c", "id"], workspaceFolderValue: ["-c", "id"] },
  };

  assert.deepEqual(readSettings((name) => hostile[name], false), { path: "jobgen", arguments: [], inlayHints: false });
  assert.deepEqual(readSettings((name) => hostile[name], true), {
    path: "./evil",
    arguments: ["-c", "id"],
    inlayHints: false,
  });
});

test("values of other types are replaced by the default", () => {
  const given: Record<string, { globalValue: unknown }> = { path: { globalValue: 7 }, arguments: { globalValue: "x" } };

  assert.deepEqual(readSettings((name) => given[name], true), { path: "jobgen", arguments: [], inlayHints: false });
  assert.deepEqual(readSettings((name) => ({ globalValue: name === "path" ? "  " : [1, "a", null] }), true), {
    path: "jobgen",
    arguments: ["a"],
    inlayHints: false,
  });
});

test("no program of a workspace that is not trusted is started", () => {
  for (const program of [
    ".venv/bin/jobgen",
    "./jobgen",
    "${workspaceFolder}/jobgen",
    "/work/jobs/.venv/bin/jobgen",
    "/work/other/jobgen",
    "/usr/../work/jobs/jobgen",
  ]) {
    const launch = resolve(program, [], UNTRUSTED);
    assert.ok("refusal" in launch, program);
    assert.match(launch.refusal, /not trusted/);
    assert.ok("command" in resolve(program));
  }
  assert.ok("refusal" in resolve("python3", ["${workspaceFolder}/run.py"], UNTRUSTED));
  assert.equal(commandOf("/work/jobs-of-mine/jobgen", [], UNTRUSTED), "/work/jobs-of-mine/jobgen");
  assert.equal(commandOf("/opt/jobgen", [], UNTRUSTED), "/opt/jobgen");
});

test("folders of the PATH that are relative or in the workspace do not count where it is not trusted", () => {
  const trusted = resolve("jobgen");
  const untrusted = resolve("jobgen", [], UNTRUSTED);

  assert.ok("env" in trusted && "env" in untrusted);
  assert.equal(trusted.env["PATH"], AROUND.env["PATH"]);
  assert.equal(untrusted.env["PATH"], "/usr/bin:/home/ada/.local/bin");
});

test("a workspace decides where hints are shown, trusted or not", () => {
  for (const isTrusted of [true, false]) {
    assert.equal(readSettings((name) => (name === "inlayHints" ? { workspaceValue: true } : undefined), isTrusted).inlayHints, true);
  }
});
