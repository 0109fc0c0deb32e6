/** The dependencies that the first command of a clone installs. */
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { installDependencies } from "../../scripts/dependencies.ts";
import { Failure } from "../../scripts/failure.ts";
import { type TestFolder, testFolder } from "../support/folder.ts";

/** A project with a dependency in a separate folder, and the lock file that Bun writes for it. */
function writeProject(folder: TestFolder, dependency: string): void {
  mkdirSync(folder.file(dependency), { recursive: true });
  writeFileSync(folder.file(dependency, "package.json"), JSON.stringify({ name: dependency, version: "1.0.0" }));
  const dependencies = { [dependency]: `file:./${dependency}` };
  writeFileSync(folder.file("package.json"), JSON.stringify({ name: "project", dependencies }));
  const { exitCode } = Bun.spawnSync([process.execPath, "install", "--lockfile-only"], { cwd: folder.path });
  expect(exitCode).toBe(0);
}

test("dependencies are installed if the lock file is new or changed; a command then starts a new process", async () => {
  const folder = testFolder("dependencies");
  writeProject(folder, "first");
  expect(await installDependencies(folder.path)).toBe(true);
  expect(folder.names()).toContain("node_modules");
  expect(await installDependencies(folder.path)).toBe(false);
  writeProject(folder, "second");
  expect(await installDependencies(folder.path)).toBe(true);
});

test("dependencies that can't be installed are a failure with the installation's output", async () => {
  const folder = testFolder("no dependencies");
  writeFileSync(folder.file("package.json"), "{");
  writeFileSync(folder.file("bun.lock"), "{");
  const problem = await installDependencies(folder.path).catch((error: unknown) => error);
  expect(problem).toBeInstanceOf(Failure);
  expect((problem as Failure).message).toContain("The dependencies can't be installed (see above)");
});
