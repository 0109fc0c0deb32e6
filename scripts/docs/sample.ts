/**
 * Draws prose for a reader to judge: comments, docstrings, sentences of pages, error messages and titles of tests, each
 * with its place. The same seed draws the same texts from the same sources.
 *
 *     bun scripts/docs/sample.ts --seed 7 --comments 200 --docstrings 60 --sentences 100 --messages 60 --titles 60
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { parseSync, Visitor } from "oxc-parser";
import { packageRoot } from "../../src/core/paths.ts";
import { contentKey } from "../content_cache.ts";
import { Failure, main } from "../failure.ts";
import { filesOf } from "../format/files.ts";

const usual = { comments: 200, docstrings: 60, sentences: 100, messages: 60, titles: 60 };
type Kind = keyof typeof usual;

/** A text, and the file and line where it begins. */
interface Passage {
  readonly kind: Kind;
  readonly place: string;
  readonly text: string;
}

const lineAt = (source: string, offset: number): number => source.slice(0, offset).split("\n").length;

/** Comments, docstrings of exports, messages of errors, and titles of tests in a file of TypeScript. */
function* passagesOfTypeScript(file: string, source: string): Generator<Passage> {
  const { comments, program } = parseSync(file, source);
  const at = (offset: number) => `${file}:${lineAt(source, offset)}`;
  let run: { start: number; end: number; text: string } | undefined;
  for (const { type, start, end, value } of [
    ...comments,
    { type: "Line", start: Infinity, end: Infinity, value: "" },
  ]) {
    const continues = run && type === "Line" && /^\n[ \t]*$/.test(source.slice(run.end, start));
    if (run && !continues) yield { kind: "comments", place: at(run.start), text: run.text };
    if (type === "Line")
      run = { start: continues ? run!.start : start, end, text: continues ? `${run!.text} ${value}` : value };
    else {
      run = undefined;
      const text = value.replaceAll(/^[ \t]*\*/gm, " ");
      const isOfExport = value.startsWith("*") && /^\s*export /.test(source.slice(end));
      yield { kind: isOfExport ? "docstrings" : "comments", place: at(start), text };
    }
  }
  const found: Passage[] = [];
  const add = (node: { start: number; end: number }) => {
    const text = source.slice(node.start + 1, node.end - 1);
    if (text.split(" ").length > 3) found.push({ kind: "messages", place: at(node.start), text });
  };
  let depth = 0;
  new Visitor({
    ThrowStatement: () => depth++,
    "ThrowStatement:exit": () => depth--,
    Literal: (node) => depth > 0 && typeof node.value === "string" && add(node),
    TemplateLiteral: (node) => depth > 0 && add(node),
    CallExpression: ({ callee, arguments: [title] }) => {
      if (!title || !/^(?:test|it|describe)\b/.test(source.slice(callee.start, callee.end))) return;
      if (title.type !== "Literal" && title.type !== "TemplateLiteral") return;
      found.push({ kind: "titles", place: at(title.start), text: source.slice(title.start + 1, title.end - 1) });
    },
  }).visit(program);
  yield* found;
}

/** Runs of lines that begin with `//` or, in Python, with `#`. */
function* passagesOfLines(file: string, source: string): Generator<Passage> {
  const runs = file.endsWith(".py") ? /^[ \t]*#(?!!).*(?:\n[ \t]*#.*)*/gm : /^[ \t]*\/\/.*(?:\n[ \t]*\/\/.*)*/gm;
  for (const { 0: text, index } of source.matchAll(runs))
    yield {
      kind: "comments",
      place: `${file}:${lineAt(source, index)}`,
      text: text.replaceAll(/^[ \t]*(?:\/\/\/?|#)/gm, " "),
    };
}

/** Sentences outside code, tables and headings. */
function* passagesOfPage(file: string, source: string): Generator<Passage> {
  const blank = (text: string) => text.replaceAll(/[^\n]/g, " ");
  const prose = source.replaceAll(/^```[\s\S]*?^```/gm, blank).replaceAll(/^(?:\||#|<).*/gm, blank);
  for (const { 0: paragraph, index } of prose.matchAll(/\S.*(?:\n[ \t]*\S.*)*/g)) {
    let from = index;
    for (const sentence of paragraph.split(/(?<=[.!?:])\s+(?=[A-Z`[*-])/)) {
      if (sentence.split(" ").length > 3)
        yield { kind: "sentences", place: `${file}:${lineAt(source, from)}`, text: sentence };
      from += sentence.length + 1;
    }
  }
}

function* allPassages(): Generator<Passage> {
  const read = (file: string) => readFileSync(join(packageRoot, file), "utf8");
  const programs = ["src", "scripts", "bench", "examples", "site", "test"].map((folder) => `${folder}/**/*.ts`);
  const others = ["native/**/*.{cpp,h}", "kernels/**/*.{metal,h}", "swift/**/*.{swift,cpp,c,h}", "scripts/**/*.py"];
  for (const file of filesOf(programs)) yield* passagesOfTypeScript(file, read(file));
  for (const file of filesOf(others)) yield* passagesOfLines(file, read(file));
  for (const file of filesOf(["README.md", "docs/**/*.md"])) yield* passagesOfPage(file, read(file));
}

await main(async () => {
  const option = { type: "string" } as const;
  const names = Object.keys(usual) as Kind[];
  const options = {
    seed: option,
    ...(Object.fromEntries(names.map((kind) => [kind, option])) as Record<Kind, typeof option>),
  };
  const { values } = parseArgs({ args: process.argv.slice(2), options });
  const number = (name: keyof typeof options, fallback: number): number => {
    const value = Number(values[name] ?? fallback);
    if (!Number.isSafeInteger(value) || value < 0)
      throw new Failure(`sample: expected --${name} to be an integer of at least 0, got "${values[name]}".`);
    return value;
  };
  const seed = number("seed", 1);
  const texts = [...allPassages()].map(({ text, ...passage }) => ({
    ...passage,
    text: text.replaceAll(/\s+/g, " ").trim(),
  }));
  for (const kind of names) {
    const all = texts.filter((passage) => passage.kind === kind && /[a-z]/.test(passage.text));
    // A passage's position in the order depends only on the seed and its text, so a change elsewhere moves no other.
    const keyed = all.map((passage) => ({ ...passage, key: contentKey([String(seed), passage.place, passage.text]) }));
    const drawn = keyed.toSorted((a, b) => (a.key < b.key ? -1 : 1)).slice(0, number(kind, usual[kind]));
    console.log(`\n## ${drawn.length} of ${all.length} ${kind}, seed ${seed}\n`);
    for (const { place, text } of drawn) console.log(`${place}\n    ${text}`);
  }
});
