/** Temporary folders of a test file. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface TestFolder {
  readonly path: string;
  /** The path of a file in it. */
  file(...names: string[]): string;
  /** The names of its files, including hidden ones. */
  names(): string[];
}

const made: string[] = [];

/** Creates a folder at once, in a test or outside; it is removed after the tests of the file. */
export function testFolder(label: string): TestFolder {
  const path = mkdtempSync(join(tmpdir(), `orchard-${label}-`));
  made.push(path);
  return { path, file: (...names) => join(path, ...names), names: () => readdirSync(path).sort() };
}

/** Removes the folders of the current file. The preload calls it after the file's hooks. */
export function removeTestFolders(): void {
  for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true });
}
