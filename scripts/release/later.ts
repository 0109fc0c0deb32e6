/**
 * Lets the package's modules declare parameters of functions and fields of native calls on first use. An import would
 * otherwise make thousands of small objects for functions that few programs call. The sources stay plain objects.
 */
import { join } from "node:path";
import { parseSync } from "oxc-parser";

/** The functions that accept a function instead of the object, with the position of the argument. */
const accepting: Readonly<Record<string, number>> = { parameters: 1, unlisted: 1, cpuCall: 1 };
const mentioned = new RegExp(`\\b(?:${Object.keys(accepting).join("|")})\\(`);

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly body?: unknown;
  readonly callee?: Node & { readonly name?: string };
  readonly arguments?: readonly (Node & { readonly properties?: readonly unknown[] })[];
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
 * Wraps the object literals in calls such as `parameters("relu", { x: operand(aTensor) })` at the top level of a module
 * in functions: `parameters("relu", () => ({ x: operand(aTensor) }))`.
 */
export function declaringLater(text: string, name: string): string {
  const objects = objectsIn(parseSync(name, text).program);
  return objects.reduceRight(
    (whole, { start, end }) => `${whole.slice(0, start)}() => (${whole.slice(start, end)})${whole.slice(end)}`,
    text,
  );
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
