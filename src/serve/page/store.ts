/** What the page keeps over a reload, in this tab alone: the chat and the settings, but not the key. */

export interface Message {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** The texts of the settings' fields by name; an empty one is the server's default. */
export type Settings = Readonly<Record<string, string>>;

interface Kept {
  readonly messages: readonly Message[];
  readonly settings: Settings;
}

const KEY = "orchard-chat";
const nothing: Kept = { messages: [], settings: {} };

export function restored(): Kept {
  try {
    return { ...nothing, ...(JSON.parse(sessionStorage.getItem(KEY) ?? "{}") as Partial<Kept>) };
  } catch {
    return nothing; // no storage is allowed, or a page of another version wrote it
  }
}

/** A browser without storage, or whose storage is full, forgets at a reload. */
export function keep(kept: Kept): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(kept));
  } catch {}
}
