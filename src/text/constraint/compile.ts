import { ArgumentError } from "../../core/errors.ts";
import { anObject, flag, text } from "../../core/kinds.ts";
import { type Kind, named, operand, parameters, reading } from "../../core/parameters.ts";
import { type ConstrainedTokenizer, HeldForm } from "./held.ts";
import type { CallForm, Form } from "./messages.ts";
import { schemaText } from "./schema_text.ts";
import type { TokenConstraint } from "./token_constraint.ts";

/** The constraint on a text; exactly one option. */
export interface ConstraintOptions {
  /** A regular expression that must match the whole text. */
  readonly regex?: string | undefined;
  /** A JSON schema that the text must satisfy. Unsupported keywords are rejected with an error that names them. */
  readonly schema?: Readonly<Record<string, unknown>> | undefined;
  /** Whether the text must be any JSON object or list. Default false. */
  readonly json?: boolean | undefined;
}

const aTokenizer: Kind<ConstrainedTokenizer> = {
  expected: "a tokenizer",
  parse(value) {
    const tokenizer = value as Partial<ConstrainedTokenizer> | null | undefined;
    return typeof tokenizer?.bytesOf === "function" && typeof tokenizer.vocabularySize === "number"
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
 * Compiles a constraint for generated text. Generation then allows only tokens that can still lead to a matching text.
 * Uses XGrammar (Y. Dong et al., "XGrammar: flexible and efficient structured generation engine for large language
 * models", 2024) from the npm package `@mlc-ai/web-xgrammar`.
 *
 * A text that ends because of `maxTokens` is a prefix of a matching text.
 *
 * @param tokenizer the model's tokenizer
 *
 * @example
 * const schema = { type: "object", properties: { age: { type: "integer" } }, required: ["age"] };
 * const constraint = await text.compileConstraint(tokenizer, { schema });
 * for await (const piece of nn.generateText(model, tokenizer, prompt, { constraint })) process.stdout.write(piece);
 *
 * @throws {ArgumentError} unless exactly one option is given, and for an invalid regular expression or an unsupported
 * schema.
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
  if ([regex, schema, json || undefined].filter((form) => form !== undefined).length !== 1)
    throw invalid("noForm", "expected exactly one of regex, schema and json: true");
  if (schema !== undefined) return { kind: "schema", schema: reading("compileConstraint", () => schemaText(schema)) };
  if (regex === undefined) return { kind: "json" };
  if (regex.length > MOST_REGEX)
    throw invalid("tooLarge", `expected a regular expression of at most ${MOST_REGEX} characters, got ${regex.length}`);
  return { kind: "regex", source: regex };
}

const invalid = (code: string, message: string) => new ArgumentError("compileConstraint", code, message);

async function compiled(tokenizer: ConstrainedTokenizer, form: Form): Promise<TokenConstraint> {
  const held = new HeldForm(tokenizer, form);
  await held.ready();
  return held;
}

/** @internal A function that the model may call. */
export interface CallableFunction {
  readonly name: string;
  /** The JSON schema of its arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/**
 * @internal Compiles a constraint to function calls whose arguments satisfy their schemas.
 *
 * @throws {ArgumentError} for an unsupported schema.
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
