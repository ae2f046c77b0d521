/** What package.json contributes, by name: the only place that spells these out. A unit test holds both together. */

export const DEBUG_TYPE = "rankscope";

export const COMMANDS = {
  showLog: "rankscope.showLog",
  // the Ranks view
  openRank: "rankscope.openRank",
  chooseRanks: "rankscope.chooseRanks",
  continueRanks: "rankscope.continueRanks",
  pauseRanks: "rankscope.pauseRanks",
  stepOver: "rankscope.stepOver",
  stepInto: "rankscope.stepInto",
  stepOut: "rankscope.stepOut",
  runToCursor: "rankscope.runToCursor",
  pauseAll: "rankscope.pauseAll",
  continueStopped: "rankscope.continueStopped",
  findRank: "rankscope.findRank",
  filterRanks: "rankscope.filterRanks",
  clearRanksFilter: "rankscope.clearRanksFilter",
  openRun: "rankscope.openRun",
  whyStuck: "rankscope.whyStuck",
  // a row of it
  continueRow: "rankscope.continueRow",
  pauseRow: "rankscope.pauseRow",
  stepOverRow: "rankscope.stepOverRow",
  stepIntoRow: "rankscope.stepIntoRow",
  stepOutRow: "rankscope.stepOutRow",
  runRowToCursor: "rankscope.runRowToCursor",
  // the Stacks view and its graph
  refreshStacks: "rankscope.refreshStacks",
  nativeStacks: "rankscope.nativeStacks",
  filterStacks: "rankscope.filterStacks",
  clearStacksFilter: "rankscope.clearStacksFilter",
  copyStacks: "rankscope.copyStacks",
  openStackFrame: "rankscope.openStackFrame",
  showStackLocals: "rankscope.showStackLocals",
  showStacksGraph: "rankscope.showStacksGraph",
  // one expression on many ranks
  compare: "rankscope.compare",
  compareVariable: "rankscope.compareVariable",
  compareSelection: "rankscope.compareSelection",
  // a breakpoint's ranks
  limitToRanks: "rankscope.limitToRanks",
  limitToRankZero: "rankscope.limitToRankZero",
  limitToFocusedRank: "rankscope.limitToFocusedRank",
  limitToAllRanks: "rankscope.limitToAllRanks",
  toggleBarrier: "rankscope.toggleBarrier",
  // the Problems panel
  breakOnRanks: "rankscope.breakOnRanks",
  clearFindings: "rankscope.clearFindings",
} as const;

export const VIEWS = { ranks: "rankscope.ranks", stacks: "rankscope.stacks" } as const;

/** Panels beside the editors, which come back when a window is opened again. */
export const PANELS = { stacks: "rankscope.stacksGraph", compare: "rankscope.comparison" } as const;

/** Context keys, for `when` clauses. */
export const CONTEXTS = {
  hasJob: "rankscope.hasJob",
  hasStopped: "rankscope.hasStopped",
  hasRanksFilter: "rankscope.hasRanksFilter",
  hasStacksFilter: "rankscope.hasStacksFilter",
} as const;

/** The section of the settings; the keys are package.json's. */
export const SETTINGS = "rankscope";
