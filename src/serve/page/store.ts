/** Stores the chat and the settings, but not the key, across reloads of this tab. */

export interface Message {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** The texts of the settings' fields by name. An empty text means the server's default. */
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
    return nothing; // storage is not allowed, or another version of the page wrote it
  }
}

/** Stores the state. If the browser has no storage or it is full, a reload loses the state. */
export function keep(kept: Kept): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(kept));
  } catch {}
}
