/** Checks and cleanup after a test file, so that the next one in the same process starts clean. */
import { isMetalOpen, metalContext } from "../../src/backend/metal/context.ts";
import { getBackend, isStrict, setBackend, setStrict } from "../../src/backend/policy.ts";
import { restartSeeds } from "../../src/random/generator.ts";
import { restoreVariables } from "./environment.ts";
import { removeTestFolders } from "./folder.ts";

let suite: { readonly variables: Readonly<Record<string, string | undefined>>; readonly folder: string } | undefined;
const [backend, strict] = [getBackend(), isStrict()];

/** Records the current environment as the suite's. */
export function rememberSuite(): void {
  suite = { variables: { ...process.env }, folder: process.cwd() };
}

/**
 * Removes the checker's findings in this file, which the next file would otherwise report as its mistakes, and restores
 * its setting: with the checker on, kernels take up to four times as long.
 */
export function takeFindings(): readonly string[] {
  if (!isMetalOpen()) return [];
  const context = metalContext();
  try {
    context.wait();
  } catch {
    // Operations that a test made fail on purpose have no findings to wait for.
  }
  const { findings } = context.report({ clear: true });
  if (context.isSoftware) context.configure("check", process.env["ORCHARD_METAL_CHECK"] ?? "0");
  return findings.map(({ kind, kernel }) => `a finding of the checker, ${kind} in ${kernel}`);
}

/**
 * Removes the file's temporary folders, clears its findings, and restores the suite's environment, working folder,
 * default backend and random numbers. A file may leave its choice of a backend. It must restore environment variables
 * and the working folder itself, so that tests do not depend on earlier files. The error names a file that did not
 * restore them.
 */
export function restoreSuite(file: string): void {
  if (suite === undefined) throw new Error("expected the preload to call rememberSuite()");
  removeTestFolders();
  setBackend(backend);
  setStrict(strict);
  const names = restoreVariables(suite.variables);
  restartSeeds();
  const findings = takeFindings();
  const folder = process.cwd();
  process.chdir(suite.folder);
  const left = [
    ...(names.length > 0 ? [`the environment variables ${names.join(", ")} (see test/support/environment.ts)`] : []),
    ...findings,
    ...(folder === suite.folder ? [] : [`the working folder ${folder}`]),
  ];
  if (left.length > 0) throw new Error(`${file} changes ${left.join(" and ")} for the next file; restore it`);
}
