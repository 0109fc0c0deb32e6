/** Mutations of TypeScript, by its syntax tree. */
import { parseSync, visitorKeys } from "oxc-parser";
import { type Change, callChanges, numberChanges, operatorChanges, swapChanges } from "./mutation.ts";

/** A node of ESTree, with the fields that the rules below read. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

/** Returns the mutations of one kind of node. */
type Rule = (node: Node, source: string) => Change[];

/** Returns all changes within a line. @throws {Error} for a text that does not parse */
export function typescriptChanges(source: string, file: string): Change[] {
  const { program, errors } = parseSync(file, source);
  if (errors[0]) throw new Error(`${file} does not parse: ${errors[0].message}`);
  const changes: Change[] = [];
  const visit = (node: Node) => {
    changes.push(...(rules[node.type]?.(node, source) ?? []));
    for (const key of keysOf(node)) for (const child of [node[key]].flat()) if (isNode(child)) visit(child);
  };
  visit(program as unknown as Node);
  return changes.filter(({ start, end }) => !source.slice(start, end).includes("\n"));
}

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null && "type" in value;

/** Type-only nodes that contain an expression. */
const wrappers = new Set(["TSAsExpression", "TSSatisfiesExpression", "TSNonNullExpression"]);

/** Types have no effect at run time, and tests check only parts of an error's text. */
function keysOf({ type }: Node): readonly string[] {
  if (wrappers.has(type)) return ["expression"];
  if (type === "TSParameterProperty") return ["parameter"];
  if (type.startsWith("TS") || type === "ThrowStatement" || type === "ImportDeclaration") return [];
  return visitorKeys[type] ?? [];
}

const rules: Readonly<Record<string, Rule>> = {
  BinaryExpression: operatorOf,
  LogicalExpression: (node, source) => (node["operator"] === "??" ? defaultOf(node, source) : operatorOf(node, source)),
  AssignmentExpression: operatorOf,
  IfStatement: conditionOf,
  ConditionalExpression: conditionOf,
  UnaryExpression: (node) => {
    if (node["operator"] !== "!" && node["operator"] !== "-") return [];
    return [{ kind: "negation", start: node.start, end: node.start + 1, replacement: "" }];
  },
  Literal: literalOf,
  ExpressionStatement: (node) => (hasEffect(node["expression"] as Node) ? [removed(node)] : []),
  ThrowStatement: (node) => [removed(node)],
  CallExpression: callOf,
  NewExpression: argumentsOf,
};

function operatorOf(node: Node, source: string): Change[] {
  const operator = node["operator"] as string;
  return operatorChanges(operator, source.indexOf(operator, (node["left"] as Node).end));
}

/** `a ?? b` becomes always `b`, or never. */
function defaultOf(node: Node, source: string): Change[] {
  const place = { kind: "default", start: node.start, end: node.end };
  const text = (side: "left" | "right") => source.slice((node[side] as Node).start, (node[side] as Node).end);
  return [
    { ...place, replacement: `(${text("right")})` },
    { ...place, replacement: `(${text("left")})!` },
  ];
}

function conditionOf(node: Node, source: string): Change[] {
  const { start, end } = node["test"] as Node;
  const place = { kind: "condition", start, end };
  return [
    { ...place, replacement: `!(${source.slice(start, end)})` },
    { ...place, replacement: "false" },
  ];
}

/** Names of dtypes, which are easily confused as defaults. */
const dtypes: Readonly<Record<string, string>> = {
  float32: "float64",
  float64: "float32",
  float16: "bfloat16",
  bfloat16: "float16",
  int32: "int64",
  int64: "int32",
};

function literalOf(node: Node, source: string): Change[] {
  const value = node["value"];
  if (typeof value === "number") return numberChanges(source.slice(node.start, node.end), node.start);
  const constant = (replacement: string) => [{ kind: "constant", start: node.start, end: node.end, replacement }];
  if (typeof value === "boolean") return constant(String(!value));
  if (typeof value === "string" && Object.hasOwn(dtypes, value)) return constant(`"${dtypes[value]}"`);
  return [];
}

const hasEffect = ({ type, argument }: Node): boolean =>
  type === "CallExpression" ||
  type === "AssignmentExpression" ||
  (type === "AwaitExpression" && hasEffect(argument as Node));

const removed = ({ start, end }: Node): Change => ({ kind: "removed statement", start, end, replacement: ";" });

/** Calls another method, replaces the method's result by the object, or reorders arguments. */
function callOf(node: Node, source: string): Change[] {
  const callee = node["callee"] as Node;
  if (callee.type === "Identifier") return argumentsOf(node, source);
  const { object, property } = callee as unknown as { object?: Node; property?: Node };
  if (callee.type !== "MemberExpression" || !object || !property) return argumentsOf(node, source);
  const name = source.slice(property.start, property.end);
  const replacement = source.slice(object.start, object.end);
  // a global object such as Math, or a class
  const isNamespace = object.type === "Identifier" && /^[A-Z]/.test(replacement);
  const isSuper = object.type === "Super"; // not an expression on its own
  return [
    ...callChanges(name, property.start),
    ...(isNamespace || isSuper ? [] : [{ kind: "removed call", start: node.start, end: node.end, replacement }]),
    ...argumentsOf(node, source),
  ];
}

function argumentsOf(node: Node, source: string): Change[] {
  const parts = node["arguments"] as readonly Node[];
  if (parts.some(({ type }) => type === "SpreadElement")) return [];
  const callee = node["callee"] as Node;
  const named = callee.type === "MemberExpression" ? (callee["property"] as Node) : callee;
  return swapChanges(
    source,
    source.slice(named.start, named.end),
    parts.map(({ start, end }) => [start, end] as const),
  );
}
