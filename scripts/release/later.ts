/**
 * Lets the package's modules declare parameters of functions and fields of native calls on first use. An import would
 * otherwise make thousands of small objects for functions that few programs call, and JavaScriptCore would compile the
 * functions that make them. The sources stay plain.
 */
import { join } from "node:path";
import { parseSync } from "oxc-parser";

/** The functions that accept a function instead of the object, with the position of the argument. */
const accepting: Readonly<Record<string, number>> = { parameters: 1, unlisted: 1, cpuCall: 1 };
/** The functions that return a reader of arguments. */
const reading = /^(?:parameters|unlisted|\w+Parameters)$/;
const mentioned = new RegExp(`\\b(?:${Object.keys(accepting).join("|")}|\\w+Parameters)\\(`);

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly body?: unknown;
  readonly callee?: Node & { readonly name?: string };
  readonly arguments?: readonly (Node & { readonly properties?: readonly unknown[] })[];
  readonly declaration?: Node;
  readonly declarations?: readonly { readonly id: Node & { readonly name?: string }; readonly init?: Node }[];
}

/** A text to write over a range. */
interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** @param folder has the package's `src`, compiled */
export async function declareLater(folder: string): Promise<void> {
  const source = join(folder, "src");
  for (const module of new Bun.Glob("**/*.js").scanSync({ cwd: source })) {
    const path = join(source, module);
    const text = await Bun.file(path).text();
    if (mentioned.test(text)) await Bun.write(path, declaringLater(text, module));
  }
}

/**
 * Makes the readers of a module on first use: `const read = parameters("relu", { x: operand(aTensor) });` becomes
 * `let read$; const read = ($values) => (read$ ??= parameters("relu", { x: operand(aTensor) }))($values);`. Other
 * object literals at the top level, such as those of `cpuCall`, become functions.
 */
export function declaringLater(text: string, name: string): string {
  const { program } = parseSync(name, text);
  const readers = (program.body as unknown as readonly Node[]).flatMap((statement) => readerIn(statement, text));
  const isRead = ({ start, end }: Node) => readers.some((reader) => reader.start <= start && end <= reader.end);
  const objects = objectsIn(program)
    .filter((object) => !isRead(object))
    .map(({ start, end }): Edit => ({ start, end, text: `() => (${text.slice(start, end)})` }));
  return [...readers, ...objects]
    .sort((a, b) => b.start - a.start)
    .reduce((whole, { start, end, text: written }) => whole.slice(0, start) + written + whole.slice(end), text);
}

/** Returns the edit of a statement that declares one reader. */
function readerIn(statement: Node, text: string): Edit[] {
  const { declarations = [] } = statement.declaration ?? statement;
  const [{ id, init } = {}] = declarations;
  if (declarations.length !== 1 || !id?.name || !init || !reading.test(init.callee?.name ?? "")) return [];
  const { start, end } = statement;
  const reader = `($values) => (${id.name}$ ??= ${text.slice(init.start, init.end)})($values)`;
  return [
    { start, end, text: `let ${id.name}$;\n${text.slice(start, init.start)}${reader}${text.slice(init.end, end)}` },
  ];
}

/** Returns the object literals in the order of the text, except those in functions. */
function objectsIn(value: unknown): Node[] {
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(objectsIn);
  const node = value as Node;
  if (/Function/.test(node.type) || node.type === "ClassBody") return [];
  const object = node.arguments?.[accepting[node.callee?.name ?? ""] ?? -1];
  if (object?.type === "ObjectExpression" && object.properties?.length) return [object];
  return Object.values(node).flatMap(objectsIn);
}
