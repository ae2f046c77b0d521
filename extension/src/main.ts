/** activate(): build, register, nothing else. */

import * as vscode from "vscode";

import { COMMANDS } from "./contributions.js";
import { Jobs } from "./debug/jobs.js";
import { Log } from "./log.js";

export function activate(context: vscode.ExtensionContext): void {
  const log = new Log();
  const jobs = new Jobs();
  context.subscriptions.push(
    log,
    jobs,
    vscode.commands.registerCommand(COMMANDS.showLog, () => {
      log.channel.show();
    }),
  );
}
