/** The world alone, with and without MPI. */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { handlesOf } from "../../src/distributed/abi.ts";
import { candidates, launchOf } from "../../src/distributed/locate.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";

const { path: folder, file } = testFolder("world");
const source = join(packageRoot, "src/index.ts");

/** The output of a separate process, without a launcher unless the environment says otherwise. */
function run(lines: string, environment: Readonly<Record<string, string>> = {}) {
  const program = file("program.ts");
  writeFileSync(program, `import * as o from ${JSON.stringify(source)};\nconst d = o.distributed;\n${lines}`);
  const env = { PATH: process.env["PATH"], HOME: folder, ORCHARD_BACKEND: "reference", ...environment };
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, program], { cwd: folder, env });
  return { out: stdout.toString(), err: stderr.toString(), exitCode };
}

test("one process is a world of size 1: every call works, and no library is required", () => {
  const { out, err } = run(
    `
    const { rank, worldSize, localRank, localSize, library } = await d.init();
    const x = o.tensor([1, 2], { requiresGrad: true });
    const shown = (y) => y.toArray();
    o.backward(o.sum(d.allReduce(x, { op: "mean" })));
    d.barrier();
    await d.barrierAsync();
    console.log(JSON.stringify([
      [rank, worldSize, localRank, localSize, library ?? null, d.rank(), d.worldSize(), d.localRank()],
      [d.allReduce(x), d.reduceScatter(x), d.allGather(x), d.allToAll(x), d.broadcast(x), x.grad].map(shown),
      shown(d.allGather(o.tensor(3))),
      shown(d.allReduce(o.tensor([1, 2]), { inPlace: true })),
      shown(await d.allReduceAsync(o.tensor([5], { dtype: "bfloat16" }))),
    ]));
    await d.finalize();
    console.log(d.isInitialized());`,
    { ORCHARD_MPI: "/none/libmpi.so" },
  );
  expect(err).toBe("");
  const [info, ...results] = JSON.parse(out.split("\n")[0]);
  expect(info).toEqual([0, 1, 0, 1, null, 0, 1, 0]);
  const own = [1, 2];
  expect(results).toEqual([[own, own, own, own, own, [1, 1]], [3], own, [5]]);
  expect(out).toEndWith("false\n");
});

test("under a launcher, without a library: the error names the package that provides one", () => {
  const launched = { OMPI_COMM_WORLD_SIZE: "2", ORCHARD_MPI: "/none/libmpi.so" };
  const { out } = run("await d.init().catch(({ name, code, message }) => console.log(name, code, message));", launched);
  expect(out).toStartWith("DistributedError mpiMissing [distributed.init] a launcher of Open MPI started this process");
  expect(out).toContain(process.platform === "darwin" ? "brew install open-mpi" : "apt install openmpi-bin");
});

test("a library that is not MPI is an error", () => {
  const launched = { PMI_RANK: "0", PMI_SIZE: "2", ORCHARD_MPI: "libm.so.6" };
  const { out } = run("await d.init().catch(({ code }) => console.log(code));", launched);
  expect(out).toBe("mpiMissing\n");
});

test("calls before init, and calls with an unknown rank, throw an error that says so", () => {
  const { out } = run(`
    const said = (call) => { try { call(); } catch ({ name, code, message }) { console.log(name, code, message); } };
    said(() => d.rank());
    said(() => d.allReduce(o.ones([2])));
    await d.init();
    said(() => d.broadcast(o.ones([2]), { src: 1 }));
    said(() => d.send(o.ones([2]), { dst: 0 }));
    said(() => d.allReduce(o.ones([2], { dtype: "int32" }), { op: "mean" }));
    said(() => d.allReduce(o.ones([2], { dtype: "bool" })));
    said(() => d.allReduce(o.ones([2], { requiresGrad: true }), { op: "max" }));
    said(() => d.allReduce(o.ones([2], { requiresGrad: true }), { inPlace: true }));
    said(() => d.allReduce(o.ones([2]), { op: "product" }));
    said(() => d.reduceScatter(o.tensor(1)));`);
  expect(out.split("\n")).toEqual([
    "DistributedError notInitialized [distributed.rank] call `await distributed.init()` first",
    "DistributedError notInitialized [allReduce] call `await distributed.init()` first",
    "ArgumentError noSuchRank [broadcast] expected src to be a rank below 1, got 1",
    "ArgumentError noSuchRank [send] expected dst to be a rank below 1 other than this one, 0, got 0",
    'DTypeError notAFloat [allReduce] expected a float dtype for op "mean", got int32[2]',
    'DTypeError isBool [allReduce] expected a numeric dtype for op "sum", got bool[2]; ' +
      'for bool, use "max" (any) or "min" (all)',
    'ArgumentError noGradient [allReduce] op "max" has no gradient; pass x.detach()',
    "AutogradError inPlace [allReduce] a leaf float32[2] in an autograd graph can't be changed in place; change it " +
      "within noGrad(() => …), or make a new tensor",
    'ArgumentError unknownChoice [allReduce] expected op to be "sum", "mean", "max" or "min", got "product"',
    "ShapeError notDivisible [reduceScatter] expected the first axis of x to be a multiple of the 1 ranks, got " +
      "float32[]",
    "",
  ]);
});

test("the error for an unknown rank names the rank, not the tag", () => {
  const { out, err } = run(`
    await d.init();
    for (const call of [
      () => d.send(o.ones([2]), { dst: 2, tag: 7 }),
      () => d.sendAsync(o.ones([2]), { dst: 2, tag: 7 }),
      () => d.receive([2], { src: 2, tag: 7 }),
      () => d.receiveAsync([2], { src: 2, tag: 7 }),
    ])
      try { await call(); } catch ({ code, message }) { console.log(code, message); }`);
  expect(err).toBe("");
  const refused = (operation: string, rank: string) =>
    `noSuchRank [${operation}] expected ${rank} to be a rank below 1 other than this one, 0, got 2\n`;
  const ranks = { send: "dst", sendAsync: "dst", receive: "src", receiveAsync: "src" };
  expect(out).toBe(
    Object.entries(ranks)
      .map(([operation, rank]) => refused(operation, rank))
      .join(""),
  );
});

describe("detection of the MPI library", () => {
  test("variables of the environment identify the launcher", () => {
    expect(launchOf({})).toBeUndefined();
    expect(launchOf({ OMPI_COMM_WORLD_SIZE: "4", PMIX_RANK: "1" })).toEqual({ family: "Open MPI", size: 4 });
    expect(launchOf({ PMI_RANK: "1", PMI_SIZE: "3" })).toEqual({ family: "MPICH", size: 3 });
    expect(launchOf({ PMIX_RANK: "1", SLURM_NTASKS: "8" })).toEqual({ family: undefined, size: 8 });
  });

  test.skipIf(process.platform === "darwin")("the launcher's library is tried first", () => {
    const first = (variables: Record<string, string>) => candidates(launchOf(variables))[0];
    expect(first({ OMPI_COMM_WORLD_SIZE: "4" })).toBe("libmpi.so.40");
    expect(first({ PMI_RANK: "1" })).toBe("libmpich.so.12");
  });

  test("an interface is detected by the library's name and symbols", () => {
    const none = () => null;
    expect(handlesOf(none, "/usr/lib/libmpi_abi.so.0")[0]).toBe("MPI 5 ABI");
    expect(handlesOf(none, "/usr/lib/libmpi.so.12")[0]).toBe("MPICH");
    const [family, { world, reductions }] = handlesOf((symbol) => symbol.length, "libmpi.so.40");
    expect([family, world, reductions.sum]).toEqual(["Open MPI", 19, 15]);
  });
});
