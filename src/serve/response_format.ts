/** `response_format`: the form that answers are held to. */
import type { TokenConstraint } from "../nn/generation/constraint.ts";
import { compileConstraint } from "../text/constraint/compile.ts";
import { busy } from "./api_error.ts";
import type { ChatRequest } from "./schemas.ts";
import type { ServedModel } from "./served_model.ts";

/** The forms that were asked for last, by their JSON: clients repeat them. */
const known = new WeakMap<ServedModel, Map<string, Promise<TokenConstraint>>>();
const MOST_KNOWN = 16;

/** Forms that are being compiled, of all models. */
let compiling = 0;
const MOST_COMPILING = 16;

/** A form that is compiled where it is not known. @throws {ApiError} 429 where many others are being compiled. */
export async function compiledOnce(
  served: ServedModel,
  key: string,
  compile: () => Promise<TokenConstraint>,
): Promise<TokenConstraint> {
  const forms = known.get(served) ?? new Map<string, Promise<TokenConstraint>>();
  known.set(served, forms);
  const constraint = forms.get(key) ?? counted(compile);
  forms.delete(key);
  forms.set(key, constraint);
  if (forms.size > MOST_KNOWN) forms.delete(forms.keys().next().value!);
  try {
    return await constraint;
  } catch (error) {
    if (forms.get(key) === constraint) forms.delete(key); // what can't be compiled is not kept
    throw error;
  }
}

async function counted<T>(compile: () => Promise<T>): Promise<T> {
  if (compiling >= MOST_COMPILING) throw busy("too many forms of answers are being compiled; try again later");
  compiling++;
  try {
    return await compile();
  } finally {
    compiling--;
  }
}

/** @throws {ArgumentError} for a schema that can't be held to. */
export async function constraintOf(
  served: ServedModel,
  format: ChatRequest["response_format"],
): Promise<TokenConstraint | undefined> {
  if (!format || format.type === "text") return undefined;
  const options = format.type === "json_object" ? { json: true } : { schema: format.json_schema.schema };
  return compiledOnce(served, JSON.stringify(options), () => compileConstraint(served.tokenizer, options));
}
