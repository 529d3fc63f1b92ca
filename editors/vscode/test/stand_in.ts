// A stand-in for the module `vscode`, which exists only inside VS Code: it records what an extension shows, and has one
// document. What the language client asks for and the tests do not need is an object that accepts every call.
import Module from "node:module";
import * as path from "node:path";
import { pathToFileURL } from "node:url";

export interface Diagnostic {
  message: string;
  code?: unknown;
}

export interface Editor {
  settings: Record<string, unknown>;
  isTrusted: boolean;
  folder: string;
  document: { file: string; text: string };
  /** Whether the document is the active one, with the cursor at its start. */
  isActive: boolean;
  messages: string[];
  /** The URIs of documents that were shown. */
  shown: string[];
  /** Returns the text of a document that an extension provides, by scheme. */
  providers: Map<string, (uri: string) => Promise<string>>;
  diagnostics: Map<string, readonly Diagnostic[]>;
  commands: Map<string, (...given: unknown[]) => unknown>;
  /** The commands of the editor itself that were executed, with their arguments. */
  executed: unknown[][];
}

const anything: unknown = new Proxy(function () {}, {
  get: (known, name) => (name === "then" ? undefined : name === "prototype" ? known.prototype : anything),
  apply: () => anything,
  construct: (_, __, created) => Reflect.construct(Object, [], created),
});

class Disposable {
  constructor(private readonly release: () => void = () => undefined) {}
  static from(...all: Disposable[]): Disposable {
    return new Disposable(() => all.forEach((each) => each.dispose()));
  }
  dispose(): void {
    this.release();
  }
}

class EventEmitter {
  private readonly listeners = new Set<(value: unknown) => void>();
  readonly event = (listener: (value: unknown) => void): Disposable => {
    this.listeners.add(listener);
    return new Disposable(() => this.listeners.delete(listener));
  };
  fire(value: unknown): void {
    this.listeners.forEach((each) => each(value));
  }
  dispose(): void {
    this.listeners.clear();
  }
}

class CancellationTokenSource {
  readonly token = { isCancellationRequested: false, onCancellationRequested: () => new Disposable() };
  cancel(): void {}
  dispose(): void {}
}

class Uri {
  constructor(readonly scheme: string, readonly fsPath: string, private readonly text: string) {}
  static file(file: string): Uri {
    return new Uri("file", file, pathToFileURL(file).href);
  }
  static parse(text: string): Uri {
    const url = new URL(text);
    return new Uri(url.protocol.slice(0, -1), decodeURIComponent(url.pathname), text);
  }
  get path(): string {
    return this.fsPath;
  }
  toString(): string {
    return this.text;
  }
}

class Position {
  constructor(readonly line: number, readonly character: number) {}
}

class Range {
  constructor(readonly start: Position, readonly end: Position) {}
}

class LocationStandIn {
  constructor(readonly uri: Uri, readonly range: Range) {}
}

class DiagnosticStandIn implements Diagnostic {
  code?: unknown;
  constructor(readonly range: Range, readonly message: string) {}
}

interface ContentProvider {
  provideTextDocumentContent(uri: Uri, token: unknown): Promise<string>;
}

const none = (): Disposable => new Disposable();

/** Makes `require("vscode")` return a stand-in, until the process ends. */
export function installEditor(editor: Editor): void {
  const channel = new Proxy({}, { get: (_, name) => (name === "logLevel" ? 3 : none) });
  const textDocument = {
    uri: Uri.file(editor.document.file),
    languageId: "yaml",
    version: 1,
    fileName: editor.document.file,
    getText: () => editor.document.text,
  };
  const workspace = {
    isTrusted: editor.isTrusted,
    workspaceFolders: [{ uri: Uri.file(editor.folder), name: path.basename(editor.folder), index: 0 }],
    textDocuments: [textDocument],
    notebookDocuments: [],
    getConfiguration: () => ({
      get: (name: string, fallback: unknown) => editor.settings[name] ?? fallback,
      inspect: (name: string) => ({ globalValue: editor.settings[name] }),
    }),
    registerTextDocumentContentProvider: (scheme: string, provider: ContentProvider) => {
      const { token } = new CancellationTokenSource();
      editor.providers.set(scheme, async (uri) => provider.provideTextDocumentContent(Uri.parse(uri), token));
      return new Disposable(() => editor.providers.delete(scheme));
    },
    createFileSystemWatcher: () => ({ onDidCreate: none, onDidChange: none, onDidDelete: none, dispose: none }),
    getWorkspaceFolder: () => workspace.workspaceFolders[0],
  };
  const module = {
    Disposable, EventEmitter, CancellationTokenSource, Uri, Position, Range,
    Diagnostic: DiagnosticStandIn,
    Location: LocationStandIn,
    version: "1.91.0",
    LogLevel: { Off: 0, Trace: 1, Debug: 2, Info: 3, Warning: 4, Error: 5 },
    workspace: new Proxy(workspace, { get: (known, name) => Reflect.get(known, name) ?? none }),
    window: new Proxy(
      {
        createOutputChannel: () => channel,
        showErrorMessage: (message: string, ...answers: string[]) => {
          editor.messages.push([message, ...answers].join(" | "));
          return Promise.resolve(undefined);
        },
        showInformationMessage: (message: string) => {
          editor.messages.push(message);
          return Promise.resolve(undefined);
        },
        showTextDocument: (uri: Uri) => {
          editor.shown.push(uri.toString());
          return Promise.resolve({});
        },
        get activeTextEditor() {
          return editor.isActive ? { document: textDocument, selection: { active: new Position(0, 0) } } : undefined;
        },
        visibleTextEditors: [],
        tabGroups: { all: [], onDidChangeTabs: none, onDidChangeTabGroups: none },
      },
      { get: (known, name) => (name in known ? Reflect.get(known, name) : none) },
    ),
    languages: new Proxy(
      {
        match: (selector: { language?: string; scheme?: string }[]) =>
          [selector].flat().some((each) => each.language === "yaml" && each.scheme === "file") ? 10 : 0,
        createDiagnosticCollection: () => ({
          set: (uri: Uri, found: readonly Diagnostic[]) => editor.diagnostics.set(uri.toString(), found),
          delete: (uri: Uri) => editor.diagnostics.delete(uri.toString()),
          clear: () => editor.diagnostics.clear(),
          dispose: none,
        }),
      },
      { get: (known, name) => Reflect.get(known, name) ?? none },
    ),
    commands: {
      registerCommand: (name: string, run: (...given: unknown[]) => unknown) => {
        editor.commands.set(name, run);
        return new Disposable(() => editor.commands.delete(name));
      },
      executeCommand: (...given: unknown[]) => Promise.resolve(editor.executed.push(given)),
    },
    env: { appName: "stand-in", language: "en", openExternal: () => Promise.resolve(true) },
  };
  const loader = Module as unknown as { _load(name: string, ...others: unknown[]): unknown };
  const load = loader._load;
  const complete = new Proxy(module, { get: (known, name) => Reflect.get(known, name) ?? anything });
  loader._load = (name, ...others) => (name === "vscode" ? complete : load.call(loader, name, ...others));
}
