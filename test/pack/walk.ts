/**
 * A program for the project that has the package: runs a line for every name that the package exports, and prints the
 * outcomes as JSON. `bundle_walk.ts` bundles it, with the package in place of the sources.
 *
 *     bun walk.js <folder for files> <the compiler of kernels: "metal" or "none">
 */
import { join } from "node:path";
import * as orchard from "../../src/index.ts";
import { calls, enterFolder, leaveFolder } from "../arguments/upper.ts";
import { linesIn, ofMetal } from "./lines.ts";

/** An argument of a valid call of an operation, as JSON. */
export type Written =
  | { readonly tensor: unknown; readonly dtype: orchard.DType }
  | { readonly list: readonly Written[] }
  | { readonly options: Readonly<Record<string, Written>> }
  | { readonly floats: readonly number[] }
  | { readonly bigint: string }
  | { readonly plain: number | string | boolean | null };

/** The output of the program that calls every exported name. */
export interface Walked {
  /** Names whose line ran. */
  readonly called: readonly string[];
  /** `name: the error of its line`, or `name` with a note that it has no line. */
  readonly problems: readonly string[];
  /** Paths of all loaded modules. */
  readonly loaded: readonly string[];
}

function revived(value: Written): unknown {
  if ("tensor" in value) return orchard.tensor(value.tensor as number[], { dtype: value.dtype });
  if ("list" in value) return value.list.map(revived);
  if ("options" in value)
    return Object.fromEntries(Object.entries(value.options).map(([name, own]) => [name, revived(own)]));
  if ("floats" in value) return new Float32Array(value.floats);
  return "bigint" in value ? BigInt(value.bigint) : value.plain;
}

type Line = () => unknown;

const [scratch, device] = process.argv.slice(2) as [string, "metal" | "none"];
const own = linesIn(scratch);
const operations = (await Bun.file(join(import.meta.dir, "operations.json")).json()) as Record<string, Written[]>;

/** Every exported name; members of a namespace follow its name, as in `nn.Linear`. */
function* exported(values: object, room = ""): Generator<readonly [name: string, value: unknown]> {
  for (const [key, value] of Object.entries(values)) {
    const name = `${room}${key}`;
    const isRoom = typeof value === "object" && value !== null && !Array.isArray(value) && !(name in own);
    if (isRoom) yield* exported(value as object, `${name}.`);
    else yield [name, value];
  }
}

/** The names under which tables may list a call: `data.transforms.pad`, `transforms.pad`, `pad`. */
const namesOf = (name: string): string[] => name.split(".").map((_, at, parts) => parts.slice(at).join("."));

function lineOf(name: string, value: unknown): Line | undefined {
  if (name in own) return own[name];
  if (name in ofMetal) return device === "metal" ? ofMetal[name] : () => needsDevice(ofMetal[name]);
  if (typeof value !== "function") return undefined;
  if (value.prototype instanceof Error) return () => construct(value as ErrorClass, name);
  if (name in operations) return () => value(...operations[name].map(revived));
  const found = namesOf(name).find((one) => one in calls);
  return found === undefined ? undefined : () => calls[found][0](...(calls[found][1]() as never[]));
}

type ErrorClass = new (operation: string, code: string, message: string) => Error;

function construct(Class: ErrorClass, name: string): void {
  const error = new Class("walk", "code", "a message");
  if (!(error instanceof orchard.OrchardError) || error.name !== name.split(".").at(-1))
    throw new Error(`it makes ${error.name}`);
}

async function needsDevice(line: Line): Promise<void> {
  const outcome = await Promise.try(line).catch((error: unknown) => error);
  if (!(outcome instanceof orchard.BackendError)) throw new Error(`without a device: ${String(outcome)}`);
}

const called: string[] = [];
const problems: string[] = [];
enterFolder();
for (const [name, value] of exported(orchard)) {
  const line = lineOf(name, value);
  try {
    if (!line) throw new Error("has no line; add one to test/pack/lines.ts");
    await line();
    called.push(name);
  } catch (error) {
    problems.push(`${name}: ${String(error)}`);
  }
}
leaveFolder();
console.log(JSON.stringify({ called, problems, loaded: Object.keys(require.cache) } satisfies Walked));
