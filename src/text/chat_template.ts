import type { Template } from "@huggingface/jinja";
import { ArgumentError } from "../core/errors.ts";
import { flag, isListed, text } from "../core/kinds.ts";
import { type Kind, named, operand, parameters } from "../core/parameters.ts";
import { runTemplate } from "./template_run.ts";

/** A message of a chat. Templates may read further fields: `tool_calls`, `tool_call_id`, `name`. */
export interface ChatMessage {
  /** The role of the author: `system`, `user`, `assistant`, `tool`. */
  readonly role: string;
  readonly content?: unknown;
  readonly [field: string]: unknown;
}

/** Options of {@link ChatTemplate.render}. */
export interface RenderOptions {
  /** Whether to end the text with the start of an answer. Default true. */
  readonly addGenerationPrompt?: boolean | undefined;
  /** Functions that the model may call, in OpenAI's format. Default: none. */
  readonly tools?: readonly object[] | undefined;
  /** Other variables that the template reads, such as `enable_thinking`. */
  readonly variables?: Readonly<Record<string, unknown>> | undefined;
}

/** The special tokens that a {@link ChatTemplate} may put into a text. */
export interface TemplateTokens {
  /** `bos_token`, the start of a text. Default: none. */
  readonly bosToken?: string | undefined;
  /** `eos_token`, the end of a text. Default: none. */
  readonly eosToken?: string | undefined;
}

/** An array of objects, copied. */
const objects = <T>(expected: string): Kind<readonly T[]> => ({
  expected,
  parse(value) {
    if (!Array.isArray(value) || value.length > MOST_OBJECTS) return undefined;
    const messages = Array.from<unknown>(value);
    return messages.every((each) => typeof each === "object" && each !== null) ? (messages as T[]) : undefined;
  },
});
/** More than any chat needs. */
const MOST_OBJECTS = 2 ** 20;

const variables: Kind<Readonly<Record<string, unknown>>> = {
  expected: "an object of variables",
  parse: (value) => (typeof value === "object" && value !== null && !isListed(value) ? { ...value } : undefined),
};

const readTemplate = parameters("ChatTemplate", {
  source: operand(text),
  bosToken: named(text, ""),
  eosToken: named(text, ""),
});
const readRender = parameters("ChatTemplate.render", {
  messages: operand(objects<ChatMessage>("a list of messages, objects with a role")),
  addGenerationPrompt: named(flag, true),
  tools: named(objects<object>("a list of tools")),
  variables: named(variables),
});

/**
 * Renders chats as text for a model with a Jinja template, as in `tokenizer_config.json`, `chat_template.jinja` and the
 * metadata of GGUF files.
 *
 * @param source the template
 * @param tokens the special tokens that it may use; see {@link TemplateTokens}
 *
 * @example
 * const template = new ChatTemplate("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}");
 * template.render([{ role: "user", content: "Hello" }]); // "<|user|>Hello\n"
 *
 * @throws {ArgumentError} if the template is not valid Jinja.
 */
export class ChatTemplate {
  /** The template's text. */
  readonly source: string;
  private readonly template: Template;
  private readonly tokens: Readonly<Record<string, string>>;

  constructor(source: string, tokens?: TemplateTokens);
  constructor(...values: unknown[]) {
    const { source, bosToken, eosToken } = readTemplate(values);
    this.source = source;
    this.tokens = { bos_token: bosToken, eos_token: eosToken };
    this.template = attempt("ChatTemplate", "invalidTemplate", () => parsed(source));
  }

  /** Whether the template supports tools. */
  get takesTools(): boolean {
    return /\btools\b/.test(this.source);
  }

  /**
   * Renders a chat as the model's input text.
   *
   * @throws {ArgumentError} for chats that the template rejects, such as two consecutive messages of one role.
   */
  render(messages: readonly ChatMessage[], options?: RenderOptions): string;
  render(...values: unknown[]): string {
    const { messages, addGenerationPrompt, tools, variables } = readRender(values);
    const known = { messages, tools, add_generation_prompt: addGenerationPrompt };
    return attempt("ChatTemplate.render", "refused", () =>
      runTemplate(this.template.parsed, { ...this.tokens, ...known, ...variables }),
    );
  }
}

/** The package is loaded on first use. */
function parsed(source: string): Template {
  const { Template } = require("@huggingface/jinja") as typeof import("@huggingface/jinja");
  return new Template(source);
}

function attempt<T>(operation: string, code: string, body: () => T): T {
  try {
    return body();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ArgumentError(operation, code, `expected a chat that the template accepts, got: ${reason}`, { cause });
  }
}
