/** When the dispatches of a list access memory. */
import type { Entry } from "../recording.ts";
import type { DeviceCall } from "./recording.ts";

/** The indices of the first and the last dispatch that access an entry. */
export interface Use {
  readonly first: number;
  last: number;
}

export function usesOf(calls: readonly DeviceCall[]): Map<Entry, Use> {
  const uses = new Map<Entry, Use>();
  for (const [at, { operands }] of calls.entries())
    for (const entry of operands) {
      const use = uses.get(entry);
      if (use) use.last = at;
      else uses.set(entry, { first: at, last: at });
    }
  return uses;
}
