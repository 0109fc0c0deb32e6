/** Reads files of chats for training: one JSON object per line, with OpenAI's messages or a prompt and completion. */
import { readFileSync } from "node:fs";
import { describeValue } from "../../core/describe.ts";
import { DataError } from "../../core/errors.ts";
import { stringIn } from "../../core/values.ts";
import { findFiles } from "../../data/paths.ts";
import { withFileErrors } from "../../io/file_errors.ts";
import { isJsonObject, type Json, parseJson } from "../../io/json.ts";
import type { ChatMessage } from "../../text/chat_template.ts";

/** A line of a file. */
export type Written = { readonly where: string } & (
  | {
      readonly kind: "chat";
      readonly messages: readonly ChatMessage[];
      readonly tools?: readonly object[] | undefined;
      /** The indices of the messages to train on. */
      readonly answers: readonly number[];
    }
  | { readonly kind: "completion"; readonly prompt: string; readonly completion: string }
  | { readonly kind: "text"; readonly text: string }
);

/**
 * Reads the non-empty lines of files.
 *
 * @throws {DataError} with the file and line: `malformedLine` for lines that are not JSON objects of a known form,
 * `notUtf8`, `notFound`, and `nothingReadable` for files without lines. @throws {FileError}
 */
export const readChats = (paths: readonly string[]): Written[] => readLines(paths, parseLine);

/** Reads the non-empty lines of files. @throws {DataError} @throws {FileError} as {@link readChats}. */
export function readLines<T>(paths: readonly string[], parse: (line: string, where: string) => T): T[] {
  const found = findFiles("train", paths).flatMap(({ path }) => linesOf(path, parse));
  if (found.length > 0) return found;
  throw new DataError("train", "nothingReadable", `expected a line of JSON in ${paths.join(", ")}, got none`);
}

const NEWLINE = 10;

function linesOf<T>(path: string, parse: (line: string, where: string) => T): T[] {
  const bytes = withFileErrors("train", path, () => readFileSync(path));
  const found: T[] = [];
  const decoder = new TextDecoder("utf-8", { fatal: true });
  for (let start = 0, line = 1; start < bytes.length; line++) {
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline < 0 ? bytes.length : newline;
    const where = `${path}:${line}`;
    const text = decoded(decoder, bytes.subarray(start, end), where);
    if (text.trim() !== "") found.push(parse(text, where));
    start = end + 1;
  }
  return found;
}

function decoded(decoder: TextDecoder, bytes: Uint8Array, where: string): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new DataError("train", "notUtf8", `${where}: expected UTF-8`);
  }
}

/** @internal */
export const malformed = (where: string, problem: string): DataError =>
  new DataError("train", "malformedLine", `${where}: ${problem}`);

/** Parses a line. @throws {DataError} `malformedLine` */
export function parseLine(line: string, where: string): Written {
  const json = parseJson(line, (_, message) => malformed(where, `expected JSON: ${message}`));
  if (!isJsonObject(json)) throw malformed(where, `expected a JSON object, got ${describeValue(json)}`);
  const { messages, prompt, completion, text, tools } = json;
  if (messages !== undefined) return chatOf(where, listOfMessages(messages, "messages", where), 0, tools);
  if (prompt !== undefined || completion !== undefined) return pairOf(where, prompt, completion, tools);
  if (typeof text === "string" && text !== "") return { where, kind: "text", text };
  const got = Object.keys(json);
  throw malformed(
    where,
    `expected messages, prompt and completion, or text, got ${got.length === 0 ? "nothing" : got.join(", ")}`,
  );
}

/** Reads a pair of texts or of lists of messages. */
function pairOf(where: string, prompt: unknown, completion: unknown, tools: unknown): Written {
  if (Array.isArray(prompt) && Array.isArray(completion)) {
    const before = listOfMessages(prompt, "prompt", where);
    return chatOf(where, [...before, ...listOfMessages(completion, "completion", where)], before.length, tools);
  }
  for (const [name, value] of Object.entries({ prompt, completion }))
    if (typeof value !== "string")
      throw malformed(
        where,
        `expected ${name} to be a string, or both to be lists of messages, got ${describeValue(value)}`,
      );
  if (completion === "") throw malformed(where, "expected completion to be a non-empty string");
  return { where, kind: "completion", prompt: stringIn(prompt), completion: stringIn(completion) };
}

/** @param from the index of the first message that may be trained on */
function chatOf(where: string, messages: readonly ChatMessage[], from: number, tools: unknown): Written {
  if (tools !== undefined && !(Array.isArray(tools) && tools.every((tool: Json) => isJsonObject(tool))))
    throw malformed(where, `expected tools to be a list of objects, got ${describeValue(tools)}`);
  const answers = messages.flatMap(({ role, weight }, at) =>
    at >= from && role === "assistant" && weight !== 0 ? [at] : [],
  );
  if (answers.length === 0) throw malformed(where, "expected an assistant message to train on");
  return { where, kind: "chat", messages, tools: tools, answers };
}

function listOfMessages(value: unknown, name: string, where: string): ChatMessage[] {
  if (!Array.isArray(value) || value.length === 0)
    throw malformed(where, `expected ${name} to be a list of messages, got ${describeValue(value)}`);
  return value.map((message: Json, at) => {
    const fail = (problem: string) => malformed(where, `expected ${name}[${at}]${problem}`);
    if (!isJsonObject(message)) throw fail(` to be an object with a role, got ${describeValue(message)}`);
    const { role, content, weight } = message;
    if (typeof role !== "string") throw fail(`.role to be a string, got ${describeValue(role)}`);
    const isContent = typeof content === "string" || Array.isArray(content);
    if (!isContent && !(content == null && "tool_calls" in message))
      throw fail(`.content to be a string, got ${describeValue(content)}`);
    if (weight !== undefined && weight !== 0 && weight !== 1)
      throw fail(`.weight to be 0 or 1, got ${describeValue(weight)}`);
    return message as ChatMessage;
  });
}
