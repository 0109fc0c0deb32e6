/** A temporary folder of a test file. */
import { afterAll } from "bun:test";
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

/** Made at once, removed after the tests of the file. */
export function testFolder(label: string): TestFolder {
  const path = mkdtempSync(join(tmpdir(), `orchard-${label}-`));
  afterAll(() => rmSync(path, { recursive: true, force: true }));
  return { path, file: (...names) => join(path, ...names), names: () => readdirSync(path).sort() };
}
