/** Opening launch.json where something is wrong. */

import * as vscode from "vscode";

import { placeInLaunchText } from "../core/launchText.js";

/** Show a configuration's key in the folder's launch.json; where it is not found, whatever VS Code opens instead. */
export async function openLaunchFile(
  folder: vscode.WorkspaceFolder | undefined,
  name: string,
  key?: string,
): Promise<void> {
  const document = folder && (await opened(vscode.Uri.joinPath(folder.uri, ".vscode", "launch.json")));
  const place = document && placeInLaunchText(document.getText(), name, key);
  if (!document || !place) {
    await vscode.commands.executeCommand("workbench.action.debug.configure");
    return;
  }
  const selection = new vscode.Range(document.positionAt(place.start), document.positionAt(place.end));
  await vscode.window.showTextDocument(document, { selection });
}

async function opened(uri: vscode.Uri): Promise<vscode.TextDocument | undefined> {
  try {
    return await vscode.workspace.openTextDocument(uri);
  } catch {
    return undefined; // there is no such file
  }
}
