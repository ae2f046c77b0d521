// Counting the tests in the JUnit reports that pytest and node's runner write.

import { existsSync, readFileSync } from "node:fs";

/** `{passed, failed, skipped}` of one report; undefined when the runner died before writing it. */
export function countTests(file) {
  if (!existsSync(file)) return undefined;
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const part of readFileSync(file, "utf8")
    .split(/<testcase\b/)
    .slice(1)) {
    if (/<(failure|error)\b/.test(part)) counts.failed++;
    else if (/<skipped\b/.test(part)) counts.skipped++;
    else counts.passed++;
  }
  return counts;
}

/** The sum of several counts. */
export function addCounts(all) {
  const sum = { passed: 0, failed: 0, skipped: 0 };
  for (const counts of all) for (const key of Object.keys(sum)) sum[key] += counts[key];
  return sum;
}

/** The closing line of a run. */
export function closingLine({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}
