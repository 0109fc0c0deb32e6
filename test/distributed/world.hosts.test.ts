/** Ranks whose calls differ, and ranks that end. */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";
import { localCommand, mpich, openMpi, runProgram, saidBy, spawn, standardAbi } from "./launch.ts";

const { path: folder, file } = testFolder("ranks");
const source = join(packageRoot, "src/index.ts");

for (const [installation, ranks] of [
  [openMpi, 2],
  [mpich, 3],
] as const)
  describe.skipIf(installation.missing !== undefined)(`${ranks} ranks of ${installation.name}`, () => {
    test("if calls differ, each rank gets the same error, and the next call works", async () => {
      type Outcome = { readonly code: string; readonly message: string };
      const program = runProgram<Record<string, Outcome>>(installation, ranks, "mistakes.ts", folder);
      const { ranks: got, text, status } = await program;
      expect({ text, status }).toEqual({ text: "", status: 0 });
      const expected = "expected the same call on every rank";
      const others = ranks === 2 ? "rank 0" : "ranks 0, 2";
      const differing: Record<string, readonly [string, string, string]> = {
        shapes: ["allReduce", "allReduce float32[2, 3] sum", "allReduce float32[3, 2] sum"],
        dtypes: ["allGather", "allGather int8[2]", "allGather float16[2]"],
        options: ["allReduce", "allReduce float32[2] sum", "allReduce float32[2] max"],
        roots: ["broadcastAsync", "broadcast float32[2] from rank 0", "broadcast float32[2] from rank 1"],
        "late sizes": [
          "allToAllAsync",
          "allToAll float32[12, 1, 1, 1, 1, 1, 1, 1]",
          "allToAll float32[12, 1, 1, 1, 1, 1, 1, 2]",
        ],
      };
      for (const [rank, results] of got.entries()) {
        for (const [name, [operation, most, odd]] of Object.entries(differing))
          expect(results[name]).toEqual({
            isTyped: true,
            code: "mismatch",
            message: `[${operation}] ${expected}, got ${most} on ${others}, and ${odd} on rank 1`,
            ranks: [1],
          } as unknown as Outcome);
        expect(results["calls"].code).toBe("mismatch");
        expect(results["calls"].message).toContain("and barrier on rank 1");
        for (const name of [...Object.keys(differing), "calls"]) expect<unknown>(results[`after ${name}`]).toBe(ranks);
        if (rank !== 1) expect(results["turns"]).toBeGreaterThan(3);
      }
    });
  });

/** The launcher treats a process that ends without finalizing as crashed, and kills those that are still ending. */
for (const installation of [mpich, standardAbi])
  describe.skipIf(installation.missing !== undefined)(
    `ranks of ${installation.name} tell the launcher that they end`,
    () => {
      const commandsOf = async (...lines: readonly string[]) => {
        const program = file("end.ts");
        writeFileSync(program, [`import { distributed as d } from ${JSON.stringify(source)};`, ...lines].join("\n"));
        const { text, status } = await saidBy(spawn(localCommand(installation, 2, [program], ["-verbose"])));
        return { status, ends: text.match(/(cmd=|\): )finalize$/gm)?.length ?? 0 };
      };

      test("the launcher is told when the process ends", async () => {
        expect(await commandsOf("await d.init();")).toEqual({ status: 0, ends: 2 });
      });

      test("the launcher is told if exit handlers call `finalize` and then `rank`, which throws", async () => {
        const told = `({ code }) => { if (code !== "notInitialized") process.kill(process.pid, "SIGABRT"); }`;
        expect(
          await commandsOf(
            "await d.init();",
            `const told = ${told};`,
            `process.on("exit", () => { void d.finalize(); try { d.rank(); } catch (error) { told(error); } });`,
          ),
        ).toEqual({ status: 0, ends: 2 });
      });

      test("the launcher is told if the process continues after `finalize`", async () => {
        expect(await commandsOf("await d.init();", "await d.finalize();", "await Bun.sleep(10);")).toEqual({
          status: 0,
          ends: 2,
        });
      });
    },
  );
