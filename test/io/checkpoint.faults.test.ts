/** Processes that are killed while they save: the last good checkpoint remains. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { io, tensor } from "../../src/index.ts";
import { Random } from "../ops/samples.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";
import { repeats } from "../support/repeats.ts";

const root = testFolder("kill");
const saver = join(import.meta.dir, "saver.ts");
const leftovers = (folder: string) => readdirSync(folder).filter((name) => name.endsWith(".tmp"));

const KILLS = repeats({ usual: 12, all: 24 });
const LONGEST_MILLISECONDS = 60;

/**
 * Starts a saver, kills it some time after its first checkpoint, and returns the last step that it reported as saved.
 */
async function killedSaver(folder: string, first: number, milliseconds: number): Promise<number> {
  const child = Bun.spawn([...bunWords, saver, folder, String(first), "400000", "2"], {
    stdout: "pipe",
    stderr: "inherit",
  });
  let said = "";
  let isAwaited = false;
  for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) {
    said += part;
    if (!isAwaited) setTimeout(() => child.kill("SIGKILL"), milliseconds);
    isAwaited = true;
  }
  await child.exited;
  expect(child.signalCode).toBe("SIGKILL");
  return Number(said.trim().split("\n").at(-1));
}

test(`after each of ${KILLS} kills at random moments the last checkpoint is valid`, async () => {
  const folder = root.file("killed");
  const random = new Random(1);
  let [saved, interrupted] = [0, 0];
  for (let kill = 0; kill < KILLS; kill++) {
    const said = await killedSaver(folder, saved + 1, random.next() * LONGEST_MILLISECONDS);
    interrupted += leftovers(folder).length;
    expect(leftovers(folder).length).toBeLessThan(2);
    const { step, model, rejected, extra } = await io.loadCheckpoint(folder);
    expect(rejected).toEqual([]);
    expect([said, said + 1]).toContain(step); // the process may be killed after the rename and before its report
    expect(extra).toBe(step);
    for (const each of Object.values(model)) expect([...new Set<number | bigint>(each.dataSync())]).toEqual([step]);
    saved = step;
  }
  expect(interrupted).toBeGreaterThan(0); // some processes were killed in the middle of a file
  await io.saveCheckpoint(folder, { model: { w: tensor([1]) }, step: saved + 1 });
  expect(leftovers(folder)).toEqual([]);
});
