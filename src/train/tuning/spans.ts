/** What of a chat's text the assistant wrote, found by rendering the beginnings of the chat. */
import { DataError } from "../../core/errors.ts";
import { type ChatMessage, ChatTemplate, type TemplateTokens } from "../../text/chat_template.ts";

/** A part of a text, from a character to before another. */
export type Span = readonly [start: number, end: number];

/** A text, and what of it is learned. */
export interface MarkedText {
  readonly text: string;
  readonly spans: readonly Span[];
}

/** Characters that no text has (Unicode's noncharacters): where an answer begins and ends. */
const [BEGIN, END] = ["\uFDD0", "\uFDD1"];

/**
 * Finds the assistant's parts of chats. A template that says itself what is generated (`{% generation %}`) is believed.
 * Otherwise an answer is what the chat up to it has more than the chat before it with the beginning of an answer, which
 * is what the model gets when it is asked.
 */
export class AnswerFinder {
  private readonly template: ChatTemplate;
  private readonly marked: ChatTemplate | undefined;

  constructor(source: string, tokens: TemplateTokens) {
    this.template = new ChatTemplate(source, tokens);
    const marked = withMarks(source);
    this.marked = marked === source ? undefined : new ChatTemplate(marked, tokens);
  }

  /** What the model reads when a user says something to it. */
  ask(content: string): string {
    return this.template.render([{ role: "user", content }]);
  }

  /**
   * A chat as one text; or as one for each answer, where a template writes earlier answers otherwise than the last one,
   * as those do that leave out what a model thought.
   *
   * @throws {DataError} naming the line
   */
  find(
    where: string,
    messages: readonly ChatMessage[],
    answers: readonly number[],
    tools?: readonly object[],
  ): MarkedText[] {
    const render = (count: number, addGenerationPrompt: boolean, template = this.template): string =>
      attempt(where, () => template.render(messages.slice(0, count), { addGenerationPrompt, tools }));
    const full = render(messages.length, false);
    const isEveryAnswer = answers.length === messages.filter(({ role }) => role === "assistant").length;
    if (this.marked && isEveryAnswer) {
      const marked = unmarked(render(messages.length, false, this.marked));
      if (marked?.text === full && marked.spans.length > 0) return [marked];
    }
    const found = answers.map((at) => {
      const [before, asked, after] = [render(at, false), render(at, true), render(at + 1, false)];
      const start = commonLength(asked, after);
      if (start < before.trimEnd().length) throw rewritten(where, at);
      return { text: after, span: [start, after.trimEnd().length] as const };
    });
    const isOneText = found.every(({ text, span }) => full.startsWith(text.slice(0, span[1])));
    if (isOneText) return [{ text: full, spans: found.map(({ span }) => span) }];
    return found.map(({ text, span }) => ({ text, spans: [span] }));
  }
}

const rewritten = (where: string, at: number): DataError =>
  new DataError(
    "train",
    "otherPrefix",
    `${where}: expected a template that writes the messages before messages[${at}] as without it; it changes them`,
  );

function attempt(where: string, body: () => string): string {
  try {
    return body();
  } catch (cause) {
    throw new DataError("train", "refused", `${where}: ${(cause as Error).message}`, { cause });
  }
}

function commonLength(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  let length = 0;
  while (length < most && a.charCodeAt(length) === b.charCodeAt(length)) length++;
  return length > 0 && isHighSurrogate(a.charCodeAt(length - 1)) ? length - 1 : length;
}

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code < 0xdc00;

/**
 * A template that writes marks where `{% generation %}` begins and ends, which `@huggingface/jinja` takes out. Spaces
 * around the tags go as they do there: with a minus sign, before the tag in its line, and one newline behind it.
 */
function withMarks(source: string): string {
  return source.replace(
    /(\s*)\{%(-?)\s*(end)?generation\s*(-?)%\}(\n?)(\s*)/g,
    (_, before: string, left: string, end: string | undefined, right: string, __, after: string) =>
      (left ? "" : before.replace(/(^|\n)[ \t]*$/, "$1")) + (end ? END : BEGIN) + (right ? "" : after),
  );
}

/** The text without marks; undefined where they do not come in turn. */
function unmarked(marked: string): MarkedText | undefined {
  const spans: [number, number][] = [];
  let text = "";
  let isOpen = false;
  for (const piece of marked.split(/([\uFDD0\uFDD1])/)) {
    if (piece !== BEGIN && piece !== END) text += piece;
    else if ((piece === BEGIN) === isOpen) return undefined;
    else if (piece === BEGIN) spans.push([text.length, text.length]);
    else spans.at(-1)![1] = text.length;
    if (piece === BEGIN || piece === END) isOpen = piece === BEGIN;
  }
  return isOpen ? undefined : { text, spans };
}
