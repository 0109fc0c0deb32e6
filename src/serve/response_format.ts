/** `response_format`: constrains answers to a format. */

import { compileConstraint } from "../text/constraint/compile.ts";
import type { TokenConstraint } from "../text/constraint/token_constraint.ts";
import { busy } from "./api_error.ts";
import type { ChatRequest } from "./schemas.ts";
import type { ServedModel } from "./served_model.ts";

/** Recently used constraints by their JSON, since clients repeat them. */
const known = new WeakMap<ServedModel, Map<string, Promise<TokenConstraint>>>();
const MOST_KNOWN = 16;

/** Number of constraints being compiled, for all models. */
let compiling = 0;
const MOST_COMPILING = 16;

/** Returns a cached constraint or compiles it. @throws {ApiError} 429 if too many are being compiled. */
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
    if (forms.get(key) === constraint) forms.delete(key); // failures are not cached
    throw error;
  }
}

async function counted<T>(compile: () => Promise<T>): Promise<T> {
  if (compiling >= MOST_COMPILING) throw busy("too many response formats are being compiled; try again later");
  compiling++;
  try {
    return await compile();
  } finally {
    compiling--;
  }
}

/** Compiles the constraint of a request. @throws {ArgumentError} for an unsupported schema. */
export async function constraintOf(
  served: ServedModel,
  format: ChatRequest["response_format"],
): Promise<TokenConstraint | undefined> {
  if (!format || format.type === "text") return undefined;
  const options = format.type === "json_object" ? { json: true } : { schema: format.json_schema.schema };
  return compiledOnce(served, JSON.stringify(options), () => compileConstraint(served.tokenizer, options));
}
