/** The chat page: shows the messages and streams the answers. */
import { eventsOf } from "./events.ts";
import { acceptImages, takeImages } from "./images.ts";
import { type Kind, MessageView } from "./message.ts";
import { currentSettings, onSettings, samplingOf, showSettings, withSystem } from "./settings.ts";
import { contentOf, imagesOf, keep, type Message, restored, textOf } from "./store.ts";

const element = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const [said, state, text] = [element("said"), element("state"), element<HTMLTextAreaElement>("text")];
const [form, send, stop] = [element<HTMLFormElement>("form"), element("send"), element("stop")];
const [keyForm, keyField] = [element<HTMLFormElement>("key-form"), element<HTMLInputElement>("key")];

interface Chunk {
  readonly choices: readonly { readonly delta: { readonly content?: string } }[];
  readonly usage?: { readonly completion_tokens: number };
  readonly error?: { readonly message: string };
}

let model = "";
let key = "";
let messages: readonly Message[] = [];
let answering: AbortController | undefined;

/** Sends a request with the key, if there is one. Asks the user for a missing key. */
async function ask(path: string, options: RequestInit = {}): Promise<Response> {
  const headers = { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
  const response = await fetch(path, { ...options, headers });
  if (response.ok) return response;
  if (response.status === 401) keyForm.hidden = false;
  const { error } = (await response.json().catch(() => ({}))) as Chunk;
  throw new Error(error?.message ?? `the server answered with ${response.status}`);
}

const show = (kind: Kind, content: string, images?: readonly string[]): MessageView =>
  new MessageView(said, kind, content, images);

/** Sets the chat and stores it for reloads. */
function remember(next: readonly Message[]): void {
  messages = next;
  keep({ messages, settings: currentSettings() });
}

const problem = (error: unknown): void => void show("error", error instanceof Error ? error.message : String(error));

async function loadModel(): Promise<void> {
  const { data } = (await (await ask("/v1/models")).json()) as { readonly data: readonly { readonly id: string }[] };
  model = data[0]!.id;
  element("model").textContent = model;
  keyForm.hidden = true;
}

/** Appends streamed text to a message. Returns the number of tokens. */
async function follow(response: Response, message: MessageView): Promise<number | undefined> {
  let tokens: number | undefined;
  for await (const data of eventsOf(response.body!)) {
    if (data === "[DONE]") break;
    const { choices = [], usage, error } = JSON.parse(data) as Chunk;
    if (error) throw new Error(error.message);
    message.add(choices[0]?.delta.content ?? "");
    tokens = usage?.completion_tokens ?? tokens;
  }
  return tokens;
}

function setAnswering(controller: AbortController | undefined): void {
  answering = controller;
  send.hidden = controller !== undefined;
  stop.hidden = controller === undefined;
  state.textContent = controller ? "answering" : "";
}

async function say(content: string, images: readonly string[]): Promise<void> {
  if (model === "") await loadModel();
  const before = messages;
  const dialog = [...before, { role: "user", content: contentOf(content, images) } as const];
  show("user", content, images);
  const message = show("assistant", "");
  const controller = new AbortController();
  setAnswering(controller);
  const start = performance.now();
  let [note, isKept] = ["", true];
  try {
    const settings = currentSettings();
    const asked = { model, messages: withSystem(settings, dialog), ...samplingOf(settings) };
    const body = JSON.stringify({ ...asked, stream: true, stream_options: { include_usage: true } });
    const response = await ask("/v1/chat/completions", { method: "POST", body, signal: controller.signal });
    const tokens = await follow(response, message);
    const seconds = (performance.now() - start) / 1000;
    if (tokens !== undefined) note = `${tokens} tokens in ${seconds.toFixed(1)} s`;
  } catch (error) {
    if (controller.signal.aborted) note = "stopped";
    else {
      problem(error);
      isKept = false;
    }
  }
  const answer = message.text;
  message.draw();
  if (answer === "") message.remove();
  setAnswering(undefined);
  if (messages !== before) return; // the user has started a new chat meanwhile
  if (isKept) remember([...dialog, { role: "assistant", content: answer }]);
  state.textContent = note;
}

function submit(): void {
  const content = text.value;
  if (answering || content.trim() === "") return;
  text.value = "";
  say(content, takeImages()).catch(problem);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  submit();
});
stop.addEventListener("click", () => {
  answering?.abort();
  text.focus();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") answering?.abort();
});
element("reset").addEventListener("click", () => {
  answering?.abort();
  remember([]);
  said.replaceChildren();
  state.textContent = "";
  text.focus();
});
keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  key = keyField.value;
  keyField.value = "";
  loadModel().then(() => text.focus(), problem);
});

const kept = restored();
showSettings(kept.settings);
messages = kept.messages;
for (const message of messages) if (message.role !== "system") show(message.role, textOf(message), imagesOf(message));
onSettings(() => remember(messages));
acceptImages(problem);
text.focus();
loadModel().catch(problem);
