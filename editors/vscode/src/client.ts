// The client: one server for all folders of the window, started, watched and stopped.
import type { ChildProcess } from "node:child_process";
import * as os from "node:os";
import * as vscode from "vscode";
import { CloseAction, LanguageClient, State, type LanguageClientOptions } from "vscode-languageclient/node";
import { explainFailure, type Explanation } from "./failure";
import { announcesCommands } from "./references";
import { RENDERED_SCHEME } from "./rendered";
import { startServer, type ServerProcess } from "./server";
import { readSettings, resolveLaunch, type Launch, type Refusal, type Settings } from "./settings";

const SELECTOR = [
  { scheme: "file", language: "yaml" },
  { scheme: "file", language: "json" },
  { scheme: "file", language: "jsonc" },
  { scheme: RENDERED_SCHEME },
];
const STOP_MILLISECONDS = 2000;

/** A client that runs, and how to stop it with its server. */
export interface Running {
  client: LanguageClient;
  stop(): Promise<void>;
}

/** Starts the server and connects to it, or returns what to tell the user. */
export async function startClient(channel: vscode.LogOutputChannel): Promise<Running | Explanation> {
  const settings = findSettings();
  const launch = findLaunch(settings);
  if ("refusal" in launch) {
    return { message: launch.refusal, isInstallation: false };
  }
  channel.info(`Starting ${[launch.command, ...launch.args].join(" ")}`);
  const first = await startServer(launch);
  if (!("process" in first)) {
    return explainFailure(first);
  }
  const { inlayHints } = settings;
  const running = connect(launch, first, { outputChannel: channel, initializationOptions: { inlayHints } });
  try {
    await running.client.start();
    return running;
  } catch (error) {
    channel.error(String(error));
    // A server that refused the client still runs; one that has ended ignores this.
    first.process.kill();
    return explainFailure(await first.waitForEnd());
  }
}

function findSettings(): Settings {
  const configuration = vscode.workspace.getConfiguration("jobgen");
  return readSettings((name) => configuration.inspect(name), vscode.workspace.isTrusted);
}

/** Returns the program to start for the folders and settings of the window. */
function findLaunch(settings: Settings): Launch | Refusal {
  const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
  const isTrusted = vscode.workspace.isTrusted;
  return resolveLaunch(settings, { isTrusted, folders, home: os.homedir(), env: process.env });
}

/** Connects to a server. If it ends later, the client starts another one, as often as VS Code's own rule allows. */
function connect(launch: Launch, first: ServerProcess, own: LanguageClientOptions): Running {
  let isFirst = true;
  let current = first.process;
  const client = createClient(own, async () => {
    const next = isFirst ? first : await startServer(launch);
    isFirst = false;
    if (!("process" in next)) {
      throw new Error(explainFailure(next).message);
    }
    current = next.process;
    return current;
  });
  return { client, stop: () => stop(client, () => current) };
}

/** A client that shows no errors before it has run once: `startClient` explains why a start has failed. */
class QuietClient extends LanguageClient {
  wasReady = false;

  override error(message: string, data?: unknown, show?: boolean | "force"): void {
    super.error(message, data, this.wasReady ? show : false);
  }
}

function createClient(own: LanguageClientOptions, start: () => Promise<ChildProcess>): LanguageClient {
  const options: LanguageClientOptions = {
    ...own,
    documentSelector: SELECTOR,
    diagnosticCollectionName: "jobgen",
    initializationFailedHandler: () => false,
    errorHandler: {
      error: (...given) => usual.error(...given),
      closed: () => (client.wasReady ? usual.closed() : { action: CloseAction.DoNotRestart, handled: true }),
    },
  };
  const client = new QuietClient("jobgen", "jobgen", start, options);
  client.registerFeature(announcesCommands);
  const usual = client.createDefaultErrorHandler();
  client.onDidChangeState(({ newState }) => {
    client.wasReady ||= newState === State.Running;
  });
  return client;
}

async function stop(client: LanguageClient, current: () => ChildProcess): Promise<void> {
  await client.dispose(STOP_MILLISECONDS).catch(() => undefined);
  const server = current();
  setTimeout(() => server.exitCode === null && server.kill(), STOP_MILLISECONDS).unref();
}
