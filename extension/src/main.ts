/** activate(): build, register, nothing else. */

import * as vscode from "vscode";

import { COMMANDS } from "./contributions.js";
import { BreakpointRanks } from "./debug/breakpoints.js";
import { ChildSessions } from "./debug/childSessions.js";
import { Configuration } from "./debug/configuration.js";
import { DescriptorFactory } from "./debug/descriptorFactory.js";
import { Gutter } from "./debug/gutter.js";
import { Interpreters } from "./debug/interpreter.js";
import { Jobs } from "./debug/jobs.js";
import { PostMortem } from "./debug/postMortem.js";
import { RunControl } from "./debug/runControl.js";
import { Log } from "./log.js";
import { RanksView } from "./views/ranksView.js";

export function activate(context: vscode.ExtensionContext): void {
  const log = new Log();
  const jobs = new Jobs();
  const interpreters = new Interpreters(log);
  context.subscriptions.push(
    log,
    jobs,
    vscode.commands.registerCommand(COMMANDS.showLog, () => {
      log.channel.show();
    }),
    new Configuration(log, interpreters, context),
    new DescriptorFactory(log, interpreters, context),
    new ChildSessions(jobs, log),
    new RunControl(jobs, log),
    new PostMortem(jobs, log),
    new RanksView(jobs, log),
    new BreakpointRanks(jobs, log),
    new Gutter(jobs),
  );
}
