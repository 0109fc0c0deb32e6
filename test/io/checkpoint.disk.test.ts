/** Disks that are full while a process saves: the last good checkpoint remains. */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { io, tensor } from "../../src/index.ts";
import { gaps, writeGaps } from "../ops/run.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";

const root = testFolder("full-disk");
const saver = join(import.meta.dir, "saver.ts");
afterAll(writeGaps);

interface Failed {
  readonly name: string;
  readonly code: string;
  readonly message: string;
  readonly step: number;
}

/** Runs a saver in a shell until a save fails, and returns its error. */
function failedSaver(shell: readonly string[], folder: string, elements: number): { saved: number; failed: Failed } {
  const command = [...shell, ...bunWords, saver, folder, "1", String(elements), "1000"];
  const { stdout, stderr } = Bun.spawnSync(command);
  expect(stderr.toString()).toBe("");
  const lines = stdout.toString().trim().split("\n");
  return { saved: lines.length - 1, failed: JSON.parse(lines.at(-1)!) as Failed };
}

test("exceeding the limit on file sizes is an error, and the folder is unchanged", async () => {
  const folder = root.file("limited");
  await io.saveCheckpoint(folder, { model: { w: tensor([1]) }, step: 0 });
  const { saved, failed } = failedSaver(["bash", "-c", 'ulimit -f 1000; exec "$@"', "bash"], folder, 1_000_000);
  expect([saved, failed.name, failed.code, failed.step]).toEqual([0, "FileError", "fileTooLarge", 0]);
  expect(readdirSync(folder)).toEqual(["checkpoint-00000000.safetensors"]);
});

const namespace = ["unshare", "--user", "--map-root-user", "--mount"];
const hasNamespaces = process.platform === "linux" && Bun.spawnSync([...namespace, "true"]).exitCode === 0;
if (!hasNamespaces) gaps.push("checkpoints on a full disk: this machine lets nobody mount one of a few megabytes");

test.if(hasNamespaces)("a full disk is an error, and the last checkpoint is used", () => {
  const folder = root.file("full");
  mkdirSync(folder);
  const count = `status=$?; ls -A ${folder} | grep -c tmp; exit $status`;
  const mount = `mount -t tmpfs -o size=8m tmpfs ${folder} && "$@"; ${count}`;
  const command = [...namespace, "bash", "-c", mount, "bash", ...bunWords, saver, folder, "1", "300000", "1000"];
  const lines = Bun.spawnSync(command).stdout.toString().trim().split("\n");
  const failed = JSON.parse(lines.at(-2)!) as Failed;
  expect(failed).toMatchObject({ name: "FileError", code: "diskFull", step: lines.length - 2 });
  expect(failed.message).toContain("the disk is full; free some space and try again (ENOSPC); nothing was written");
  expect([lines.length > 3, lines.at(-1)]).toEqual([true, "0"]); // no temporary file is left
});
