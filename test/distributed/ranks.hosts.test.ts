/** Worlds in which a rank ends, stops or does not join, and no launcher ends the others. */
import { describe, expect, test } from "bun:test";
import { isAlive } from "../../src/io/atomic.ts";
import { testFolder } from "../support/folder.ts";
import { disturbed, lostBy, plain, untilEnded, type World } from "./disturb.ts";
import { type Installation, type Launched, localCommand, mpich, openMpi } from "./launch.ts";

const { path: folder } = testFolder("faults");
const of = (installation: Installation, ranks: number, options: readonly string[] = []) => {
  return (words: readonly string[]) => localCommand(installation, ranks, words, options);
};

describe.skipIf(mpich.missing !== undefined)("ranks of MPICH end with their launcher", () => {
  test("ranks end when the launcher gets Ctrl-C", async () => {
    const { world } = await disturbed(folder, 2, of(mpich, 2), (_, launcher) => launcher.kill("SIGINT"));
    await untilEnded(() => world.pids.filter(isAlive));
  });
});

describe.skipIf(openMpi.missing !== undefined || process.platform !== "linux")("ranks of Open MPI", () => {
  test("the error names the killed rank, if the launcher does not end all ranks", async () => {
    const kill = ({ pids }: World, launcher: Launched) => {
      launcher.kill("SIGSTOP");
      process.kill(pids[1], "SIGKILL");
    };
    const { learned, world } = await disturbed(folder, 3, of(openMpi, 3), kill, { learners: [0, 2] });
    const ended = lostBy(1, world, "ended");
    expect(learned.map(plain)).toEqual([ended, undefined, ended]);
  });

  test("the error names the stopped rank", async () => {
    const { learned, world } = await disturbed(folder, 2, of(openMpi, 2), ({ pids }) =>
      process.kill(pids[1], "SIGSTOP"),
    );
    expect(plain(learned[0])).toEqual(lostBy(1, world, "has been stopped for 1 s")); // rank 0 wakes when rank 1 ends
  });

  test("ranks end with `timeout` when a rank does not join the others in time", async () => {
    const variables = { FAULT_TIMEOUT: "3", FAULT_AWAY: "1" };
    const { learned, status } = await disturbed(folder, 3, of(openMpi, 3), () => undefined, { variables });
    const message = "the other ranks did not join within 3 s; init({ timeout }) allows more";
    const expected = { code: "timeout", message, ranks: [] };
    const [first, away, last] = learned.map(plain);
    expect(away).toBeUndefined();
    expect([first, last].filter((each) => each !== undefined)).toContainEqual(expected); // one of them may be killed
    expect(status).not.toBe(0);
  });

  test.each(["SIGINT", "SIGTERM"] as const)("ranks end when the launcher gets %s", async (signal) => {
    const { world, status } = await disturbed(folder, 2, of(openMpi, 2), (_, launcher) => launcher.kill(signal));
    expect(status).not.toBe(0);
    await untilEnded(() => world.pids.filter(isAlive));
  });

  test("ranks end when one rank gets Ctrl-C, and name it", async () => {
    const interrupt = ({ pids }: World) => process.kill(pids[1], "SIGINT");
    const { learned, text, status, world } = await disturbed(folder, 2, of(openMpi, 2), interrupt);
    expect(status).not.toBe(0);
    // Whichever notices first names the rank: the launcher, or the other rank, which then ends the world.
    if (/process rank 1 with PID \d+ on node \S+ exited on signal 2/.test(text)) return;
    expect(plain(learned[0])).toEqual(lostBy(1, world, "ended"));
  });
});
