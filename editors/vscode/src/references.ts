// The jobs of a patch or an overlay, which a lens of the server names, in VS Code's own list of references.
import * as vscode from "vscode";
import type { FeatureState, LanguageClient, Location, Position, StaticFeature } from "vscode-languageclient/node";

/** A command that lenses of the server may use, because this client has it. */
export const SHOW_REFERENCES = "jobgen.showReferences";

/** Says which commands of lenses this client has. */
export const announcesCommands: StaticFeature = {
  fillClientCapabilities: (capabilities) => {
    capabilities.experimental = { ...capabilities.experimental, commands: { commands: [SHOW_REFERENCES] } };
  },
  initialize: () => undefined,
  getState: (): FeatureState => ({ kind: "static" }),
  clear: () => undefined,
};

/** Shows the locations that the server has listed for a position. */
export async function showReferences(
  client: LanguageClient | undefined,
  uri: string,
  position: Position,
  locations: Location[],
): Promise<void> {
  const convert = client?.protocol2CodeConverter;
  if (convert !== undefined) {
    await vscode.commands.executeCommand(
      "editor.action.showReferences",
      convert.asUri(uri),
      convert.asPosition(position),
      locations.map((each) => convert.asLocation(each)),
    );
  }
}
