/** `orchard chat`: reads messages from a terminal or a pipe, and streams the answers. */
import { createInterface } from "node:readline";
import { codeOf, messageOf } from "../core/causes.ts";
import { OrchardError } from "../core/errors.ts";
import { counted } from "../core/plural.ts";
import { printable } from "../core/printable.ts";
import type { ChatSession } from "./chat_session.ts";
import { WordWrap } from "./word_wrap.ts";

/** The streams and the terminal of a chat. */
export interface Place {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  /** The stream for text that is not part of an answer. */
  readonly notes: NodeJS.WritableStream;
  /** The width of the terminal; undefined for a pipe, where each line is a message and only answers are written. */
  readonly columns: number | undefined;
}

const HELP = `/reset       start a new chat
/image FILE  add an image to the next message
/save FILE   append the chat to a file as a line of JSON
/help        show this help
/exit        quit (also Ctrl-D)
Ctrl-C stops an answer; otherwise it quits.
`;

/** Chats until the input ends. Returns the exit code. */
export async function runChatLoop(session: ChatSession, place: Place): Promise<number> {
  const { input, output, columns } = place;
  const isTerminal = columns !== undefined;
  const lines = createInterface({ input, ...(isTerminal && { output, terminal: true, prompt: "> " }) });
  let answering: AbortController | undefined;
  const interrupt = () => (answering ? answering.abort() : lines.close());
  lines.on("SIGINT", interrupt);
  process.on("SIGINT", interrupt);
  let code = 0;
  try {
    if (isTerminal) lines.prompt();
    for await (const line of lines) {
      if (line.trim() === "/exit") break;
      answering = new AbortController();
      if (!(await takeLine(session, place, line, answering.signal))) code = 1;
      answering = undefined;
      if (isTerminal) lines.prompt();
    }
  } finally {
    lines.close();
    process.off("SIGINT", interrupt);
  }
  return isTerminal ? 0 : code;
}

/** Handles a line. Returns false if it failed. */
async function takeLine(session: ChatSession, place: Place, line: string, signal: AbortSignal): Promise<boolean> {
  const [word, ...others] = line.trim().split(/\s+/);
  try {
    if (word === "") return true;
    if (word === "/reset") session.reset();
    else if (word === "/image") attach(session, place, others.join(" "));
    else if (word === "/help") place.notes.write(HELP);
    else if (word === "/save") await save(session, place, others.join(" "));
    else if (/^\/[a-z]+$/.test(word) && others.length === 0) {
      place.notes.write(`unknown command ${word}; /help lists the commands\n`);
      return false;
    } else await answer(session, place, line, signal);
    return true;
  } catch (error) {
    if (!(error instanceof OrchardError || codeOf(error))) throw error;
    place.notes.write(`${messageOf(error)}\n`);
    return false;
  }
}

async function answer(session: ChatSession, place: Place, line: string, signal: AbortSignal): Promise<void> {
  const { output, columns, notes } = place;
  const wrap = new WordWrap(columns ?? Number.POSITIVE_INFINITY);
  for await (const piece of session.say(line, signal)) output.write(wrap.push(printable(piece)));
  output.write(`${wrap.end()}\n`);
  const { tokens, tokensPerSecond } = session.pace;
  const broken = signal.aborted ? "interrupted; " : "";
  if (columns !== undefined)
    notes.write(`[${broken}${counted(tokens, "token")}, ${tokensPerSecond.toPrecision(3)} tokens/s]\n`);
}

/** Adds an image to the next message. */
function attach(session: ChatSession, { notes }: Place, path: string): void {
  if (path === "") notes.write("expected a file: /image FILE\n");
  else session.attach(path);
}

/** Appends the chat to a file, as a line in the format for fine-tuning. */
async function save(session: ChatSession, { notes }: Place, path: string): Promise<void> {
  if (path === "") {
    notes.write("expected a file: /save FILE\n");
    return;
  }
  const { appendFile } = await import("node:fs/promises");
  await appendFile(path, `${JSON.stringify({ messages: session.messages })}\n`);
  notes.write(`saved ${counted(session.messages.length, "message")} to ${path}\n`);
}
