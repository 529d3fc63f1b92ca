// What to say when the server does not start.

/** How a start ended: an error of the operating system, or the end of the process and what it printed. */
export interface Failure {
  command: string;
  systemError?: string | undefined;
  exitCode?: number | null | undefined;
  signal?: string | null | undefined;
  errorOutput: string;
}

export interface Explanation {
  message: string;
  /** Whether to offer the instructions for the installation, beside the setting and the log. */
  isInstallation: boolean;
}

const UPGRADE = "`pipx upgrade jobgen` or `pip install --upgrade 'jobgen[lsp]'`";
const INSTALL = "`pipx install 'jobgen[lsp]'` or `pip install 'jobgen[lsp]'`";

/** Returns what is wrong, and what to do about it. */
export function explainFailure(failure: Failure): Explanation {
  const { command, systemError, errorOutput } = failure;
  if (systemError === "ENOENT") {
    const message = `The command \`${command}\` was not found. Install jobgen with ${INSTALL}, or set \`jobgen.path\`.`;
    return { message, isInstallation: true };
  }
  if (systemError !== undefined) {
    const message = `The command \`${command}\` could not be started (${systemError}). Set \`jobgen.path\` to the program.`;
    return { message, isInstallation: false };
  }
  if (/no (such )?command ['`]?lsp/i.test(errorOutput)) {
    const message = `The version of jobgen at \`${command}\` is too old: it has no language server. Upgrade it with ${UPGRADE}.`;
    return { message, isInstallation: true };
  }
  if (errorOutput.includes("jobgen[lsp]")) {
    const message = `The language server of \`${command}\` is not installed. Install it with ${INSTALL}.`;
    return { message, isInstallation: true };
  }
  return { message: describeEnd(failure), isInstallation: false };
}

function describeEnd({ command, exitCode, signal, errorOutput }: Failure): string {
  const how = signal ? `by the signal ${signal}` : `with code ${exitCode ?? "unknown"}`;
  const lines = errorOutput.trim().split("\n");
  const last = lines[lines.length - 1];
  return `\`${command}\` has ended ${how}${last ? `: ${last}` : ""}. The log has more.`;
}
