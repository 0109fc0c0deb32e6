/** `tools`, `tool_choice` and `parallel_tool_calls`: which functions may be called, and what an answer is held to. */
import { ArgumentError } from "../core/errors.ts";
import type { TokenConstraint } from "../nn/generation/constraint.ts";
import { type CallableFunction, compileCalls } from "../text/constraint/compile.ts";
import type { CallForm } from "../text/constraint/messages.ts";
import { ApiError } from "./api_error.ts";
import { compiledOnce } from "./response_format.ts";
import type { ChatRequest } from "./schemas.ts";
import type { ServedModel } from "./served_model.ts";

type Tool = NonNullable<ChatRequest["tools"]>[number];

/** What a request says of calls. */
export interface Calls {
  /** The functions that may be called, of which the model is told. */
  readonly tools: readonly Tool[];
  /** Whether the answer has to be a call. */
  readonly isForced: boolean;
  /** Whether the answer may have several calls. */
  readonly isParallel: boolean;
}

const refuse = (message: string): never => {
  throw new ApiError(400, message, "invalid_value", "tool_choice");
};

/**
 * What may be called, and how often. Models choose when to end a free answer, but forced calls could follow each other
 * without end. So a forced answer is one call, unless the request asks for parallel calls of several functions.
 *
 * @throws {ApiError} 400 for a choice of what is not among the tools.
 */
export function callsOf({ tools = [], tool_choice: choice = "auto", parallel_tool_calls }: ChatRequest): Calls {
  const free = { isForced: false, isParallel: parallel_tool_calls !== false };
  const forced = { isForced: true, isParallel: parallel_tool_calls === true };
  if (choice === "none") return { tools: [], ...free };
  if (choice === "auto") return { tools, ...free };
  if (tools.length === 0) return refuse("expected tools beside tool_choice");
  if (choice === "required") return { tools, ...forced };
  if (choice.type === "function") return { tools: [named(tools, choice.function.name)], ...forced, isParallel: false };
  const { mode, tools: allowed } = choice.allowed_tools;
  return { tools: allowed.map((own) => named(tools, own.function.name)), ...(mode === "required" ? forced : free) };
}

const named = (tools: readonly Tool[], name: string): Tool =>
  tools.find((tool) => tool.function.name === name) ??
  refuse(`expected a function of tools, got ${JSON.stringify(name.slice(0, 64))}`);

/**
 * What an answer is held to: calls alone where they are forced; and what stands in the tags of calls, where a function
 * is strict or there may be one call at most.
 *
 * @throws {ApiError} 400 for a forced call beside another form, and arguments that can't be held to.
 */
export async function callConstraint(served: ServedModel, request: ChatRequest): Promise<TokenConstraint | undefined> {
  const { tools, isForced, isParallel } = callsOf(request);
  const format = request.response_format?.type ?? "text";
  if (isForced && format !== "text") return refuse("expected no response_format beside a forced call");
  const written = served.template?.source.includes("<tool_call>") ? "tags" : "json";
  const isHeld = isForced || (written === "tags" && (!isParallel || tools.some((tool) => tool.function.strict)));
  if (!isHeld || tools.length === 0 || format !== "text") return undefined;
  const form: CallForm = { written, isForced, isParallel };
  const functions = tools.map(({ function: { name, parameters } }) => ({ name, parameters: argumentsOf(parameters) }));
  return compiledOnce(served, JSON.stringify([form, functions]), () => compile(served, functions, form));
}

/** Without parameters a function takes none. */
const argumentsOf = (parameters: Tool["function"]["parameters"]): CallableFunction["parameters"] =>
  parameters && Object.keys(parameters).length > 0 ? parameters : { type: "object", properties: {} };

async function compile(served: ServedModel, functions: readonly CallableFunction[], form: CallForm) {
  try {
    return await compileCalls(served.tokenizer, functions, form);
  } catch (error) {
    if (!(error instanceof ArgumentError)) throw error;
    const { code, message } = error;
    throw new ApiError(400, `arguments of tools: ${message.replace(/^\[[^\]]*\] /, "")}`, code, "tools");
  }
}
