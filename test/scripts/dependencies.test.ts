/** The dependencies that the first command of a clone installs. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { installDependencies } from "../../scripts/dependencies.ts";
import { Failure } from "../../scripts/failure.ts";
import { testFolder } from "../support/folder.ts";

const lockOf = (name: string): string =>
  JSON.stringify({ lockfileVersion: 1, configVersion: 1, workspaces: { "": { name } }, packages: {} });

test("are installed once, and again when the lock file changes; a command then starts in a new process", async () => {
  const folder = testFolder("dependencies");
  const write = (name: string): void => {
    writeFileSync(folder.file("package.json"), JSON.stringify({ name }));
    writeFileSync(folder.file("bun.lock"), lockOf(name));
  };
  write("first");
  expect(await installDependencies(folder.path)).toBe(true);
  expect(await installDependencies(folder.path)).toBe(false);
  write("second");
  expect(await installDependencies(folder.path)).toBe(true);
});

test("that can't be installed are a failure with what the installation printed", async () => {
  const folder = testFolder("no dependencies");
  writeFileSync(folder.file("package.json"), "{");
  writeFileSync(folder.file("bun.lock"), lockOf("broken"));
  const problem = await installDependencies(folder.path).catch((error: unknown) => error);
  expect(problem).toBeInstanceOf(Failure);
  expect((problem as Failure).message).toContain("The dependencies can't be installed (see above)");
});
