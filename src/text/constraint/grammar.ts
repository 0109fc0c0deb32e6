/** Forms as grammars of XGrammar. Runs in the process for forms alone. */
import {
  type CompiledGrammar,
  Grammar,
  type GrammarCompiler,
  type StructuralTagFormat,
  Testings,
} from "@mlc-ai/web-xgrammar";
import { rangeOf } from "./code_points.ts";
import { atPath, type Placed, readSchema } from "./json_schema.ts";
import type { CallForm, Form, FunctionForm } from "./messages.ts";
import { choice, type Pattern, sequence, setOf } from "./pattern.ts";
import { readPattern } from "./read_pattern.ts";
import { PatternRules } from "./write_pattern.ts";

/** Between two parts of JSON. Without a limit a model may write spaces for ever. */
const MOST_SPACES = 2;

/** @throws {ArgumentError} for a form that texts can't be held to. */
export async function compileForm(compiler: GrammarCompiler, form: Form): Promise<CompiledGrammar> {
  if (form.kind === "json") return compiler.compileBuiltinJSONGrammar();
  const grammar = await grammarOf(form);
  try {
    return await compiler.compileGrammar(grammar);
  } finally {
    grammar.dispose();
  }
}

async function grammarOf(form: Exclude<Form, { readonly kind: "json" }>): Promise<Grammar> {
  switch (form.kind) {
    case "schema":
      return Grammar.fromEBNF(await schemaRules(form.schema));
    case "regex":
      return Grammar.fromEBNF(regexRules(form.source));
    case "calls":
      return Grammar.fromStructuralTag({ type: "structural_tag", format: await callsOf(form.functions, form.form) });
  }
}

function regexRules(source: string): string {
  const rules = new PatternRules();
  const root = rules.add(readPattern(source), "plain");
  return `root ::= ${root}\n${rules.text}\n`;
}

/** A text of {@link placed}, as XGrammar writes its pattern between quotes. */
const PLACE = /"\\"" \( "@" ((?:"\d" )+)"@" \) "\\""/g;

/** A schema in XGrammar's notation, in which spaces are limited. */
async function schemaRules(schema: string): Promise<string> {
  const { text, places } = readSchema(schema);
  const rules = new PatternRules();
  const names = places.map((own) => atPath(own.path, () => placeRule(rules, own)));
  const written = await Testings._jsonSchemaToEBNF(text, true, undefined, undefined, true, MOST_SPACES);
  const whole = written.replace(PLACE, (_, digits: string) => names[Number(digits.replace(/[" ]/g, ""))]!);
  return `${whole}\n${rules.text}\n`;
}

function placeRule(rules: PatternRules, own: Placed): string {
  if ("pattern" in own) return `"\\"" ${rules.add(own.pattern, "json")} "\\""`;
  return rules.add(choice(own.values.map((value) => literal(JSON.stringify(value)))), "plain");
}

const literal = (text: string): Pattern => sequence(Array.from(text, (own) => setOf(rangeOf(own.codePointAt(0)!))));

type Call = readonly [name: string, parameters: StructuralTagFormat];

async function callsOf(functions: readonly FunctionForm[], form: CallForm): Promise<StructuralTagFormat> {
  const calls: Call[] = [];
  for (const { name, schema } of functions) calls.push([name, { type: "grammar", grammar: await schemaRules(schema) }]);
  return form.written === "tags" ? taggedCalls(calls, form) : plainCall(calls);
}

function taggedCalls(calls: readonly Call[], { isForced, isParallel }: CallForm): StructuralTagFormat {
  const tags = calls.map(([name, content]) => ({
    ...{ type: "tag" as const, content, end: "}\n</tool_call>" },
    begin: `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": `,
  }));
  return isForced
    ? { type: "tags_with_separator", tags, separator: "\n", at_least_one: true, stop_after_first: !isParallel }
    : { type: "triggered_tags", tags, triggers: ["<tool_call>"], stop_after_first: !isParallel };
}

const plainCall = (calls: readonly Call[]): StructuralTagFormat => ({
  type: "or",
  elements: calls.map(([name, content]) => ({
    type: "sequence",
    elements: [
      { type: "const_string", value: `{"name": ${JSON.stringify(name)}, "parameters": ` },
      content,
      { type: "const_string", value: "}" },
    ],
  })),
});
