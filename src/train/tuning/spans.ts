/** Finds the assistant's parts of a chat's text by rendering prefixes of the chat. */

import { messageOf } from "../../core/causes.ts";
import { lastElement } from "../../core/collections.ts";
import { DataError } from "../../core/errors.ts";
import { type ChatMessage, ChatTemplate, type TemplateTokens } from "../../text/chat_template.ts";

/** A range of characters; the end is exclusive. */
export type Span = readonly [start: number, end: number];

/** A text, and the spans to train on. */
export interface MarkedText {
  readonly text: string;
  readonly spans: readonly Span[];
}

/** Markers of the start and end of an answer: Unicode noncharacters, which texts don't contain. */
const [BEGIN, END] = ["\uFDD0", "\uFDD1"];

/**
 * Finds the assistant's parts of chats. If the template marks them (`{% generation %}`), these marks are used.
 * Otherwise, an answer is the text that the chat including it adds to the preceding chat with a generation prompt,
 * which is the model's input.
 */
export class AnswerFinder {
  private readonly template: ChatTemplate;
  private readonly marked: ChatTemplate | undefined;

  constructor(source: string, tokens: TemplateTokens) {
    this.template = new ChatTemplate(source, tokens);
    const marked = withMarks(source);
    this.marked = marked === source ? undefined : new ChatTemplate(marked, tokens);
  }

  /** Renders a user message with the generation prompt. */
  ask(content: string): string {
    return this.template.render([{ role: "user", content }]);
  }

  /**
   * Renders a chat as one text, or as one text per answer if the template renders earlier answers differently from the
   * last one, as templates that omit reasoning do.
   *
   * @throws {DataError} with the line
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
    `${where}: expected a template that renders the messages before messages[${at}] the same with and without it`,
  );

function attempt(where: string, body: () => string): string {
  try {
    return body();
  } catch (cause) {
    throw new DataError("train", "refused", `${where}: ${messageOf(cause)}`, { cause });
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
 * Makes a template write marks in place of `{% generation %}` tags, which `@huggingface/jinja` drops. As that package
 * does for other tags, it removes white space next to a minus sign, spaces before a tag on its line, and one newline
 * after it.
 */
function withMarks(source: string): string {
  return source.replace(
    /(\s*)\{%(-?)\s*(end)?generation\s*(-?)%\}(\n?)(\s*)/g,
    (_, before: string, left: string, end: string | undefined, right: string, __, after: string) =>
      (left ? "" : before.replace(/(^|\n)[ \t]*$/, "$1")) + (end ? END : BEGIN) + (right ? "" : after),
  );
}

/** Removes the marks; undefined if they do not alternate. */
function unmarked(marked: string): MarkedText | undefined {
  const spans: [number, number][] = [];
  let text = "";
  let isOpen = false;
  for (const piece of marked.split(/([\uFDD0\uFDD1])/)) {
    if (piece !== BEGIN && piece !== END) text += piece;
    else if ((piece === BEGIN) === isOpen) return undefined;
    else if (piece === BEGIN) spans.push([text.length, text.length]);
    else lastElement(spans)[1] = text.length;
    if (piece === BEGIN || piece === END) isOpen = piece === BEGIN;
  }
  return isOpen ? undefined : { text, spans };
}
