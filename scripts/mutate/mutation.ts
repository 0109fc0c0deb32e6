/** A mutation, and the replacements that all languages share. */

/** A change within one line of a file. */
export interface Mutation {
  /** Path from the root folder. */
  readonly file: string;
  /** The line, counted from 1. */
  readonly line: number;
  /** The kind of mistake, such as `boundary`. */
  readonly kind: string;
  /** The replaced characters, as offsets in the file's text. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

/** A mutation before its file and line are known. */
export type Change = Pick<Mutation, "kind" | "start" | "end" | "replacement">;

export const applied = (source: string, { start, end, replacement }: Change): string =>
  source.slice(0, start) + replacement + source.slice(end);

/** The changed line without its indentation, before and after. */
export function describeChange(source: string, change: Change): string {
  const from = source.lastIndexOf("\n", change.start - 1) + 1;
  const to = (source.indexOf("\n", change.end) + source.length + 1) % (source.length + 1);
  const after = source.slice(from, change.start) + change.replacement + source.slice(change.end, to);
  return `${source.slice(from, to).trim()}\n      → ${after.trim() || "(nothing)"}`;
}

/** Binary operators and their replacements. */
const operators: Readonly<Record<string, readonly (readonly [kind: string, operator: string])[]>> = {
  "+": [["arithmetic", "-"]],
  "-": [["arithmetic", "+"]],
  "*": [["arithmetic", "/"]],
  "/": [["arithmetic", "*"]],
  "%": [["arithmetic", "*"]],
  "**": [["arithmetic", "*"]],
  "<<": [["arithmetic", ">>"]],
  ">>": [["arithmetic", "<<"]],
  ">>>": [["arithmetic", "<<"]],
  "&": [["arithmetic", "|"]],
  "|": [["arithmetic", "&"]],
  "^": [["arithmetic", "&"]],
  "+=": [["arithmetic", "-="]],
  "-=": [["arithmetic", "+="]],
  "*=": [["arithmetic", "/="]],
  "/=": [["arithmetic", "*="]],
  "|=": [["arithmetic", "&="]],
  "&=": [["arithmetic", "|="]],
  "<": [
    ["boundary", "<="],
    ["comparison", ">="],
  ],
  "<=": [
    ["boundary", "<"],
    ["comparison", ">"],
  ],
  ">": [
    ["boundary", ">="],
    ["comparison", "<="],
  ],
  ">=": [
    ["boundary", ">"],
    ["comparison", "<"],
  ],
  "===": [["comparison", "!=="]],
  "!==": [["comparison", "==="]],
  "==": [["comparison", "!="]],
  "!=": [["comparison", "=="]],
  "&&": [["condition", "||"]],
  "||": [["condition", "&&"]],
};

/** Replaces the operator that begins at `start`. */
export const operatorChanges = (operator: string, start: number): Change[] =>
  (operators[operator] ?? []).map(([kind, replacement]) => ({
    kind,
    start,
    end: start + operator.length,
    replacement,
  }));

/** Functions and methods that are easily confused. */
const namePairs = [
  ["min", "max"],
  ["fmin", "fmax"],
  ["floor", "ceil"],
  ["some", "every"],
  ["any", "all"],
  ["sin", "cos"],

  ["startsWith", "endsWith"],
  ["indexOf", "lastIndexOf"],
  ["push", "unshift"],
  ["find", "findLast"],
] as const;

const otherName = new Map<string, string>(
  namePairs.flatMap(([left, right]) => [
    [left, right],
    [right, left],
  ]),
);

/** Calls a different function than the one named at `start`. */
export function callChanges(name: string, start: number): Change[] {
  const replacement = otherName.get(name);
  return replacement === undefined ? [] : [{ kind: "call", start, end: start + name.length, replacement }];
}

/** Changes a decimal number by one: up, and down unless it would become negative. */
export function numberChanges(text: string, start: number): Change[] {
  const [, digits, suffix] = /^(\d[\d_']*(?:\.\d*)?|\.\d+)([a-zA-Z]*)$/.exec(text) ?? [];
  if (digits === undefined || /^0\d|^0[xXbBoO]/.test(text)) return [];
  const value = Number(digits.replaceAll(/[_']/g, ""));
  const written = (changed: number) => `${digits.includes(".") ? floatText(changed) : changed}${suffix}`;
  const values = value >= 1 ? [value + 1, value - 1] : [value + 1];
  return values.map((changed) => ({
    kind: "constant",
    start,
    end: start + text.length,
    replacement: written(changed),
  }));
}

const floatText = (value: number): string => (Number.isInteger(value) ? `${value}.0` : String(value));

/** Functions whose first two arguments may be in either order. */
const commutative: ReadonlySet<string> = new Set([
  "min",
  "max",
  "fmin",
  "fmax",
  "minimum",
  "maximum",
  "hypot",
  "imul",
  "fma",
  "fused",
  "add",
  "plus",
  "mul",
  "times",
  "eq",
  "ne",
  "logicalAnd",
  "logicalOr",
  "logicalXor",
  "bitwiseAnd",
  "bitwiseOr",
  "bitwiseXor",
]);

/** Each pair of neighboring arguments swapped, if a function of this name distinguishes them. */
export function swapChanges(
  source: string,
  name: string,
  parts: readonly (readonly [start: number, end: number])[],
): Change[] {
  return parts.slice(1).flatMap(([start, end], at) => {
    if (at === 0 && commutative.has(name)) return [];
    const [before, behind] = parts[at];
    const [first, second] = [source.slice(before, behind), source.slice(start, end)];
    if (first === second) return [];
    return [
      { kind: "swapped arguments", start: before, end, replacement: second + source.slice(behind, start) + first },
    ];
  });
}
