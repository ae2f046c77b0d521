/** The graph of merged stacks: a bar to filter and to find, and the canvas. */

import { button, element, fill, labelled } from "./dom.js";
import { Graph } from "./graph.js";
import { Host } from "./host.js";
import type { FromStacks, StacksState, ToStacks } from "../src/core/panelMessages.js";

const DOINGS = [
  ["", "any state"],
  ["paused", "paused"],
  ["blocked", "in a blocking call"],
  ["running", "running"],
] as const;

const host = new Host<{ sent: FromStacks; received: ToStacks }>();

const find = element("input", {
  class: "code",
  attributes: { type: "search", placeholder: "function, file or call", "aria-label": "Find a place" },
  title: "Places that do not match are dimmed; Enter goes to the next one that does  ( / )",
});
const found = element("span", { class: "dim", attributes: { role: "status" } });
const ranks = element("input", {
  class: "code",
  attributes: { type: "text", placeholder: "all", size: 8, spellcheck: "false" },
  title: "A rank set: 0   0,3-5   0-31:4   node:1   actor/0-3   driver",
});
const doing = element("select", { title: "Only those who are in this state" });
doing.append(...DOINGS.map(([value, text]) => element("option", { text, attributes: { value } })));
const summary = element("span", { class: "summary" });
const notes = element("div", { class: "notes" });
const empty = element("div", { class: "empty" });
const graph = new Graph({
  open: (node) => {
    host.send(node.isMore ? { type: "expand", id: node.id } : { type: "open", id: node.id });
  },
});

function sendFilter(): void {
  const chosen = DOINGS.find(([value]) => value === doing.value)?.[0] ?? "";
  host.send({ type: "filter", ranks: ranks.value, doing: chosen });
}

function search(): void {
  const count = graph.search(find.value);
  found.textContent = find.value.trim() === "" ? "" : `${count} found`;
  host.keep(find.value);
}

function show(state: StacksState): void {
  summary.textContent = [state.job, state.summary].filter(Boolean).join(" · ");
  if (document.activeElement !== ranks) ranks.value = state.ranks;
  doing.value = state.doing;
  fill(notes, ...state.notes.map((text) => element("div", { text })));
  notes.hidden = state.notes.length === 0;
  empty.textContent = state.empty;
  empty.hidden = state.empty === "";
  graph.element.hidden = state.empty !== "";
  graph.show(state.nodes, state.total, state.summary);
  if (find.value !== "") search();
}

find.addEventListener("input", search);
find.addEventListener("keydown", (event) => {
  if (event.key === "Enter") graph.goToNextFound();
  if (event.key === "Escape" && find.value !== "") {
    find.value = "";
    search();
  }
});
ranks.addEventListener("change", sendFilter);
doing.addEventListener("change", sendFilter);
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
  event.preventDefault();
  find.focus();
});

document.body.append(
  element(
    "div",
    { class: "bar" },
    labelled("Find", find, "grows"),
    found,
    labelled("Ranks", ranks),
    labelled("State", doing),
    button("Refresh", "Ask all ranks again", () => {
      host.send({ type: "refresh" });
    }),
    button("Copy", "Every stack as text", () => {
      host.send({ type: "copy" });
    }),
  ),
  notes,
  empty,
  graph.element,
  element(
    "div",
    { class: "foot" },
    summary,
    element("span", { class: "keys", text: "arrows walk · Enter opens · / finds" }),
    button("−", "Smaller  ( - )", () => {
      graph.zoom(1 / 1.3);
    }),
    button("+", "Larger  ( + )", () => {
      graph.zoom(1.3);
    }),
    button("Fit", "All of it  ( 0 )", () => {
      graph.fit();
    }),
  ),
);
notes.hidden = true;
graph.element.hidden = true;
find.value = host.kept;
host.hear(show);
host.send({ type: "ready" });
