/** Converts constraints to XGrammar's grammars. Runs only in the process for constraints. */
import { type CompiledGrammar, Grammar, type GrammarCompiler, type StructuralTagFormat } from "@mlc-ai/web-xgrammar";
import { ArgumentError } from "../../core/errors.ts";
import type { CallForm, Form, FunctionForm } from "./messages.ts";
import { readPattern } from "./read_pattern.ts";
import { schemaRules } from "./schema_rules.ts";
import { PatternRules } from "./write_pattern.ts";

/** Compiles a constraint. @throws {ArgumentError} if it is not supported. */
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
      return Grammar.fromEBNF(schemaRules(form.schema));
    case "regex":
      return Grammar.fromEBNF(regexRules(form.source));
    case "calls":
      return Grammar.fromStructuralTag({ type: "structural_tag", format: await callsOf(form.functions, form.form) });
  }
}

function regexRules(source: string): string {
  const rules = new PatternRules();
  const root = rules.add(readPattern(source, "whole"), "plain");
  if (root === undefined)
    throw new ArgumentError("compileConstraint", "noText", "expected a regular expression that matches some text");
  return `root ::= ${root}\n${rules.text}\n`;
}

type Call = readonly [name: string, parameters: StructuralTagFormat];

async function callsOf(functions: readonly FunctionForm[], form: CallForm): Promise<StructuralTagFormat> {
  const calls: Call[] = [];
  for (const { name, schema } of functions) calls.push([name, { type: "grammar", grammar: schemaRules(schema) }]);
  return form.written === "tags" ? taggedCalls(calls, form) : plainCall(calls);
}

function taggedCalls(calls: readonly Call[], { isForced, isParallel }: CallForm): StructuralTagFormat {
  const tags = calls.map(([name, content]) => ({
    type: "tag" as const,
    content,
    end: "}\n</tool_call>",
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
