/** JSON that files hold, checked further than `JSON.parse` does. */

/** A value that JSON has. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export const isJsonObject = (value: Json | undefined): value is { readonly [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * The first key that an object has twice, in a text that `JSON.parse` takes; undefined where there is none. `JSON.parse` keeps the last one,
 * other parsers the first: a file that has one means two things.
 */
export function duplicateKey(text: string): string | undefined {
  const open: Set<string>[] = [];
  for (const [token, colon] of text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\]]/g)) {
    if (token === "{" || token === "[") open.push(new Set());
    else if (token === "}" || token === "]") open.pop();
    else if (colon !== undefined) {
      const key = JSON.parse(token.slice(0, -colon.length)) as string;
      const keys = open.at(-1)!;
      if (keys.has(key)) return key;
      keys.add(key);
    }
  }
  return undefined;
}
