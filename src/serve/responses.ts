/** `POST /v1/responses` */
import type { Format } from "./answer.ts";
import type { ApiError } from "./api_error.ts";
import type { Part } from "./choice.ts";
import { chatChances } from "./log_probabilities.ts";
import { hasChances, type ResponseRequest } from "./response_request.ts";
import type { ChatRequest } from "./schemas.ts";
import type { ServedModel, ServedTokenizer } from "./served_model.ts";
import { CallSplitter, type ToolCall } from "./tool_calls.ts";
import { callsOf } from "./tool_choice.ts";
import type { Usage } from "./work.ts";

/** Returns the format of answers. The last event contains the complete response. */
export function responseFormat(served: ServedModel, request: ResponseRequest, chat: ChatRequest): Format {
  const names = new Set(callsOf(chat).tools.map((tool) => tool.function.name));
  const writer = new ResponseWriter(served, request, new CallSplitter(names));
  return {
    isTyped: true,
    head: () => writer.begin(),
    part: (part) => writer.write(part),
    usage: () => [],
    end: (usage) => [writer.end(usage)],
    failed: (error) => writer.fail(error),
    whole([parts], usage) {
      for (const part of parts) writer.write(part);
      return writer.end(usage).response;
    },
  };
}

const now = (): number => Math.floor(Date.now() / 1000);
const idOf = (kind: string): string => `${kind}_${crypto.randomUUID().replaceAll("-", "")}`;

interface TextPart {
  readonly type: "output_text";
  text: string;
  readonly annotations: readonly never[];
  readonly logprobs: object[];
}
interface MessageItem {
  readonly id: string;
  readonly type: "message";
  readonly role: "assistant";
  status: string;
  content: TextPart[];
}

/** Writes the events of one response, in OpenAI's order. */
class ResponseWriter {
  private readonly output: object[] = [];
  private readonly base: object;
  private readonly tokenizer: ServedTokenizer;
  private message: { readonly item: MessageItem; readonly part: TextPart; readonly index: number } | undefined;
  private reason: string | undefined;
  private count = 0;

  constructor(
    { name, tokenizer }: ServedModel,
    private readonly request: ResponseRequest,
    private readonly splitter: CallSplitter,
  ) {
    this.tokenizer = tokenizer;
    this.base = baseOf(name, request);
  }

  begin(): object[] {
    const response = this.response("in_progress");
    return [this.event("response.created", { response }), this.event("response.in_progress", { response })];
  }

  write(part: Part): object[] {
    const { text, calls, reason } = this.splitter.split(part);
    this.reason = reason;
    const events = text === "" ? [] : this.say(text, part);
    if (reason === undefined) return events;
    const isSilent = this.message === undefined && calls.length === 0;
    return [...events, ...(isSilent ? this.open() : []), ...this.close(), ...calls.flatMap((call) => this.call(call))];
  }

  end(usage: Usage) {
    const isCut = this.reason === "length";
    const status = isCut ? "incomplete" : "completed";
    const more = { incomplete_details: isCut ? { reason: "max_output_tokens" } : null, completed_at: now() };
    const response = { ...this.response(status), ...more, usage: usageOf(usage) };
    return { ...this.event(`response.${status}`, { response }), response };
  }

  fail({ message, code, param }: ApiError): object[] {
    const response = { ...this.response("failed"), error: { code: "server_error", message } };
    return [this.event("error", { code, message, param }), this.event("response.failed", { response })];
  }

  private event(type: string, fields: object) {
    return { type, sequence_number: this.count++, ...structuredClone(fields) };
  }

  private response(status: string): object {
    return { ...this.base, status, output: this.output };
  }

  /** Begins a message at the first text. */
  private open(): object[] {
    const item: MessageItem = {
      id: idOf("msg"),
      type: "message",
      role: "assistant",
      status: "in_progress",
      content: [],
    };
    const part: TextPart = { type: "output_text", text: "", annotations: [], logprobs: [] };
    this.message = { item, part, index: this.output.push(item) - 1 };
    const added = this.event("response.output_item.added", { output_index: this.message.index, item });
    item.content.push(part);
    return [added, this.event("response.content_part.added", { ...this.place(), part })];
  }

  private place() {
    const { item, index } = this.message!;
    return { item_id: item.id, output_index: index, content_index: 0 };
  }

  private say(delta: string, part: Part): object[] {
    const opened = this.message ? [] : this.open();
    const current = this.message!.part;
    const logprobs = hasChances(this.request) ? chatChances(this.tokenizer, part.tokens).content : [];
    current.text += delta;
    current.logprobs.push(...logprobs);
    return [...opened, this.event("response.output_text.delta", { ...this.place(), delta, logprobs })];
  }

  private close(): object[] {
    if (!this.message) return [];
    const { item, part, index } = this.message;
    item.status = this.reason === "length" ? "incomplete" : "completed";
    const { text, logprobs } = part;
    return [
      this.event("response.output_text.done", { ...this.place(), text, logprobs }),
      this.event("response.content_part.done", { ...this.place(), part }),
      this.event("response.output_item.done", { output_index: index, item }),
    ];
  }

  private call({ id: call_id, function: { name, arguments: given } }: ToolCall): object[] {
    const id = idOf("fc");
    const item = { id, type: "function_call", status: "completed", call_id, name, arguments: given };
    const output_index = this.output.push(item) - 1;
    const place = { item_id: id, output_index };
    const started = { ...item, status: "in_progress", arguments: "" };
    return [
      this.event("response.output_item.added", { output_index, item: started }),
      this.event("response.function_call_arguments.delta", { ...place, delta: given }),
      this.event("response.function_call_arguments.done", { ...place, name, arguments: given }),
      this.event("response.output_item.done", { output_index, item }),
    ];
  }
}

/** Returns the fields of the request that a response repeats. */
function baseOf(model: string, request: ResponseRequest): object {
  const { instructions, max_output_tokens, parallel_tool_calls, temperature, tool_choice, tools, top_p, text } =
    request;
  return {
    id: idOf("resp"),
    object: "response",
    created_at: now(),
    model,
    error: null,
    incomplete_details: null,
    instructions: instructions ?? null,
    max_output_tokens: max_output_tokens ?? null,
    metadata: {},
    parallel_tool_calls: parallel_tool_calls ?? true,
    previous_response_id: null,
    store: false,
    temperature: temperature ?? null,
    top_p: top_p ?? null,
    truncation: "disabled",
    usage: null,
    tool_choice: tool_choice ?? "auto",
    tools: tools ?? [],
    text: { format: text?.format ?? { type: "text" } },
  };
}

const usageOf = ({ prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details }: Usage): object => ({
  input_tokens: prompt_tokens,
  input_tokens_details: prompt_tokens_details,
  output_tokens: completion_tokens,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens,
});
