import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import * as os from "node:os";
import * as path from "node:path";
import { after, before, test } from "node:test";
import { explainFailure, type Explanation } from "../src/failure";
import { startServer } from "../src/server";

let folder = "";

before(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), "jobgen-vscode-"));
});

after(() => rm(folder, { recursive: true }));

/** Runs a script in place of jobgen, and returns the message for the user. */
async function explain(script: string, mode = 0o755): Promise<Explanation> {
  const command = path.join(folder, "jobgen");
  await writeFile(command, `#!/bin/sh\n${script}\n`);
  await chmod(command, mode);
  const started = await startServer({ command, args: ["lsp", "--stdio"], cwd: folder, env: { PATH: process.env["PATH"] } });
  return explainFailure("process" in started ? await started.waitForEnd() : started);
}

test("a command that is missing comes with how to install it", async () => {
  const started = await startServer({ command: "jobgen", args: [], cwd: folder, env: { PATH: folder + "/none" } });

  assert.ok(!("process" in started));
  assert.deepEqual(explainFailure(started), {
    message:
      "The command `jobgen` was not found. Install jobgen with `pipx install 'jobgen[lsp]'` or " +
      "`pip install 'jobgen[lsp]'`, or set `jobgen.path`.",
    isInstallation: true,
  });
});

test("a file that is no program is an error of the setting", async () => {
  const explained = await explain("exit 0", 0o644);

  assert.match(explained.message, /could not be started \(EACCES\)/);
  assert.equal(explained.isInstallation, false);
});

test("a version without the command is too old", async () => {
  const explained = await explain(`echo "jobgen: no such command 'lsp'" >&2; exit 2`);

  assert.match(explained.message, /is too old.*pipx upgrade jobgen/);
  assert.equal(explained.isInstallation, true);
});

test("an installation without the extra says which", async () => {
  const explained = await explain(
    `echo "jobgen: the language server needs the extra \\\`lsp\\\` (\\\`lsprotocol\\\` is missing); install \\\`jobgen[lsp]\\\`" >&2; exit 2`,
  );

  assert.match(explained.message, /is not installed.*pip install 'jobgen\[lsp\]'/);
  assert.equal(explained.isInstallation, true);
});

test("other ends show the code or signal and the last line", async () => {
  assert.match((await explain("echo one >&2; echo two >&2; exit 3")).message, /ended with code 3: two\. The log has more\.$/);
  assert.match((await explain("kill -9 $$")).message, /ended by the signal SIGKILL\. The log has more\.$/);
  assert.match((await explain("exit 0")).message, /ended with code 0\. The log/);
});

test("only the end of a long error output is kept", async () => {
  const explained = await explain(`i=0; while [ $i -lt 3000 ]; do echo "line $i" >&2; i=$((i+1)); done; exit 1`);

  assert.match(explained.message, /: line 2999\. The log/);
});
