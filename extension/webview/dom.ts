/** Elements in few words. Text is only ever set as text: what a job's programs chose is never read as HTML. */

export type Child = Node | string;

interface Facts {
  readonly class?: string;
  readonly title?: string;
  readonly text?: string;
  readonly attributes?: Readonly<Record<string, string | number>>;
  readonly on?: Readonly<Record<string, (event: never) => void>>;
}

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  facts: Facts = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (facts.class !== undefined) made.className = facts.class;
  if (facts.title !== undefined) made.title = facts.title;
  if (facts.text !== undefined) made.textContent = facts.text;
  for (const [name, value] of Object.entries(facts.attributes ?? {})) made.setAttribute(name, String(value));
  for (const [name, listener] of Object.entries(facts.on ?? {})) {
    made.addEventListener(name, listener as (event: Event) => void);
  }
  made.append(...children);
  return made;
}

export function button(label: string, title: string, press: () => void, kind = ""): HTMLButtonElement {
  return element("button", { class: kind, title, text: label, attributes: { type: "button" }, on: { click: press } });
}

/** A control with its name before it. */
export function labelled(name: string, control: HTMLElement, kind = ""): HTMLLabelElement {
  return element("label", { class: `labelled ${kind}`.trim() }, element("span", { text: name }), control);
}

export function svg(tag: string, attributes: Readonly<Record<string, string | number>> = {}): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

/** Put these in the place of what is there. */
export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren(...children);
}

/** A colour of the theme. */
export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--vscode-${name}`).trim();
}

/** Run when the theme is another. */
export function onThemeChange(run: () => void): void {
  new MutationObserver(run).observe(document.body, { attributeFilter: ["class"] });
}
