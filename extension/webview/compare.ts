/** The comparison: a form, the different answers, a plot of numbers, and every rank in a table. */

import { isSound } from "../src/core/compareTable.js";
import { comparisonAsText, isAnswer, notableGroups, notesOf, verdict } from "../src/core/compareText.js";
import { metricsOf, plotOf } from "../src/core/comparePlot.js";
import { countOf, grouped } from "../src/core/memberNames.js";
import type { CompareForm, CompareState, FromCompare, ToCompare } from "../src/core/panelMessages.js";
import type { CompareGroup, Comparison } from "../src/core/protocol.js";
import { button, element, fill, labelled } from "./dom.js";
import { Host } from "./host.js";
import { PlotView } from "./plot.js";
import { Table } from "./table.js";

const MAX_SET_CHARACTERS = 32;

const host = new Host<{ sent: FromCompare; received: ToCompare }>();
let state: CompareState | undefined;
let reference = "";
let metric = "";
/** The group that the table is limited to, by its text. */
let chosen: string | undefined;

// --- the form

const expression = element("input", {
  class: "code",
  attributes: { type: "text", spellcheck: "false", placeholder: "loss   model.fc.weight   grad.norm()" },
  title: "Evaluated on each rank, in its own frame",
});
const ranks = element("input", {
  class: "code",
  attributes: { type: "text", spellcheck: "false", size: 10, list: "sets", placeholder: "all" },
  title: "A rank set: 0   0,3-5   0-31:4   node:1   actor/0-3   driver",
});
const sets = element("datalist", { attributes: { id: "sets" } });
const isFollowing = element("input", { attributes: { type: "checkbox" } });
const busy = element("div", { class: "busy", attributes: { role: "progressbar", "aria-label": "Asking the ranks" } });

function form(): CompareForm {
  return {
    expression: expression.value,
    ranks: ranks.value.trim() || "all",
    isFollowing: isFollowing.checked,
    reference,
  };
}

function keepForm(): void {
  host.send({ type: "form", form: form() });
}

function ask(): void {
  host.send({ type: "compare", form: form() });
}

for (const input of [expression, ranks]) {
  input.addEventListener("keydown", ({ key }) => {
    if (key === "Enter") ask();
  });
  input.addEventListener("change", keepForm);
}
isFollowing.addEventListener("change", keepForm);

const copy = button("Copy", "The answers and the table as text", () => {
  if (!state?.answer) return;
  const title = `${state.answer.expression} · ${state.job} · ${state.when}`;
  host.send({ type: "copy", text: comparisonAsText(state.answer, title) });
});

// --- the answer

const notes = element("div", { class: "notes", attributes: { role: "status" } });
const empty = element("div", { class: "empty" });
const heading = element("h2");
const when = element("span", { class: "dim" });
const groups = element("div", { class: "groups" });
const answers = element(
  "section",
  {},
  element("header", {}, heading, element("span", { class: "spacer" }), when),
  groups,
);

const metrics = element("select", { title: "What is plotted" });
const plot = new PlotView((member) => {
  table.select(member);
});
const plotted = element("section", {}, element("header", {}, labelled("Plot", metrics), plot.legend), plot.element);
metrics.addEventListener("change", () => {
  metric = metrics.value;
  if (state?.answer) showPlot(state.answer);
});

const find = element("input", {
  attributes: {
    type: "search",
    placeholder: "Find a rank, a state, a value",
    "aria-label": "Find in the table",
    size: 26,
  },
});
const count = element("span", { class: "dim", attributes: { role: "status" } });
const references = element("select", {
  title: "Compare every tensor with this rank's, element by element; what is big takes a while",
});
const delta = labelled("max |Δ| against", references);
const table = new Table(
  (member) => {
    host.send({ type: "open", member });
  },
  (shown) => {
    const all = state?.answer?.rows.length ?? 0;
    count.textContent = shown === all ? "" : `${grouped(shown)} of ${grouped(all)} ranks`;
  },
);
const tabled = element(
  "section",
  { class: "table" },
  element("header", {}, element("h2", { text: "Ranks" }), find, count, element("span", { class: "spacer" }), delta),
  table.element,
);
find.addEventListener("input", () => {
  sift();
});
references.addEventListener("change", () => {
  reference = references.value;
  ask();
});

function sift(): void {
  const group = state?.answer?.groups.find(({ text }) => text === chosen);
  table.sift(find.value, group ? new Set(group.members) : undefined);
}

function show(next: CompareState): void {
  const isNewAnswer = next.answer !== state?.answer && JSON.stringify(next.answer) !== JSON.stringify(state?.answer);
  state = next;
  if (next.isFormNew) {
    expression.value = next.form.expression;
    ranks.value = next.form.ranks;
    isFollowing.checked = next.form.isFollowing;
    reference = next.form.reference;
  }
  fill(sets, ...next.sets.map((value) => element("option", { attributes: { value } })));
  busy.classList.toggle("is-on", next.isBusy);
  const { answer } = next;
  showNotes(next);
  empty.hidden = next.empty === "";
  fill(
    empty,
    element("div", { text: next.empty }),
    ...(next.canPause && next.form.expression !== "" ? [pauseButton()] : []),
  );
  for (const section of [answers, tabled]) section.hidden = !answer;
  copy.hidden = !answer;
  if (!answer) {
    plotted.hidden = true;
    return;
  }
  heading.textContent = [answer.expression, verdict(answer)].filter(Boolean).join(": ");
  when.textContent = next.when;
  if (!isNewAnswer) return;
  showGroups(answer);
  showPlot(answer);
  showReferences(answer);
  table.show(answer);
  sift();
}

function pauseButton(): HTMLButtonElement {
  return button("Pause All Ranks", "Stop every rank where it is", () => {
    host.send({ type: "pause" });
  });
}

function showNotes({ error, stale, answer }: CompareState): void {
  const lines = [
    ...(error === "" ? [] : [element("div", { class: "bad", text: error })]),
    ...(stale === "" ? [] : [element("div", { text: stale })]),
    ...(answer ? notesOf(answer) : []).map((text) => element("div", { text })),
  ];
  fill(notes, ...lines);
  notes.hidden = lines.length === 0;
}

function showGroups(answer: Comparison): void {
  const all = answer.groups;
  if (!all.some(({ text }) => text === chosen)) chosen = undefined;
  const notable = notableGroups(answer);
  const shown = notable.reduce((sum, { count: members }) => sum + members, 0);
  const left = countOf(answer.rows.length - shown, "rank");
  const text = `and ${countOf(all.length - notable.length, "more answer")} from ${left}: all ranks are in the table`;
  const more = all.length > notable.length ? [element("div", { class: "dim more", text })] : [];
  const widest = Math.max(4, ...notable.map(({ ranks: set }) => set.length));
  groups.style.setProperty("--ranks-width", `${Math.min(MAX_SET_CHARACTERS, widest + 1)}ch`);
  fill(groups, ...notable.map((group) => groupRow(group, answer.rows.length)), ...more);
}

function groupRow(group: CompareGroup, total: number): HTMLElement {
  const bar = element("i");
  bar.style.width = `${(100 * group.count) / Math.max(1, total)}%`;
  const hasMajority = state?.answer?.groups.some(({ isMajority }) => isMajority) ?? false;
  const isOdd = hasMajority && !group.isMajority && isAnswer(group.kind);
  const first = state?.answer?.rows.find(({ member }) => member === group.members[0]);
  const isBad = group.kind === "error" || (isAnswer(group.kind) && first !== undefined && !isSound(first));
  const text = group.text.split("\n", 1).join();
  const row = element(
    "button",
    {
      class: `group${isOdd ? " is-odd" : ""}${group.text === chosen ? " is-chosen" : ""}`,
      title: `${group.ranks}\n${group.text}\n\nClick: only these in the table`,
      attributes: { type: "button", "aria-pressed": String(group.text === chosen) },
      on: {
        click: () => {
          chosen = chosen === group.text ? undefined : group.text;
          if (state?.answer) showGroups(state.answer);
          sift();
        },
      },
    },
    element("div", { class: "share" }, bar, element("b", { text: grouped(group.count) })),
    element("div", { class: "code", text: group.ranks }),
    element("div", { class: `code${isBad ? " bad" : isAnswer(group.kind) ? "" : " dim"}`, text }),
  );
  return row;
}

function showPlot(answer: Comparison): void {
  const all = metricsOf(answer);
  const present = all.find(({ id }) => id === metric) ?? all[0];
  plotted.hidden = !present;
  if (!present) return;
  fill(metrics, ...all.map(({ id, title }) => element("option", { text: title, attributes: { value: id } })));
  metrics.value = present.id;
  plot.show(plotOf(answer, present.id));
}

function showReferences({ rows, reference: used }: Comparison): void {
  const able = rows.filter(({ kind }) => kind === "tensor" || kind === "number");
  delta.hidden = able.length < 2;
  const options = able.map(({ member, label }) => element("option", { text: label, attributes: { value: member } }));
  fill(references, element("option", { text: "no rank", attributes: { value: "" } }), ...options);
  if (reference !== "") reference = used ?? reference;
  references.value = reference;
}

document.body.append(
  element(
    "div",
    { class: "bar" },
    labelled("Expression", expression, "grows"),
    labelled("Ranks", ranks),
    sets,
    button("Compare", "Ask the ranks  ( Enter )", ask, "primary"),
    element("label", { class: "labelled", title: "Ask again whenever ranks stop" }, isFollowing, "At each stop"),
    copy,
  ),
  busy,
  notes,
  empty,
  answers,
  plotted,
  tabled,
);
for (const part of [notes, empty, answers, plotted, tabled, copy]) part.hidden = true;
host.hear(show);
host.send({ type: "ready" });
expression.focus();
