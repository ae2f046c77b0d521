/** What is inside a panel of ours. */

import type { FrameLocator } from "playwright-core";

import type { Window } from "./window.js";

/** The page of the panel with this title, shown now, and this script. */
export async function panelOf(window: Window, title: string, script: string): Promise<FrameLocator> {
  await window.see(
    `the panel '${title}'`,
    window.page.locator(`.tab.active[data-resource-name^="${title}"], .tab.active[aria-label^="${title}"]`),
  );
  const frames = window.page.locator("iframe.webview.ready");
  const inside = (at: number): FrameLocator => frames.nth(at).contentFrame().locator("#active-frame").contentFrame();
  const found = await window.until(`the script '${script}'`, async () => {
    const all = Array.from({ length: await frames.count() }, (_, at) => inside(at));
    for (const frame of all) if ((await frame.locator(`script[src*="/${script}.js"]`).count()) > 0) return { frame };
    return undefined;
  });
  return found.frame;
}
