// The process of the server, with the end of what it prints as errors.
import { spawn, type ChildProcess } from "node:child_process";
import type { Failure } from "./failure";
import type { Launch } from "./settings";

const KEPT_CHARACTERS = 4000;

export interface ServerProcess {
  process: ChildProcess;
  /** Returns how the process has ended, once it has. */
  waitForEnd(): Promise<Failure>;
}

/** Starts the server. A program that cannot be started is a `Failure`. */
export async function startServer(launch: Launch): Promise<ServerProcess | Failure> {
  const child = spawn(launch.command, launch.args, { cwd: launch.cwd, env: launch.env, windowsHide: true });
  let errorOutput = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errorOutput = (errorOutput + text).slice(-KEPT_CHARACTERS);
  });
  const end = new Promise<Failure>((resolve) => {
    child.once("close", (exitCode, signal) => resolve({ command: launch.command, exitCode, signal, errorOutput }));
  });
  return new Promise((resolve) => {
    child.once("spawn", () => resolve({ process: child, waitForEnd: () => end }));
    child.once("error", (error: NodeJS.ErrnoException) => {
      resolve({ command: launch.command, systemError: error.code ?? error.message, errorOutput: "" });
    });
  });
}
