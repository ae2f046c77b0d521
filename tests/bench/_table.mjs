// Rows of median and spread, printed at the end with the JSON line: as `_measure.py` prints them.

function median(samples) {
  const ordered = samples.toSorted((a, b) => a - b);
  const middle = ordered.length / 2;
  return (ordered[Math.ceil(middle) - 1] + ordered[Math.floor(middle)]) / 2;
}

export class Table {
  #title;
  #rows = [["name", "median", "middle half", "n", "unit", "to reach"]];
  #keys = {};

  constructor(title) {
    this.#title = title;
  }

  /** One number: the median of its samples, and between which it lay in the middle half of the runs. */
  add(key, samples, unit, target = "") {
    const ordered = samples.toSorted((a, b) => a - b);
    const quarter = Math.floor(ordered.length / 4);
    const half = `${ordered[quarter].toFixed(3)} .. ${ordered.at(-1 - quarter).toFixed(3)}`;
    this.#rows.push([key, median(samples).toFixed(3), half, String(samples.length), unit, target]);
    this.#keys[key] = Number(median(samples).toFixed(4));
  }

  show() {
    const widths = this.#rows[0].map((_, column) => Math.max(...this.#rows.map((row) => row[column].length)));
    console.log(`\n${this.#title}`);
    for (const row of this.#rows) {
      console.log(`  ${row.map((cell, column) => cell.padEnd(widths[column])).join("  ")}`.trimEnd());
    }
    console.log(JSON.stringify(this.#keys));
  }
}
