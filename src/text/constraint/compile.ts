import { ArgumentError } from "../../core/errors.ts";
import { anObject, flag, text } from "../../core/kinds.ts";
import { type Kind, named, operand, parameters, reading } from "../../core/parameters.ts";
import type { TokenConstraint } from "../../nn/generation/constraint.ts";
import { type ConstrainedTokenizer, HeldForm } from "./held.ts";
import type { CallForm, Form } from "./messages.ts";
import { schemaText } from "./schema_text.ts";

/** The form of a text: one of these. */
export interface ConstraintOptions {
  /** A regular expression that the whole text matches. */
  readonly regex?: string | undefined;
  /** A JSON schema: the text is JSON that is valid by it. Keywords that can't be held to are refused by name. */
  readonly schema?: Readonly<Record<string, unknown>> | undefined;
  /** Any JSON object or list. Default false. */
  readonly json?: boolean | undefined;
}

const aTokenizer: Kind<ConstrainedTokenizer> = {
  expected: "a tokenizer",
  parse(value) {
    const own = value as Partial<ConstrainedTokenizer> | null | undefined;
    return typeof own?.bytesOf === "function" && typeof own.vocabularySize === "number"
      ? (value as ConstrainedTokenizer)
      : undefined;
  },
};

const readCall = parameters("compileConstraint", {
  tokenizer: operand(aTokenizer),
  regex: named(text),
  schema: named(anObject<Readonly<Record<string, unknown>>>("a JSON schema, an object")),
  json: named(flag, false),
});

/**
 * A form that generated texts are held to: whatever the model says, only tokens that can still lead to such a text
 * follow. The automaton is that of XGrammar (Y. Dong et al., "XGrammar: flexible and efficient structured generation
 * engine for large language models", 2024), as the npm package `@mlc-ai/web-xgrammar`.
 *
 * A text that ends because of `maxTokens` is the beginning of such a text.
 *
 * @param tokenizer the model's
 *
 * @example
 * const schema = { type: "object", properties: { age: { type: "integer" } }, required: ["age"] };
 * const constraint = await text.compileConstraint(tokenizer, { schema });
 * for await (const piece of nn.generateText(model, tokenizer, prompt, { constraint })) process.stdout.write(piece);
 *
 * @throws {ArgumentError} for no form or several, a regular expression that is none, and a schema that can't be held
 * to.
 */
export function compileConstraint(
  tokenizer: ConstrainedTokenizer,
  options: ConstraintOptions,
): Promise<TokenConstraint>;
export async function compileConstraint(...values: unknown[]): Promise<TokenConstraint> {
  const { tokenizer, ...options } = readCall(values);
  return compiled(tokenizer, formOf(options));
}

const MOST_REGEX = 4096;

function formOf({ regex, schema, json }: ConstraintOptions): Form {
  if ([regex, schema, json || undefined].filter((own) => own !== undefined).length !== 1)
    throw invalid("noForm", "expected one of regex, schema and json: true");
  if (schema !== undefined) return { kind: "schema", schema: reading("compileConstraint", () => schemaText(schema)) };
  if (regex === undefined) return { kind: "json" };
  if (regex.length > MOST_REGEX)
    throw invalid("tooLarge", `expected a regular expression of at most ${MOST_REGEX} characters, got ${regex.length}`);
  return { kind: "regex", source: regex };
}

const invalid = (code: string, message: string) => new ArgumentError("compileConstraint", code, message);

async function compiled(tokenizer: ConstrainedTokenizer, form: Form): Promise<TokenConstraint> {
  const own = new HeldForm(tokenizer, form);
  await own.ready();
  return own;
}

/** @internal A function that may be called. */
export interface CallableFunction {
  readonly name: string;
  /** The JSON schema of its arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/**
 * @internal Holds texts to calls of functions with arguments by their schemas.
 *
 * @throws {ArgumentError} for a schema that can't be held to.
 */
export async function compileCalls(
  tokenizer: ConstrainedTokenizer,
  functions: readonly CallableFunction[],
  form: CallForm,
): Promise<TokenConstraint> {
  const written = functions.map(({ name, parameters }) => ({
    name,
    schema: reading("compileConstraint", () => schemaText(parameters)),
  }));
  return compiled(tokenizer, { kind: "calls", functions: written, form });
}
