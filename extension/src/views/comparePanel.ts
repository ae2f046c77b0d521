/** One expression side by side over many ranks, in a panel beside the editors. */

import * as vscode from "vscode";

import { COMMANDS, PANELS } from "../contributions.js";
import type { CompareForm, CompareState, FromCompare, ToCompare } from "../core/panelMessages.js";
import type { Comparison, CompareQuestion } from "../core/protocol.js";
import { RankSet, RankSetError } from "../core/rankSet.js";
import type { Job, Jobs } from "../debug/jobs.js";
import { rankSetNames } from "../debug/rankSetNames.js";
import type { Log } from "../log.js";
import { goTo } from "./goTo.js";
import { Panel } from "./panel.js";

const KIND = { id: PANELS.compare, title: "Compare Ranks", script: "compare" };
const FIRST_FORM: CompareForm = { expression: "", ranks: "all", isFollowing: true, reference: "" };
const FORM_KEY = "compareForm";
/** Ranks stop one after another: one question when they have. */
const QUIET_MILLISECONDS = 250;
/** What a rank has for its answer, and the hub beside it. */
const SECONDS = 5;
const ANSWER_SECONDS = 20;
const DELTA_SECONDS = 60;

/** Owns one timer. Only the newest question counts. */
export class ComparePanel implements vscode.Disposable {
  private readonly panel: Panel<ToCompare, FromCompare>;
  private readonly disposables: vscode.Disposable[] = [];
  private form: CompareForm;
  private isFormNew = true;
  private answer: Comparison | undefined;
  private answeredBy: Job | undefined;
  private when = "";
  private error = "";
  private asked = 0;
  private isBusy = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly jobs: Jobs,
    private readonly log: Log,
    extensionUri: vscode.Uri,
    /** Of the workspace: keeps the form. */
    private readonly memento: vscode.Memento,
  ) {
    this.panel = new Panel<ToCompare, FromCompare>(KIND, extensionUri);
    this.form = { ...FIRST_FORM, ...memento.get<Partial<CompareForm>>(FORM_KEY), reference: "" };
    const post = (): void => {
      this.post();
    };
    this.disposables.push(
      this.panel,
      this.panel.onDidReceive((message) => {
        void this.take(message);
      }),
      this.panel.onDidChangeVisibility(() => {
        this.follow(this.jobs.focused);
      }),
      jobs.onDidStart(post),
      jobs.onDidEnd(post),
      jobs.onDidChangeRanks((job) => {
        this.follow(job);
        if (!this.answer) post();
      }),
      jobs.onDidChangeFocus((job) => {
        this.follow(job);
      }),
    );
    this.register(COMMANDS.compare, (expression) => {
      this.open(typeof expression === "string" ? expression : undefined);
    });
    this.register(COMMANDS.compareVariable, (context) => {
      this.open(expressionOf(context));
    });
    this.register(COMMANDS.compareSelection, () => {
      this.open(selectedExpression());
    });
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const disposable of this.disposables) disposable.dispose();
  }

  private register(command: string, run: (context: unknown) => void): void {
    this.disposables.push(vscode.commands.registerCommand(command, run));
  }

  private open(expression?: string): void {
    if (expression) {
      this.keep({ ...this.form, expression, reference: "" });
      this.isFormNew = true;
      void this.ask();
    }
    this.panel.open();
    this.post();
  }

  private async take(message: FromCompare): Promise<void> {
    try {
      switch (message.type) {
        case "ready":
          this.isFormNew = true;
          this.post();
          this.follow(this.jobs.focused);
          break;
        case "form":
          this.keep(message.form);
          break;
        case "compare":
          this.keep(message.form);
          await this.ask();
          break;
        case "open":
          if (this.answeredBy && !this.answeredBy.hasEnded) await goTo(this.answeredBy, [message.member], undefined);
          break;
        case "copy":
          await vscode.env.clipboard.writeText(message.text);
          vscode.window.setStatusBarMessage("The comparison is in the clipboard.", 4000);
          break;
        case "pause":
          await vscode.commands.executeCommand(COMMANDS.pauseAll);
          break;
      }
    } catch (error) {
      await this.log.showError(error instanceof Error ? error.message : String(error));
    }
  }

  private keep(form: CompareForm): void {
    this.form = form;
    void this.memento.update(FORM_KEY, form);
  }

  /** Ask again after stops, when the person wants that. */
  private follow(job: Job | undefined): void {
    if (!job || job !== this.jobs.focused || !this.form.isFollowing || this.form.expression === "") return;
    // what may change the job is asked by hand
    if (this.answer?.warning && this.answer.expression === this.form.expression.trim()) return;
    if (!this.panel.isVisible || !hasPaused(job)) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (!job.hasEnded && hasPaused(job) && this.panel.isVisible) void this.ask();
    }, QUIET_MILLISECONDS);
  }

  /** Never rejects: what goes wrong stands in the panel. */
  private async ask(): Promise<void> {
    clearTimeout(this.timer);
    const job = this.jobs.focused;
    const number = ++this.asked;
    const { expression } = this.form;
    this.error = this.refusal(job);
    if (!job || this.error !== "" || expression.trim() === "") {
      this.isBusy = false;
      this.post();
      return;
    }
    this.isBusy = true;
    this.post();
    const start = Date.now();
    let answer: Comparison | undefined;
    let error = "";
    try {
      answer = await this.answerOf(job);
    } catch (why) {
      error = why instanceof Error ? why.message : String(why);
    }
    if (number !== this.asked) return;
    this.isBusy = false;
    this.error = error;
    if (answer) {
      this.answer = answer;
      this.answeredBy = job;
      this.when = `${new Date().toLocaleTimeString()} · ${Date.now() - start} ms`;
    }
    this.post();
  }

  private async answerOf(job: Job): Promise<Comparison> {
    const { expression, ranks, reference } = this.form;
    const question: CompareQuestion = {
      expression: expression.trim(),
      ranks: ranks.trim() || "all",
      timeout: SECONDS,
      ...(reference !== "" && { reference, withDelta: true }),
    };
    const seconds = reference === "" ? ANSWER_SECONDS : DELTA_SECONDS;
    const frame = vscode.debug.activeStackItem;
    if (frame instanceof vscode.DebugStackFrame && this.jobs.jobOf(frame.session) === job) {
      try {
        const inFrame = { ...question, frameId: frame.frameId };
        return await job.request("rankscope/compare", inFrame, seconds, frame.session);
      } catch (error) {
        // its rank has run on: everybody answers where they stand
        this.log.channel.info(`No comparison in the selected frame: ${String(error)}`);
      }
    }
    return job.request("rankscope/compare", question, seconds);
  }

  /** Why the form cannot be asked. */
  private refusal(job: Job | undefined): string {
    try {
      RankSet.parse(this.form.ranks.trim() || "all", rankSetNames(undefined, job));
      return "";
    } catch (error) {
      if (!(error instanceof RankSetError)) throw error;
      return `${error.message} ${RankSetError.hint}`;
    }
  }

  private post(): void {
    const job = this.jobs.focused;
    const { form, isFormNew, answer, when, error, isBusy } = this;
    const isOfJob = this.answeredBy !== undefined && this.answeredBy === job;
    const state: CompareState = {
      type: "state",
      ...{ form, isFormNew, answer, when, error, isBusy },
      job: job?.name ?? "",
      empty: answer || error !== "" || isBusy ? "" : emptyText(job, form),
      stale:
        answer && !isOfJob ? `The job '${this.answeredBy?.name ?? ""}' has ended; this is what it answered last.` : "",
      canPause: job?.members.some(({ role, state }) => role === "rank" && state === "running") ?? false,
      sets: job ? setsOf(job) : [],
    };
    this.isFormNew = false;
    this.panel.post(state);
  }
}

function emptyText(job: Job | undefined, { expression }: CompareForm): string {
  if (!job)
    return "No job runs. Press F5 on a Ray driver or a torchrun command; once ranks have stopped, compare what they hold here.";
  if (expression === "")
    return "Type an expression, such as loss, model.fc.weight or grad.norm(). Each rank answers in its own frame.";
  if (!hasPaused(job)) return "No rank is paused. Set a breakpoint or pause the ranks, then compare.";
  return "Press Compare, or Enter in the expression.";
}

function setsOf(job: Job): string[] {
  const groups = new Set(job.members.flatMap(({ role, group }) => (role === "rank" && group !== "" ? [group] : [])));
  const ofGroups = groups.size > 1 ? [...groups].map((group) => `${group}/all`) : [];
  return ["all", ...ofGroups, "local:0", "node:0", ...Object.keys(rankSetNames(undefined, job))];
}

function hasPaused(job: Job): boolean {
  return job.members.some(({ state }) => state === "paused");
}

/** What the menu of a variable tells. */
function expressionOf(context: unknown): string | undefined {
  if (typeof context !== "object" || context === null || !("variable" in context)) return undefined;
  const { evaluateName, name } = context.variable as { evaluateName?: unknown; name?: unknown };
  if (typeof evaluateName === "string" && evaluateName !== "") return evaluateName;
  return typeof name === "string" ? name : undefined;
}

/** What is selected, else the name under the cursor with all that it is an attribute of. */
function selectedExpression(): string | undefined {
  const editor = vscode.window.activeTextEditor;
  if (!editor) return undefined;
  const { document, selection } = editor;
  if (!selection.isEmpty) return document.getText(selection).trim();
  const range = document.getWordRangeAtPosition(selection.active, /[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*/);
  if (!range) return undefined;
  const after = document.getWordRangeAtPosition(selection.active, /[A-Za-z_]\w*/);
  return document.getText(new vscode.Range(range.start, after?.end ?? range.end));
}
