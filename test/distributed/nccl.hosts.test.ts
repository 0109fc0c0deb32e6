/** Gradients and sharded parameters over NCCL, with a stand-in for it that exchanges the software device's memory. */
import { beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Random } from "../ops/samples.ts";
import { compileOnce } from "../support/compile_once.ts";
import { testFolder } from "../support/folder.ts";
import { hasMetal } from "../support/recorded.ts";
import { repeats } from "../support/repeats.ts";
import { seed } from "../support/some.ts";
import { launch, mpich, openMpi, programWords, resultsIn, runProgram, saidBy } from "./launch.ts";

const { path: folder, file } = testFolder("nccl");
const library = file("libnccl.so.2");
const isTested = process.platform === "linux" && hasMetal;

beforeAll(async () => {
  if (!isTested) return;
  const source = join(import.meta.dir, "nccl.cpp");
  await compileOnce(["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", source], library);
});

let runs = 0;

/** The variables of a run on the stand-in, and a function that reads the calls of all ranks, by rank. */
function standin(others: Readonly<Record<string, string>> = {}) {
  const log = file(`log-${runs++}`);
  const variables = { ORCHARD_BACKEND: "metal", ORCHARD_NCCL: library, ORCHARD_METAL_CUDA: library, STANDIN_LOG: log };
  const calls = () =>
    readdirSync(folder)
      .filter((name) => join(folder, name).startsWith(`${log}.`))
      .map((name) => readFileSync(join(folder, name), "utf8").trim().split("\n"));
  return { variables: { ...variables, ...others }, calls };
}

type Values = readonly number[];
interface Trained {
  readonly world: { readonly nccl: string | null; readonly whyNotNccl: string | null };
  /** The gradients of each step, and those of one process with the batches of all ranks. */
  readonly gradients: readonly (readonly [Values, Values])[];
  readonly weights: Values;
  readonly codepaths: readonly string[];
  /** Elements of each step's buckets: gradients, and a flag for each. */
  readonly elements: number;
  readonly steps: number;
  readonly mpiReductions: number;
}

const roundings = { float32: 2 ** -24, float16: 2 ** -11, bfloat16: 2 ** -8 };
type DType = keyof typeof roundings;

/**
 * Sums of n terms in two orders differ by at most n roundings of the largest value: 256 in float32. In 16 bits, each
 * batch of the program adds one rounding, and each of its few layers two.
 */
const closeTo = (got: Values, want: Values, dtype: DType): boolean => {
  const bound = (dtype === "float32" ? 256 : 16) * roundings[dtype] * Math.max(...want.map(Math.abs));
  return got.length === want.length && got.every((value, at) => Math.abs(value - want[at]) <= bound);
};

/** Returns the libraries that a trace names for a call. */
const librariesIn = (path: string, call: string): unknown[] => {
  const events = JSON.parse(readFileSync(path, "utf8")) as { args?: { call?: string; library?: string } }[];
  return [...new Set(events.filter(({ args }) => args?.call === call).map(({ args }) => args?.library))];
};

const REDUCED = /^(?:allReduce|reduce) (\d+) of type 7$/;

interface Case {
  readonly installation: typeof openMpi;
  readonly ranks: number;
  readonly kind: "whole" | "sharded";
  readonly dtype: DType;
  readonly drawn: number;
}

const random = new Random(seed);
/** Each launcher exchanges whole and sharded gradients. The dtypes alternate, and the models are random. */
const cases: readonly Case[] = Array.from({ length: repeats({ usual: 1, all: 12 }) }, (_, turn) =>
  [openMpi, mpich].flatMap((installation, other) =>
    (["whole", "sharded"] as const).map((kind, at) => ({
      installation,
      kind,
      ranks: 2 + ((turn + other) % 2),
      drawn: random.integer(1, 9999),
      dtype: (["float32", "bfloat16", "float16"] as const)[(turn + other + 2 * at + seed - 1) % 3],
    })),
  ),
).flat();

describe.skipIf(!isTested)("MPICH and Open MPI exchange gradients with NCCL alone", () => {
  for (const { installation, ranks, kind, dtype, drawn } of cases)
    test.skipIf(installation.missing !== undefined)(
      `with NCCL alone, ${ranks} ranks of ${installation.name} exchange ${kind} gradients, ${dtype}, model ${drawn}`,
      async () => {
        const trace = `trace-${runs}-`;
        const { variables, calls } = standin({
          DRAWN: `${drawn}`,
          KIND: kind,
          DTYPE: dtype,
          ORCHARD_TRACE: file(`${trace}%p.json`),
        });
        const outcome = await runProgram<Trained>(installation, ranks, "nccl.ts", folder, variables);
        expect({ text: outcome.text, status: outcome.status }).toEqual({ text: "", status: 0 });
        const logs = calls();
        expect(logs).toHaveLength(ranks);
        const call = kind === "whole" ? "allReduce" : "reduceScatter";
        for (const [rank, result] of outcome.ranks.entries()) {
          const { world, gradients, weights, codepaths, elements, steps, mpiReductions } = result;
          expect(world).toEqual({ nccl: "NCCL 2.28.9", whyNotNccl: null });
          for (const [step, [got, want]] of gradients.entries())
            expect({ step, isClose: closeTo(got, want, dtype) }).toEqual({ step, isClose: true });
          expect(weights).toEqual([...outcome.ranks[0].weights]); // equal bit by bit
          expect(mpiReductions).toBe(0);
          expect(codepaths).toEqual([`dataParallel metal ${call} over NCCL 2.28.9`]);
          const log = logs[rank];
          expect(log.filter((line) => line.startsWith("violation"))).toEqual([]);
          // The expected count per step: every gradient, summed in float32, and its flag.
          const reduced = log.map((line) => Number(REDUCED.exec(line)?.[1] ?? 0)).reduce((sum, count) => sum + count);
          expect(reduced).toBe(elements * steps);
          expect(log.filter((line) => line.startsWith("allGather")).length > 0).toBe(kind === "sharded");
          expect(log.at(-1)).toBe("destroyed");
        }
        const traces = readdirSync(folder).filter((name) => name.startsWith(trace));
        expect(traces).toHaveLength(ranks);
        for (const name of traces) expect(librariesIn(file(name), call)).toEqual(["NCCL 2.28.9"]);
      },
    );
});

describe.skipIf(!isTested || openMpi.missing !== undefined)("MPI is used without NCCL", () => {
  const reasons = [
    ["the library is missing", { ORCHARD_NCCL: "/none/libnccl.so.2" }, "rank 0: "],
    ["the user declines", { ORCHARD_NCCL: "none", ORCHARD_METAL_DEVICE: "" }, "rank 0: the metal backend runs on no"],
  ] as const;
  test.each(reasons)(
    "because %s, MPI exchanges the same gradients, and the reason is reported",
    async (_, others, why) => {
      const { variables, calls } = standin({ ...others, DRAWN: "1", KIND: "whole" });
      const { ranks, text, status } = await runProgram<Trained>(openMpi, 2, "nccl.ts", folder, variables);
      expect({ text, status }).toEqual({ text: "", status: 0 });
      expect(calls()).toEqual([]);
      for (const { world, gradients, codepaths, mpiReductions } of ranks) {
        expect(world.nccl).toBeNull();
        expect(world.whyNotNccl).toStartWith(why);
        for (const [got, want] of gradients) expect(closeTo(got, want, "float32")).toBe(true);
        expect(mpiReductions).toBeGreaterThan(0);
        expect(codepaths[0]).toStartWith("dataParallel metal allReduce over Open MPI");
      }
    },
  );

  test("two ranks on one GPU are an error on both, unless the GPU is named", async () => {
    const { variables } = standin({ STANDIN_GPU: "1", DRAWN: "1", KIND: "whole" });
    const { text, status } = await saidBy(launch(openMpi, 2, programWords("nccl.ts", folder), variables));
    expect(status).not.toBe(0);
    expect(text).toContain("ranks 0 and 1 use the same GPU");
    expect(text).toContain("ORCHARD_METAL_DEVICE=nvidia:0");
  });

  const faults = ["allReduce", "async", "ncclCommInitRankScalable"];
  test.each(faults)("an error of NCCL (%s) ends all ranks with its text", async (fault) => {
    const { variables } = standin({ STANDIN_FAIL: fault, DRAWN: "1", KIND: "whole" });
    const { text, status } = await saidBy(launch(openMpi, 2, programWords("nccl.ts", folder), variables));
    expect(status).not.toBe(0);
    expect(text).toContain("unhandled system error");
    expect(text).toContain("NCCL_DEBUG=INFO");
    expect(resultsIn(folder, 2).length).toBe(2);
  });

  test("a killed rank ends the others within five seconds, while NCCL waits for it", async () => {
    const { variables } = standin({ DRAWN: "1", KIND: "killed" });
    const { status } = await saidBy(launch(openMpi, 2, programWords("nccl.ts", folder), variables));
    expect(status).not.toBe(0);
    const killed = Number(readFileSync(join(folder, "killed"), "utf8"));
    expect(Date.now() - killed).toBeLessThan(5_000);
  });
});
