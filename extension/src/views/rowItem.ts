/** A row of a tree view, as VS Code is told of it. */

import * as vscode from "vscode";

interface Row {
  readonly id: string;
  readonly label: string;
  readonly description: string;
  readonly contextValue: string;
  /** What a screen reader says. */
  readonly spoken: string;
  readonly icon?: { readonly name: string; readonly color?: string | undefined } | undefined;
}

export function rowItem(row: Row, state: vscode.TreeItemCollapsibleState): vscode.TreeItem {
  const item = new vscode.TreeItem(row.label, state);
  item.id = row.id;
  item.description = row.description;
  item.contextValue = row.contextValue;
  item.accessibilityInformation = { label: row.spoken };
  if (row.icon) {
    const { name, color } = row.icon;
    item.iconPath = new vscode.ThemeIcon(name, color === undefined ? undefined : new vscode.ThemeColor(color));
  }
  return item;
}
