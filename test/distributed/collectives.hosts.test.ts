/** Every call on every dtype, between processes of MPI, compared with formulas on the elements of all ranks. */
import { describe, expect, test } from "bun:test";
import { testFolder } from "../support/folder.ts";
import { expectedOf } from "./expected.ts";
import { mpich, openMpi, openMpi5, runProgram, standardAbi } from "./launch.ts";

type Results = Readonly<Record<string, unknown>>;

const { path: folder } = testFolder("distributed");

for (const [installation, ranks] of [
  [openMpi, 2],
  [openMpi, 4],
  [mpich, 3],
  [openMpi5, 2],
  [standardAbi, 3],
] as const)
  describe.skipIf(installation.missing !== undefined)(`${ranks} ranks of ${installation.name}`, () => {
    test("every call on every dtype equals the formula on all ranks' elements", async () => {
      const { ranks: got, text, status } = await runProgram<Results>(installation, ranks, "collectives.ts", folder);
      expect({ text, status }).toEqual({ text: "", status: 0 });
      for (const [rank, results] of got.entries()) expect(results).toEqual(expectedOf(ranks, rank));
    });
  });
