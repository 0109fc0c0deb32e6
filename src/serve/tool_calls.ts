/**
 * Parses function calls in a model's text, in the formats of chat templates:
 *
 *     <tool_call>{"name": "add", "arguments": {"x": 1}}</tool_call>      Hermes, Qwen; any number of them
 *     {"name": "add", "parameters": {"x": 1}}                            Llama 3; the whole text
 */
import { recordIn } from "../core/values.ts";
import { StopFinder } from "../nn/generation/stop.ts";
import type { Part } from "./choice.ts";

/** A call in OpenAI's format. */
export interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

const OPEN = "<tool_call>";
/** A call in tags. Strings of its arguments may contain tags too. The last closing tag may be truncated. */
const TAGGED = /<tool_call>((?:"(?:[^"\\\n]|\\.)*"|.)*?)(?:<\/tool_call>|(?:<\/?[a-z_]*)?$)/gs;
const WHOLE = /^(.*)$/s;

/** Splits the text of one answer into text and calls. Text that may be a call is held back. */
export class ToolCallFilter {
  private readonly finder = new StopFinder([OPEN]);
  /** The text since the start of a possible call; undefined while there is none. */
  private held: string | undefined;
  private hasText = false;

  /** @param names the functions that may be called */
  constructor(private readonly names: ReadonlySet<string>) {}

  /** Adds a piece and returns the text that is certainly not part of a call. */
  push(piece: string): string {
    if (this.held !== undefined) {
      this.held += piece;
      return "";
    }
    const isFirst = !this.hasText && piece.trim() !== "";
    if (isFirst && piece.trimStart().startsWith("{")) {
      this.held = piece;
      return "";
    }
    this.hasText ||= isFirst;
    const { text, found } = this.finder.push(piece);
    if (found) this.held = this.finder.rest;
    return text;
  }

  /** Returns the complete calls, and held-back text that is not a complete call. */
  end(): { readonly text: string; readonly calls: readonly ToolCall[] } {
    const held = this.held ?? this.finder.end();
    if (this.held === undefined) return { text: held, calls: [] };
    const calls: ToolCall[] = [];
    const written = held.startsWith(OPEN) ? TAGGED : WHOLE;
    const text = held.replace(written, (whole, inner: string) => {
      const call = this.callOf(inner);
      if (call) calls.push(call);
      return call ? "" : whole;
    });
    return { text: calls.length > 0 ? text.trim() : text, calls };
  }

  private callOf(text: string): ToolCall | undefined {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return undefined;
    }
    if (typeof value !== "object" || value === null) return undefined;
    const { name, arguments: given, parameters } = recordIn(value);
    if (typeof name !== "string" || !this.names.has(name)) return undefined;
    const passed = given ?? parameters ?? {};
    const written = typeof passed === "string" ? passed : JSON.stringify(passed);
    return { id: `call_${crypto.randomUUID()}`, type: "function", function: { name, arguments: written } };
  }
}

/** Splits the parts of several answers into text and calls. */
export class CallSplitter {
  private readonly filters = new Map<number, ToolCallFilter>();

  /** @param names the functions that may be called */
  constructor(private readonly names: ReadonlySet<string>) {}

  split({ choice, text, finishReason }: Part) {
    if (this.names.size === 0) return { text, calls: [], reason: finishReason };
    const filter = this.filters.get(choice) ?? new ToolCallFilter(this.names);
    this.filters.set(choice, filter);
    const said = filter.push(text);
    if (!finishReason) return { text: said, calls: [], reason: finishReason };
    const end = filter.end();
    const reason = end.calls.length > 0 && finishReason === "stop" ? ("tool_calls" as const) : finishReason;
    return { text: said + end.text, calls: end.calls, reason };
  }
}
