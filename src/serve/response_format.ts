/** `response_format`: the form that answers are held to. */
import type { TokenConstraint } from "../nn/generation/constraint.ts";
import { compileConstraint } from "../text/constraint.ts";
import type { ChatRequest } from "./schemas.ts";
import type { ServedModel } from "./served_model.ts";

/** The forms that were asked for last, by their JSON: clients repeat them. */
const known = new WeakMap<ServedModel, Map<string, Promise<TokenConstraint>>>();
const MOST_KNOWN = 16;

/** @throws {ArgumentError} for a schema that can't be held to. */
export async function constraintOf(
  served: ServedModel,
  format: ChatRequest["response_format"],
): Promise<TokenConstraint | undefined> {
  if (!format || format.type === "text") return undefined;
  const forms = known.get(served) ?? new Map<string, Promise<TokenConstraint>>();
  known.set(served, forms);
  const options = format.type === "json_object" ? { json: true } : { schema: format.json_schema.schema };
  const key = JSON.stringify(options);
  const constraint = forms.get(key) ?? compileConstraint(served.tokenizer, options);
  forms.delete(key);
  const compiled = await constraint; // what can't be compiled is not kept
  forms.set(key, constraint);
  if (forms.size > MOST_KNOWN) forms.delete(forms.keys().next().value!);
  return compiled;
}
