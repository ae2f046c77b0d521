/** What package.json contributes, by name: the only place that spells these out. A unit test holds both together. */

export const DEBUG_TYPE = "rankscope";

export const COMMANDS = {
  showLog: "rankscope.showLog",
  // the Ranks view
  openRank: "rankscope.openRank",
  pauseRank: "rankscope.pauseRank",
  continueRank: "rankscope.continueRank",
  pauseAll: "rankscope.pauseAll",
  continueStopped: "rankscope.continueStopped",
  findRank: "rankscope.findRank",
  openRun: "rankscope.openRun",
  // a breakpoint's ranks
  limitToRanks: "rankscope.limitToRanks",
  limitToRankZero: "rankscope.limitToRankZero",
  limitToFocusedRank: "rankscope.limitToFocusedRank",
  limitToAllRanks: "rankscope.limitToAllRanks",
} as const;

export const VIEWS = { ranks: "rankscope.ranks" } as const;

/** Context keys, for `when` clauses. */
export const CONTEXTS = {
  hasJob: "rankscope.hasJob",
  hasStopped: "rankscope.hasStopped",
} as const;

/** The section of the settings; the keys are package.json's. */
export const SETTINGS = "rankscope";
