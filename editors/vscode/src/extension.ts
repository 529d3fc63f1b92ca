// The extension: commands, and a server that follows the settings and the trust of the workspace.
import * as vscode from "vscode";
import type { Location, Position } from "vscode-languageclient/node";
import { startClient, type Running } from "./client";
import type { Explanation } from "./failure";
import { SHOW_REFERENCES, showReferences } from "./references";
import { showRendered } from "./rendered";

const INSTALL_PAGE = "https://github.com/jobgen/jobgen/blob/main/docs/editors.md#install";
const RESTART_SETTINGS = ["jobgen.path", "jobgen.arguments", "jobgen.inlayHints"];

let running: Running | undefined;
let change: Promise<void> = Promise.resolve();

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const channel = vscode.window.createOutputChannel("jobgen", { log: true });
  const restart = (): Promise<void> => enqueue(() => restartServer(channel));
  context.subscriptions.push(
    channel,
    vscode.commands.registerCommand("jobgen.restartServer", restart),
    vscode.commands.registerCommand("jobgen.showLog", () => channel.show()),
    vscode.commands.registerCommand("jobgen.showRenderedManifest", () => showManifest(false)),
    vscode.commands.registerCommand("jobgen.showRenderedDiff", () => showManifest(true)),
    vscode.commands.registerCommand(SHOW_REFERENCES, (uri: string, position: Position, locations: Location[]) =>
      showReferences(running?.client, uri, position, locations),
    ),
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (RESTART_SETTINGS.some((name) => event.affectsConfiguration(name))) {
        void restart();
      }
    }),
  );
  await restart();
}

export function deactivate(): Promise<void> {
  return enqueue(stopServer);
}

/** Starts and stops happen one after the other. */
function enqueue(next: () => Promise<void>): Promise<void> {
  change = change.then(next, next);
  return change;
}

async function restartServer(channel: vscode.LogOutputChannel): Promise<void> {
  await stopServer();
  const started = await startClient(channel);
  if ("client" in started) {
    running = started;
  } else {
    channel.error(started.message);
    void explain(started, channel);
  }
}

async function stopServer(): Promise<void> {
  const stopped = running;
  running = undefined;
  await stopped?.stop();
}

async function explain(explanation: Explanation, channel: vscode.LogOutputChannel): Promise<void> {
  const install = explanation.isInstallation ? ["How to install"] : [];
  const answer = await vscode.window.showErrorMessage(explanation.message, ...install, "Open settings", "Show log");
  if (answer === "How to install") {
    await vscode.env.openExternal(vscode.Uri.parse(INSTALL_PAGE));
  } else if (answer === "Open settings") {
    await vscode.commands.executeCommand("workbench.action.openSettings", "jobgen.path");
  } else if (answer === "Show log") {
    channel.show();
  }
}

async function showManifest(diff: boolean): Promise<void> {
  const problem = await showRendered(running?.client, diff);
  if (problem !== undefined) {
    void vscode.window.showInformationMessage(problem);
  }
}
