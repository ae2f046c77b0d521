/** activate(): build, register, nothing else. */

import * as vscode from "vscode";

import { COMMANDS } from "./contributions.js";
import { BreakpointRanks } from "./debug/breakpoints.js";
import { ChildSessions } from "./debug/childSessions.js";
import { Configuration } from "./debug/configuration.js";
import { DescriptorFactory } from "./debug/descriptorFactory.js";
import { Gutter } from "./debug/gutter.js";
import { Hangs } from "./debug/hangs.js";
import { Interpreters } from "./debug/interpreter.js";
import { Jobs } from "./debug/jobs.js";
import { PostMortem } from "./debug/postMortem.js";
import { RunControl } from "./debug/runControl.js";
import { ScopeChoice } from "./debug/scopeChoice.js";
import { Log } from "./log.js";
import { ProblemsClient } from "./lsp/client.js";
import { ComparePanel } from "./views/comparePanel.js";
import { RanksView } from "./views/ranksView.js";
import { StackSource } from "./views/stackSource.js";
import { StacksPanel } from "./views/stacksPanel.js";
import { StacksView } from "./views/stacksView.js";

export function activate(context: vscode.ExtensionContext): void {
  const log = new Log();
  const jobs = new Jobs();
  const scope = new ScopeChoice(jobs);
  const interpreters = new Interpreters(log);
  const stacks = new StackSource(jobs);
  context.subscriptions.push(
    log,
    jobs,
    vscode.commands.registerCommand(COMMANDS.showLog, () => {
      log.channel.show();
    }),
    new Configuration(log, interpreters, context),
    new DescriptorFactory(log, interpreters, context),
    new ChildSessions(jobs, log),
    scope,
    new RunControl(jobs, log, scope),
    new PostMortem(jobs, log),
    new Hangs(jobs, log),
    new RanksView(jobs, log, scope),
    stacks,
    new StacksView(jobs, stacks, log),
    new StacksPanel(jobs, stacks, log, context.extensionUri),
    new ComparePanel(jobs, log, context.extensionUri, context.workspaceState),
    new BreakpointRanks(jobs, log),
    new Gutter(jobs),
    new ProblemsClient(log, interpreters, context),
  );
}
