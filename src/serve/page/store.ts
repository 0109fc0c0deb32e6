/** Stores the chat and the settings, but not the key, across reloads of this tab. */

export interface Message {
  readonly role: "system" | "user" | "assistant";
  readonly content: string | readonly Part[];
}

/** A part of a message with images. */
export type Part =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image_url"; readonly image_url: { readonly url: string } };

/** Returns the text of a message. */
export const textOf = ({ content }: Message): string =>
  typeof content === "string" ? content : content.map((part) => (part.type === "text" ? part.text : "")).join("");

/** Returns the images of a message as data URLs. */
export const imagesOf = ({ content }: Message): readonly string[] =>
  typeof content === "string" ? [] : content.flatMap((part) => (part.type === "image_url" ? part.image_url.url : []));

/** Returns the content of a message. */
export const contentOf = (text: string, images: readonly string[]): Message["content"] =>
  images.length === 0
    ? text
    : [...images.map((url) => ({ type: "image_url", image_url: { url } }) as const), { type: "text", text }];

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
