/** What a file of tests must leave to the next one, which runs in the same process. */
import { isMetalOpen, metalContext } from "../../src/backend/metal/context.ts";
import { getBackend, isStrict, setBackend, setStrict } from "../../src/backend/policy.ts";
import { restoreVariables } from "./environment.ts";
import { removeTestFolders } from "./folder.ts";

let suite: { readonly variables: Readonly<Record<string, string | undefined>>; readonly folder: string } | undefined;
const [backend, strict] = [getBackend(), isStrict()];

/** Takes the environment of now for that of the suite. */
export function rememberSuite(): void {
  suite = { variables: { ...process.env }, folder: process.cwd() };
}

/** Takes the checker's findings that the file left: the next file would report them as its mistakes. */
export function takeFindings(): readonly string[] {
  if (!isMetalOpen()) return [];
  const context = metalContext();
  try {
    context.wait();
  } catch {
    // Operations that a test made fail on purpose have no findings to wait for.
  }
  const { findings } = context.report({ clear: true });
  return findings.map(({ kind, kernel }) => `a finding of the checker, ${kind} in ${kernel}`);
}

/**
 * Removes the file's temporary folders, takes its findings, and restores the suite's environment and working folder
 * and the backend that is tried first. A file may choose a backend and leave it chosen; environment variables and the
 * folder it has to restore itself, so that nobody has to know which file ran before: the error names the file that did
 * not.
 */
export function restoreSuite(file: string): void {
  if (suite === undefined) throw new Error("expected the preload to call rememberSuite()");
  removeTestFolders();
  const findings = takeFindings();
  setBackend(backend);
  setStrict(strict);
  const names = restoreVariables(suite.variables);
  const folder = process.cwd();
  process.chdir(suite.folder);
  const left = [
    ...(names.length > 0 ? [`the environment variables ${names.join(", ")} (see test/support/environment.ts)`] : []),
    ...findings,
    ...(folder === suite.folder ? [] : [`the working folder ${folder}`]),
  ];
  if (left.length > 0)
    throw new Error(`${file} leaves to the next file ${left.join(" and ")}: restore what it changes`);
}
