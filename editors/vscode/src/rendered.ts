// The rendered manifest of a job: a read-only document of the server, by scheme.
import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";

/** Documents of this scheme have the text that the server renders (`workspace/textDocumentContent`). */
export const RENDERED_SCHEME = "jobgen-rendered";
const SERVER_COMMAND = "jobgen.showRendered";

/**
 * Asks the server to open what the job at the cursor is rendered as, in all its environments, or the difference to the
 * base of the branch. Returns why that is not possible.
 */
export async function showRendered(client: LanguageClient | undefined, diff: boolean): Promise<string | undefined> {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) {
    return "No file is open. Open a job first.";
  }
  if (client === undefined) {
    return "The server does not run. Use the command `jobgen: Show log` to see why.";
  }
  if (!client.initializeResult?.capabilities.executeCommandProvider?.commands.includes(SERVER_COMMAND)) {
    return "This version of jobgen cannot show rendered manifests. Upgrade jobgen.";
  }
  const uri = client.code2ProtocolConverter.asUri(editor.document.uri);
  const position = client.code2ProtocolConverter.asPosition(editor.selection.active);
  await client.sendRequest("workspace/executeCommand", {
    command: SERVER_COMMAND,
    arguments: [{ uri, position, diff }],
  });
  return undefined;
}
