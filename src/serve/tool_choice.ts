/** `tools`, `tool_choice` and `parallel_tool_calls`: the functions that may be called, and constraints on answers. */
import { ArgumentError } from "../core/errors.ts";
import { type CallableFunction, compileCalls } from "../text/constraint/compile.ts";
import type { CallForm } from "../text/constraint/messages.ts";
import type { TokenConstraint } from "../text/constraint/token_constraint.ts";
import { ApiError } from "./api_error.ts";
import { compiledOnce } from "./response_format.ts";
import type { ChatRequest } from "./schemas.ts";
import type { ServedModel } from "./served_model.ts";

type Tool = NonNullable<ChatRequest["tools"]>[number];

/** The function calls that a request allows. */
export interface Calls {
  /** The functions that may be called. The prompt describes them to the model. */
  readonly tools: readonly Tool[];
  /** Whether the answer must be a call. */
  readonly isForced: boolean;
  /** Whether the answer may have several calls. */
  readonly isParallel: boolean;
}

const refuse = (message: string): never => {
  throw new ApiError(400, message, "invalid_value", "tool_choice");
};

/**
 * Returns the allowed calls. A model decides when to end a free answer, but forced calls could repeat endlessly. So a
 * forced answer is one call, unless the request asks for parallel calls of several functions.
 *
 * @throws {ApiError} 400 if `tool_choice` names a function that is not in `tools`.
 */
export function callsOf({ tools = [], tool_choice: choice = "auto", parallel_tool_calls }: ChatRequest): Calls {
  const free = { isForced: false, isParallel: parallel_tool_calls !== false };
  const forced = { isForced: true, isParallel: parallel_tool_calls === true };
  if (choice === "none") return { tools: [], ...free };
  if (choice === "auto") return { tools, ...free };
  if (tools.length === 0) return refuse("tool_choice requires tools");
  if (choice === "required") return { tools, ...forced };
  if (choice.type === "function") return { tools: [named(tools, choice.function.name)], ...forced, isParallel: false };
  const { mode, tools: allowed } = choice.allowed_tools;
  return { tools: allowed.map((tool) => named(tools, tool.function.name)), ...(mode === "required" ? forced : free) };
}

const named = (tools: readonly Tool[], name: string): Tool =>
  tools.find((tool) => tool.function.name === name) ??
  refuse(`expected a function in tools, got ${JSON.stringify(name.slice(0, 64))}`);

/**
 * Returns the constraint on an answer: only calls, if calls are forced; and the contents of call tags, if a function is
 * strict or at most one call is allowed.
 *
 * @throws {ApiError} 400 for a forced call with a `response_format`, and unsupported schemas of arguments.
 */
export async function callConstraint(served: ServedModel, request: ChatRequest): Promise<TokenConstraint | undefined> {
  const { tools, isForced, isParallel } = callsOf(request);
  const format = request.response_format?.type ?? "text";
  if (isForced && format !== "text") return refuse("a forced call can't be combined with response_format");
  const written = served.template?.source.includes("<tool_call>") ? "tags" : "json";
  const isHeld = isForced || (written === "tags" && (!isParallel || tools.some((tool) => tool.function.strict)));
  if (!isHeld || tools.length === 0 || format !== "text") return undefined;
  const form: CallForm = { written, isForced, isParallel };
  const functions = tools.map(({ function: { name, parameters } }) => ({ name, parameters: argumentsOf(parameters) }));
  return compiledOnce(served, JSON.stringify([form, functions]), () => compile(served, functions, form));
}

/** A function without `parameters` accepts no arguments. */
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
