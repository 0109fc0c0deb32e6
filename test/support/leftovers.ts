/** Checks and cleanup after a test file, so that the next one in the same process starts clean. */
import { mock } from "bun:test";
import { isMetalOpen, metalContext } from "../../src/backend/metal/context.ts";
import { forgetFinished } from "../../src/backend/metal/journal.ts";
import { getBackend, isStrict, setBackend, setStrict } from "../../src/backend/policy.ts";
import { restartSeeds } from "../../src/random/generator.ts";
import { restoreVariables } from "./environment.ts";
import { removeTestFolders } from "./folder.ts";

/** What test files share, and a file must leave as it was. */
interface Suite {
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly folder: string;
  readonly functions: readonly unknown[];
}

let suite: Suite | undefined;
const [backend, strict] = [getBackend(), isStrict()];

/** Functions that tests replace. A spy that is left would hide and record what later files print. */
const replaceable = {
  console: [console, ["debug", "error", "info", "log", "warn"]],
  Date: [Date, ["now"]],
  globalThis: [globalThis, ["clearTimeout", "fetch", "queueMicrotask", "setInterval", "setTimeout"]],
  Math: [Math, ["random"]],
  performance: [performance, ["now"]],
  process: [process, ["exit", "kill", "memoryUsage"]],
  "process.stderr": [process.stderr, ["write"]],
  "process.stdout": [process.stdout, ["write"]],
} as const satisfies Record<string, readonly [object, readonly string[]]>;

interface Replaceable {
  readonly name: string;
  readonly own: object;
  readonly key: string;
  readonly value: unknown;
}

const functions = (): Replaceable[] =>
  Object.entries(replaceable).flatMap(([label, [own, keys]]) =>
    keys.map((key) => ({ name: `${label}.${key}`, own, key, value: Reflect.get(own, key) })),
  );

/** Records the current environment as the suite's. */
export function rememberSuite(): void {
  suite = { variables: { ...process.env }, folder: process.cwd(), functions: functions().map(({ value }) => value) };
}

/** Restores functions that were replaced, and returns their names. */
function restoreFunctions({ functions: before }: Suite): string[] {
  const replaced = functions().filter(({ value }, at) => value !== before[at]);
  mock.restore(); // also spies on other objects
  for (const [at, { own, key, value }] of functions().entries())
    if (value !== before[at]) Reflect.set(own, key, before[at]);
  return replaced.map(({ name }) => name);
}

/**
 * Removes the checker's findings in this file, which the next file would otherwise report as its mistakes, and restores
 * its setting: with the checker on, kernels take up to four times as long.
 */
export function takeFindings(): readonly string[] {
  if (!isMetalOpen()) return [];
  const context = metalContext();
  try {
    forgetFinished(context, { wait: true }); // the next file must not report failures of this one's work
  } catch {
    // Operations that a test made fail on purpose have no findings to wait for.
  }
  const { findings } = context.report({ clear: true });
  if (context.isSoftware) context.configure("check", process.env["ORCHARD_METAL_CHECK"] ?? "0");
  return findings.map(({ kind, kernel }) => `a finding of the checker, ${kind} in ${kernel}`);
}

/**
 * Removes the file's temporary folders, clears its findings, and restores the suite's environment, working folder,
 * functions, default backend and random numbers. A file may leave its choice of a backend. It must restore environment
 * variables, functions and the working folder itself, so that tests do not depend on earlier files. The error names a
 * file that did not restore them.
 */
export function restoreSuite(file: string): void {
  if (suite === undefined) throw new Error("expected the preload to call rememberSuite()");
  removeTestFolders();
  setBackend(backend);
  setStrict(strict);
  const names = restoreVariables(suite.variables);
  const replaced = restoreFunctions(suite);
  restartSeeds();
  const findings = takeFindings();
  const folder = process.cwd();
  process.chdir(suite.folder);
  const left = [
    ...(names.length > 0 ? [`the environment variables ${names.join(", ")} (see test/support/environment.ts)`] : []),
    ...(replaced.length > 0 ? [`the functions ${replaced.join(", ")} (mockRestore() in afterAll)`] : []),
    ...findings,
    ...(folder === suite.folder ? [] : [`the working folder ${folder}`]),
  ];
  if (left.length > 0) throw new Error(`${file} changes ${left.join(" and ")} for the next file; restore it`);
}
