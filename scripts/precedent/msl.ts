/** Returns the constructs of a file in Metal Shading Language, after its includes and macros. */

import { pragmaForm } from "./forms.ts";
import { type Directive, type Include, type Macro, preprocess, type SourceFile } from "./preprocessor.ts";
import type { Report } from "./program.ts";
import { Reader } from "./reader.ts";
import type { Token } from "./tokens.ts";

export function readMsl(source: SourceFile, include: Include, report: Report): void {
  const { tokens, directives, macros } = preprocess(source, include);
  for (const directive of directives) readDirective(directive, macros, report);
  new Reader(tokens, report).read();
}

function readDirective({ name, tokens }: Directive, macros: ReadonlyMap<string, Macro>, report: Report): void {
  const [first] = tokens;
  if (!first) return;
  const text = tokens.map(({ text, isGlued }, index) => (index > 0 && !isGlued ? ` ${text}` : text)).join("");
  if (name === "pragma") report(pragmaForm(text), first);
  else if (name === "include") {
    if (first.text === "<") report(`include ${text.replaceAll(" ", "")}`, first);
  } else if (name === "define") readMacro(tokens, report);
  else if (/^(if|ifdef|ifndef|elif)$/.test(name)) {
    for (const token of tokens) {
      if (token.kind !== "name" || token.text === "defined" || macros.has(token.text)) continue;
      if (/^__/.test(token.text) || name === "if" || name === "elif") report(`test #${name} ${token.text}`, token);
    }
  } else if (!/^(undef|error|warning|line)$/.test(name)) report(`directive #${name}`, first);
}

/** Reads the constructs in a macro's definition. */
function readMacro(tokens: readonly Token[], report: Report): void {
  const [first, opening] = tokens;
  const hasParameters = opening?.text === "(" && opening.isGlued;
  report(hasParameters ? "directive #define X(…)" : "directive #define X", first);
  if (!hasParameters) return;
  for (const token of tokens.slice(1)) {
    if (token.text === "##") report("directive ##", token);
    if (token.text === "#") report("directive #x", token);
    if (token.text === "__VA_ARGS__" || token.text === "__VA_OPT__") report(`directive ${token.text}`, token);
  }
}
