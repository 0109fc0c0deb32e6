/** Two hosts: ranks that MPI connects over TCP, and their behavior when a host or the connection is lost. */
import { afterAll, describe, expect, test } from "bun:test";
import { testFolder } from "../support/folder.ts";
import { disturbed, lostBy, plain, untilEnded, type World } from "./disturb.ts";
import { expectedOf } from "./expected.ts";
import { Hosts } from "./hosts.ts";
import { openMpi, programWords, resultsIn, saidBy, spawn, standardAbi } from "./launch.ts";

const { path: folder } = testFolder("hosts");
const hosts = new Hosts(folder);
afterAll(() => hosts[Symbol.dispose]());
if (hosts.missing !== undefined) console.warn(`skipped: ${hosts.missing}`);

for (const installation of [openMpi, standardAbi])
  describe.skipIf((installation.missing ?? hosts.missing) !== undefined)(
    `calls between two hosts, ${installation.name}`,
    () => {
      const command = (words: readonly string[]) => hosts.command(installation, words);
      const fault = (disturb: (world: World) => void, survivors?: readonly number[]) =>
        disturbed(folder, 2, command, disturb, {
          survivors,
          afterwards: async () => {
            await untilEnded(() => hosts.pids(hosts.first));
            hosts.fail(hosts.second); // a launcher's daemon may wait there forever
            hosts.mend();
          },
        });
      const names = [hosts.first.namespace, hosts.second.namespace];

      test.skipIf(installation !== openMpi)("every call on every dtype equals the formula", async () => {
        const { text, status } = await saidBy(spawn(command(programWords("collectives.ts", folder))));
        expect({ text, status }).toEqual({ text: "", status: 0 });
        for (const [rank, results] of resultsIn(folder, 2).entries()) expect(results).toEqual(expectedOf(2, rank));
      });

      test("if the cable is disconnected, each side ends with an error that names the other", async () => {
        const { learned, world } = await fault(() => hosts.cut(), [0, 1]);
        expect(world.hosts).toEqual(names);
        const [first, second] = learned.map(plain);
        expect(first).toEqual(lostBy(1, world, "has been silent for 1 s"));
        if (second !== undefined) expect(second).toEqual(lostBy(0, world, "has been silent for 1 s"));
      });

      test("if a rank is stopped, the other one ends, and its error names that rank", async () => {
        const { learned, world } = await fault(({ pids }) => process.kill(pids[1], "SIGSTOP"), [0]);
        expect(plain(learned[0])).toEqual(lostBy(1, world, "has been silent for 1 s"));
      });

      test("if all processes of a host are killed, the others end", async () => {
        const { status, learned, text } = await fault(() => hosts.fail(hosts.second));
        expect(status).not.toBe(0);
        expect(learned[1]).toBeUndefined();
        // Open MPI reports it, and names the host unless its daemon there was the last to end
        if (installation === openMpi) expect(text).toMatch(/10\.77\.0\.2|daemon|MPI_ABORT/);
      });
    },
  );
