import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

// npm runs scripts in the folder of package.json.
const manifest = JSON.parse(readFileSync("package.json", "utf8"));
const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
const sources = readdirSync("src").map((name) => readFileSync(`src/${name}`, "utf8")).join();
const properties: Record<string, { scope: string }> = manifest.contributes.configuration.properties;

test("every command of the manifest is registered, and no other", () => {
  const registered = [...sources.matchAll(/registerCommand\("([^"]+)"/g)].map((found) => found[1]);
  const contributed = manifest.contributes.commands.map((each: { command: string }) => each.command);

  assert.deepEqual(registered.sort(), contributed.sort());
});

test("every setting that is read is in the manifest, and documented in the README", () => {
  const read = [...sources.matchAll(/inspect\("([^"]+)"/g)].map((found) => `jobgen.${found[1]}`);
  const readme = readFileSync("README.md", "utf8");

  assert.deepEqual([...read, "jobgen.trace.server"].sort(), Object.keys(properties).sort());
  for (const name of Object.keys(properties)) {
    assert.ok(readme.includes(`\`${name}\``), name);
  }
});

test("settings that choose a program are restricted in workspaces that are not trusted", () => {
  const restricted: string[] = manifest.capabilities.untrustedWorkspaces.restrictedConfigurations;
  const machine = Object.entries(properties).filter(([, each]) => each.scope === "machine-overridable");

  assert.equal(manifest.capabilities.untrustedWorkspaces.supported, "limited");
  assert.deepEqual(machine.map(([name]) => name).sort(), [...restricted].sort());
  assert.ok(restricted.includes("jobgen.path") && restricted.includes("jobgen.arguments"));
});

test("a jobs repository is found in any folder of the workspace", () => {
  const events: string[] = manifest.activationEvents;

  assert.ok(events.includes("workspaceContains:jobgen.yaml") && events.includes("workspaceContains:**/jobgen.yaml"));
});

test("the types are those of the oldest version of VS Code that is supported", () => {
  const [, minor] = /^\^1\.(\d+)\.0$/.exec(manifest.engines.vscode) ?? [];

  assert.equal(manifest.devDependencies["@types/vscode"], `~1.${minor}.0`);
  assert.equal(lock.packages["node_modules/vscode-languageclient"].engines.vscode, manifest.engines.vscode);
});

test("the lock file names no registry, and has a digest for each package", () => {
  const packages: [string, { resolved?: string; integrity?: string }][] = Object.entries(lock.packages);
  const others = packages.filter(([name]) => name !== "");

  assert.ok(others.length > 10);
  assert.deepEqual(others.filter(([, each]) => each.resolved !== undefined), []);
  assert.deepEqual(others.filter(([, each]) => each.integrity === undefined), []);
});

test("the change log has the version", () => {
  assert.ok(readFileSync("CHANGELOG.md", "utf8").includes(`## ${manifest.version}`));
});
