/** What a Python process writes to its standard error, line by line, with the level that each line has. */

export type Level = "debug" | "info" | "warning" | "error";

const LEVELS: Readonly<Record<string, Level>> = {
  DEBUG: "debug",
  INFO: "info",
  WARNING: "warning",
  ERROR: "error",
  CRITICAL: "error",
};

/** Reads one stream: a traceback has the level `error` to its end, a continued line that of the line before. */
export class LogLines {
  private level: Level = "warning";
  private isTraceback = false;

  read(line: string): [Level, string] {
    const [, word = "", text = ""] = /^(DEBUG|INFO|WARNING|ERROR|CRITICAL)[: ]\s*(.*)$/.exec(line) ?? [];
    const level = LEVELS[word];
    if (level !== undefined) {
      this.isTraceback = false;
      this.level = level;
      return [level, text];
    }
    const isContinued = /^\s/.test(line) || line === "";
    if (line.startsWith("Traceback ")) this.isTraceback = true;
    if (this.isTraceback) {
      // its last line, the exception itself, is the first one after the frames that is not indented
      if (!isContinued && !line.startsWith("Traceback ")) this.isTraceback = false;
      this.level = "error";
    } else if (!isContinued) this.level = "warning"; // what Python prints by itself
    return [this.level, line];
  }
}
