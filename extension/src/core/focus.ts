/** Which member a session, or a thread of it, stands for. */

import { isLive } from "./memberText.js";
import type { Member } from "./protocol.js";

/**
 * The member at a place of the call stack. `session` is the rank set that names the session; empty: the root.
 * `undefined` when the place stands for several, or for none.
 */
export function memberAt(members: readonly Member[], session: string, threadId?: number): Member | undefined {
  const live = members.filter((member) => isLive(member) && isIn(member, session));
  const ofThread = threadId === undefined ? [] : live.filter((member) => member.threadIds.includes(threadId));
  if (ofThread.length === 1) return ofThread[0];
  if (live.length === 1) return live[0];
  // A rank's children share its session and seldom stop.
  const ranks = live.filter((member) => member.role !== "child");
  return ranks.length === 1 ? ranks[0] : undefined;
}

/** The root presents what has no session of its own, or none yet. */
function isIn(member: Member, session: string): boolean {
  if (member.role === "idle") return false;
  return session === "" ? member.session === "" || !member.hasSession : member.session === session;
}

/** What a child session is called: its rank and what VS Code does not tell of it. */
export function sessionName(session: string, members: readonly Member[], callOf: (member: Member) => string): string {
  const ofSession = members.filter((member) => member.session === session && member.role === "rank");
  const live = ofSession.filter(isLive);
  if (session === "all" || session.endsWith("/all")) return nameOfGroup(session, live.length > 0 ? live : ofSession);
  const member = live.at(-1) ?? ofSession.at(-1);
  if (!member) return session;
  if (!isLive(member)) return `${member.label} · ${member.state}`;
  const call = member.state === "running" ? callOf(member) : "";
  return call ? `${member.label} · in ${call}` : member.label;
}

function nameOfGroup(session: string, ranks: readonly Member[]): string {
  const name = session === "all" ? "all ranks" : session.slice(0, -"/all".length);
  return ranks.length === 0 ? name : `${name} · ${ranks.length} rank${ranks.length === 1 ? "" : "s"}`;
}
