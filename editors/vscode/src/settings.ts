// The settings of a workspace, as the program to start. Values in, values out: nothing here knows VS Code.
import * as path from "node:path";

/** A setting as VS Code stores it, by where it was written. */
export interface Scopes<T> {
  defaultValue?: T | undefined;
  globalValue?: T | undefined;
  workspaceValue?: T | undefined;
  workspaceFolderValue?: T | undefined;
}

export interface Settings {
  path: string;
  arguments: readonly string[];
  inlayHints: boolean;
}

/** What surrounds the settings: the workspace, and the environment of the editor. */
export interface Surroundings {
  isTrusted: boolean;
  folders: readonly string[];
  home: string;
  env: Readonly<Record<string, string | undefined>>;
}

export interface Launch {
  command: string;
  args: string[];
  cwd: string;
  env: Record<string, string | undefined>;
}

export interface Refusal {
  refusal: string;
}

/** Returns the value that applies. In a workspace that is not trusted, what the workspace sets does not. */
export function chooseValue<T>(scopes: Scopes<T> | undefined, isTrusted: boolean, fallback: T): T {
  const own = scopes?.globalValue ?? scopes?.defaultValue ?? fallback;
  return isTrusted ? (scopes?.workspaceFolderValue ?? scopes?.workspaceValue ?? own) : own;
}

/** Returns the settings. A value of another type than the setting's own is replaced by the default. */
export function readSettings(inspect: (name: string) => Scopes<unknown> | undefined, isTrusted: boolean): Settings {
  const program = chooseValue(inspect("path"), isTrusted, "jobgen");
  const given = chooseValue(inspect("arguments"), isTrusted, []);
  return {
    path: typeof program === "string" && program.trim() !== "" ? program.trim() : "jobgen",
    arguments: Array.isArray(given) ? given.filter((each): each is string => typeof each === "string") : [],
    inlayHints: chooseValue(inspect("inlayHints"), true, false) === true,
  };
}

/**
 * Returns how to start the server, or why it is not started.
 *
 * A repository that is not trusted must not start a program of its own: neither by its settings, nor because a setting
 * of the user points into the workspace, nor because a folder of the PATH is in it.
 */
export function resolveLaunch(settings: Pick<Settings, "path" | "arguments">, around: Surroundings): Launch | Refusal {
  const command = resolveCommand(expand(settings.path, around), around);
  const args = settings.arguments.map((each) => expand(each, around));
  const inside = [command, ...args].find((each) => path.isAbsolute(each) && isInside(each, around.folders));
  if (!around.isTrusted && inside !== undefined) {
    return {
      refusal:
        `The server is not started: \`${inside}\` is part of this workspace, which is not trusted. ` +
        "Trust the workspace, or set `jobgen.path` to a program outside of it.",
    };
  }
  // Not the workspace: Windows looks for a program in the current folder first.
  return { command, args: [...args, "lsp", "--stdio"], cwd: around.home, env: limitPath(around) };
}

/** A name is searched in the PATH; a path is relative to the workspace, or to the home without one. */
function resolveCommand(command: string, around: Surroundings): string {
  const isName = !command.includes("/") && !command.includes(path.sep);
  return isName ? command : path.resolve(around.folders[0] ?? around.home, command);
}

function expand(text: string, around: Surroundings): string {
  const home = text === "~" || text.startsWith("~/") ? around.home + text.slice(1) : text;
  return home.replace(/\$\{(workspaceFolder|userHome|env:([^}]*))\}/g, (_, name: string, variable?: string) => {
    if (name === "workspaceFolder") {
      return around.folders[0] ?? around.home;
    }
    return name === "userHome" ? around.home : (around.env[variable ?? ""] ?? "");
  });
}

function limitPath(around: Surroundings): Record<string, string | undefined> {
  if (around.isTrusted) {
    return { ...around.env };
  }
  const isKept = (folder: string): boolean => path.isAbsolute(folder) && !isInside(folder, around.folders);
  return Object.fromEntries(
    Object.entries(around.env).map(([name, value]) => [
      name,
      name.toUpperCase() === "PATH" ? (value ?? "").split(path.delimiter).filter(isKept).join(path.delimiter) : value,
    ]),
  );
}

function isInside(target: string, folders: readonly string[]): boolean {
  return folders.some((folder) => {
    const relative = path.relative(folder, target);
    return relative === "" || (!relative.startsWith(`..${path.sep}`) && relative !== ".." && !path.isAbsolute(relative));
  });
}
