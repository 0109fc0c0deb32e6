import { expect, test } from "bun:test";
import { join } from "node:path";
import { testFolder } from "../support/folder.ts";

const folder = testFolder("timeout");
const preload = join(import.meta.dir, "..", "support", "preload.ts");
const slow = 'import { test } from "bun:test"; test("slow", () => Bun.sleep(500));';

test("every file of a run has the suite's default timeout, not only the first", async () => {
  const names = ["a.test.ts", "b.test.ts", "c.test.ts"];
  for (const name of names) await Bun.write(folder.file(name), slow);
  const command = [
    process.execPath,
    "test",
    `--preload=${preload}`,
    "--timeout=20",
    ...names.map((name) => `./${name}`),
  ];
  const { exitCode, stderr } = Bun.spawnSync(command, { cwd: folder.path, stderr: "pipe" });
  expect([exitCode, stderr.toString()]).toEqual([0, expect.stringContaining(" 3 pass\n 0 fail")]);
});
