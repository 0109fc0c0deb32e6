/** Short descriptions of arbitrary values for messages. */

/** The length at which texts and lists are cut. */
const MOST = 60;

/** Describes a value, such as `"max"` (with quotes), `5n`, `[1, 2]`, `float32[2, 3]` or `a Map`. Never throws. */
export function describeValue(value: unknown): string {
  try {
    return described(value, 0);
  } catch {
    return "an object that can't be printed"; // a revoked proxy, or a getter that throws
  }
}

function described(value: unknown, depth: number): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value.length > MOST ? `${value.slice(0, MOST)}…` : value);
    case "bigint":
      return value.toString().length > MOST ? "a large bigint" : `${value}n`;
    case "function":
      return value.name ? `the function ${value.name}` : "a function";
    case "object":
      return value === null ? "null" : describedObject(value, depth);
    default:
      return Object.is(value, -0) ? "-0" : String(value);
  }
}

function describedObject(value: object, depth: number): string {
  if (Array.isArray(value)) return describedList(value, depth);
  const { describe } = value as { describe?: unknown };
  // tensors define this method
  const described: unknown = typeof describe === "function" ? describe.call(value) : undefined;
  if (typeof described === "string") return described;
  const name: unknown = Object.getPrototypeOf(value)?.constructor?.name;
  if (ArrayBuffer.isView(value) && "length" in value) return `a ${String(name)} of ${String(value.length)}`;
  if (name !== "Object" && typeof name === "string" && name !== "") return `a ${name}`;
  const keys = Object.keys(value);
  return keys.length === 0 ? "an empty object" : `an object with ${cut(keys.join(", "))}`;
}

function describedList(values: readonly unknown[], depth: number): string {
  if (depth > 1) return `an array of ${values.length}`;
  const shown = Array.from({ length: Math.min(values.length, 9) }, (_, at) =>
    at in values ? described(values[at], depth + 1) : "a hole",
  );
  return `[${cut(shown.join(", "), 2 * MOST)}${values.length > 9 ? `, … ${values.length} in total` : ""}]`;
}

const cut = (text: string, most = MOST): string => (text.length > most ? `${text.slice(0, most)}…` : text);
