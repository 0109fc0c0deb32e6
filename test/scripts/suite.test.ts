/** The suite's runner: its arguments, the classes of tests that depend on load, and its report. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import fc from "fast-check";
import { type Counts, fileOutcomes, noTests, oneFailed, onePassed } from "../../scripts/counts.ts";
import { Failure } from "../../scripts/failure.ts";
import { changedFiles, reachedTests } from "../../scripts/suite/changed.ts";
import { classGlobs, classOf, loadClasses, runClassFiles } from "../../scripts/suite/classes.ts";
import { readOptions } from "../../scripts/suite/options.ts";
import { inOrderOf, measuredTimings, shareOf } from "../../scripts/suite/order.ts";
import { describeFailures, describeSlowest } from "../../scripts/suite/part.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";

const orders = testFolder("orders");

describe("arguments of `bun run test`", () => {
  const plain = {
    files: [],
    bunWords: [],
    isFull: false,
    isAgain: false,
    onlyChanged: false,
    shard: undefined,
    seed: 7,
    isDrawn: true,
  };
  const read = (...words: string[]) => readOptions([...words, "--seed", "7"]);

  test("arguments of the suite are parsed", () => {
    expect(read()).toEqual(plain);
    expect(read("--all")).toEqual({ ...plain, isFull: true });
    expect(read("--again")).toEqual({ ...plain, isAgain: true });
    expect(read("--changed")).toEqual({ ...plain, onlyChanged: true });
    expect(read("--all", "--shard", "2/3")).toEqual({ ...plain, isFull: true, shard: { index: 2, count: 3 } });
    expect(new Set(Array.from({ length: 9 }, () => readOptions([]).seed)).size).toBe(9);
    expect([readOptions([]).isDrawn, readOptions(["--all"]).isDrawn]).toEqual([false, true]);
    expect(read("test/io", "-t", "npy")).toEqual({
      ...plain,
      files: ["test/io"],
      bunWords: ["--test-name-pattern", "npy"],
    });
  });

  test.each([
    [["--nonsense"], "nonsense"],
    [["--shard", "0/3"], '"0/3"'],
    [["--shard", "4/3"], '"4/3"'],
    [["--shard", "one"], '"one"'],
    [["--seed", "first"], '"first"'],
    [["--seed", "-1"], "--seed"],
    [["--changed", "test/io"], "got --changed and names of files"],
    [["--changed", "--shard", "1/2"], "got --changed and --shard"],
    [["-t", "npy"], "requires files or folders"],
  ])("%j is rejected", (words, message) => {
    expect(() => readOptions(words)).toThrow(Failure);
    expect(() => readOptions(words)).toThrow(message);
  });
});

describe("the order of files", () => {
  const files = Array.from({ length: 40 }, (_, at) => `test/${at}.test.ts`);
  const timings = (file: string) => (file === "test/7.test.ts" ? 400 : 1);

  test("the order depends on the seed, and has all of the files, regardless of their order", () => {
    fc.assert(
      fc.property(fc.nat(), fc.shuffledSubarray(files, { minLength: 40 }), (seed, shuffled) => {
        const order = inOrderOf(seed, shuffled, timings);
        expect(order).toEqual(inOrderOf(seed, files, timings));
        expect(order.toSorted()).toEqual(files.toSorted());
      }),
    );
  });

  test("the order differs by seed, and a file of 16 times the time of others comes first", () => {
    const orders = Array.from({ length: 200 }, (_, seed) => inOrderOf(seed, files, timings));
    expect(new Set(orders.map(([first]) => first))).toEqual(new Set(["test/7.test.ts"]));
    expect(new Set(orders.map(([, second]) => second)).size).toBe(files.length - 1);
  });

  test("shares cover all files, each once, and take equally long", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 12 }),
        (count, seconds) => {
          const own = seconds.map((_, at) => `test/${at}.test.ts`);
          const secondsOf = (file: string) => seconds[own.indexOf(file)];
          const shares = Array.from({ length: count }, (_, at) => shareOf(own, { index: at + 1, count }, secondsOf));
          expect(shares.flat().toSorted()).toEqual(own.toSorted());
          const totals = shares.map((share) => share.reduce((sum, file) => sum + secondsOf(file), 0));
          expect(Math.max(...totals) - Math.min(...totals)).toBeLessThanOrEqual(Math.max(...seconds));
        },
      ),
    );
  });

  test("the order equals that in which Bun runs files in one process", async () => {
    const named = ["test/core/context.test.ts", "test/scripts/apt.test.ts", "test/scripts/counts.test.ts"];
    const run = async (seed: number) => {
      const words = ["test", `--seed=${seed}`, ...named];
      const child = Bun.spawn([process.execPath, "scripts/launch.ts", ...words], {
        cwd: packageRoot,
        env: { ...process.env, ORCHARD_REPORT: orders.path },
        stderr: "pipe",
        stdout: "pipe",
      });
      const [output, printed] = await Promise.all([
        new Response(child.stderr).text(),
        new Response(child.stdout).text(),
      ]);
      expect(printed).toContain(`Files run in the order of --seed ${seed}\n`);
      return [...output.matchAll(/^(test\/\S+\.test\.ts):$/gm)].map(([, file]) => file);
    };
    const wanted = (seed: number) => inOrderOf(seed, named, measuredTimings());
    const others = Array.from({ length: 100 }, (_, at) => at + 2);
    const other = others.find((seed) => !Bun.deepEquals(wanted(seed), wanted(1)))!;
    for (const seed of [1, other]) expect(await run(seed)).toEqual(wanted(seed));
  });
});

describe("classes of tests that depend on load", () => {
  test("only the ending of a file's name decides whether it runs separately", () => {
    const name = fc.constantFrom("memory", "timing", "run", "faults", "hosts", "a.memory", "memory.more", "kill");
    fc.assert(
      fc.property(name, fc.constantFrom("test/ops", "test"), (base, folder) => {
        const file = `${folder}/${base}.test.ts`;
        const matches = classGlobs.some((glob) => new Bun.Glob(glob).match(file));
        expect(classOf(file) !== undefined).toBe(matches);
      }),
    );
    expect(classOf("test/train/curve.memory.test.ts")).toBe("memory");
    expect(classOf("test/train/memory.test.ts")).toBeUndefined();
    expect(Object.keys(loadClasses)).toEqual(["timing", "memory", "faults", "hosts"]);
  });

  /** Plays the outcomes of a file's runs, and counts them. */
  const playing = (outcomes: Readonly<Record<string, readonly Counts[]>>) => {
    const runs: string[] = [];
    const runFile = async (file: string) => {
      runs.push(file);
      const counts = outcomes[file][runs.filter((each) => each === file).length - 1];
      return { counts, files: [], hasOuterErrors: false };
    };
    return { runs, runFile };
  };

  test("a file that fails once and then passes is green, and named", async () => {
    const { runs, runFile } = playing({ a: [onePassed], b: [oneFailed("b > slow"), onePassed] });
    const outcome = await runClassFiles(["a", "b"], runFile);
    expect(runs).toEqual(["a", "b", "b"]);
    expect(outcome).toEqual({ ...noTests, passed: 2, remarks: ["b failed once, passed alone: b > slow"] });
  });

  test("a file that fails twice is red, and a file that passes is not run again", async () => {
    const { runs, runFile } = playing({ a: [oneFailed("first"), oneFailed("second")], b: [onePassed] });
    const outcome = await runClassFiles(["a", "b"], runFile);
    expect(runs).toEqual(["a", "a", "b"]);
    expect(outcome).toMatchObject({ passed: 1, failed: 1, failures: ["second"] });
    const report = describeFailures([{ name: "Tests of class faults", counts: outcome, seconds: 1 }]);
    expect(report).toContain("a failed once, failed alone: first");
    expect(report).toContain("Tests of class faults: second");
  });
});

describe("tests affected by a change", () => {
  const folder = testFolder("changed");
  const write = (path: string, text = "") => {
    mkdirSync(dirname(folder.file(path)), { recursive: true });
    writeFileSync(folder.file(path), text);
  };
  write("src/low.ts", "export const low = 1;\n");
  write("src/high.ts", 'import { low } from "./low.ts";\nexport const high = low;\n');
  write("src/types.ts", 'export type { T } from "./other.ts";\n');
  write("src/other.ts", "export type T = 1;\n");
  write("test/ops/scan/scan.test.ts", 'import { high } from "../../../src/high.ts";\nhigh;\n');
  write("test/types.test.ts", 'import type { T } from "../src/types.ts";\nexport type U = T;\n');
  write("test/optim/muon.test.ts", "");
  write("src/worker_main.ts", "");
  write("src/pool.ts", 'new Worker(moduleFile("worker_main"));\n');
  write("test/pool.test.ts", 'import "../src/pool.ts";\n');
  write("test/cli/run.test.ts", 'Bun.spawn([process.execPath, "src/high.ts"]);\n');
  write("test/cli/join.test.ts", 'join(root, "src", "types.ts");\njoin(root, "src", "none.ts");\n');
  write("test/backend/cpu/storm.test.ts", "");
  write("test/readme.test.ts", "");
  for (const name of ["scripts", "bench", "examples"]) write(`${name}/none.ts`);
  const reached = (...files: string[]) => reachedTests(files, folder.path);

  test("a change affects tests that import the file; if none does, tests of its family", () => {
    expect(reached("src/low.ts")).toEqual(["test/cli/run.test.ts", "test/ops/scan/scan.test.ts"]);
    expect(reached("src/worker_main.ts")).toEqual(["test/pool.test.ts"]);
    expect(reached("src/other.ts")).toEqual(["test/cli/join.test.ts", "test/types.test.ts"]);
    expect(reached("test/readme.test.ts")).toEqual(["test/readme.test.ts"]);
    expect(reached("kernels/scan/scan.metal")).toEqual(["test/ops/scan/scan.test.ts"]);
    expect(reached("native/cpu/optim/update.cpp")).toEqual([
      "test/backend/cpu/storm.test.ts",
      "test/optim/muon.test.ts",
    ]);
    for (const shared of ["kernels/common/bits.h", "kernels/formulas/unary.h"])
      expect(reached(shared)).toEqual([
        "test/backend/cpu/storm.test.ts",
        "test/ops/scan/scan.test.ts",
        "test/optim/muon.test.ts",
      ]);
    expect(reached("docs/start.md")).toEqual(["test/pool.test.ts", "test/readme.test.ts", "test/types.test.ts"]);
    expect(reached("LICENSE")).toEqual([]);
  });

  test.skipIf(Bun.which("git") === null)(
    "git's changed files are found: edited, staged, new and removed files",
    async () => {
      const git = (...words: string[]) =>
        Bun.spawnSync(["git", "-c", "user.name=a", "-c", "user.email=a@b", ...words], { cwd: folder.path });
      git("init");
      git("add", ".");
      git("commit", "-m", "first");
      expect(await changedFiles(folder.path)).toEqual([]);
      write("src/low.ts", "export const low = 2;\n");
      write("src/new name.ts");
      write("test/optim/muon.test.ts", "changed\n");
      git("add", "test/optim/muon.test.ts");
      git("rm", "-q", "test/readme.test.ts");
      expect(await changedFiles(folder.path)).toEqual([
        "src/low.ts",
        "src/new name.ts",
        "test/optim/muon.test.ts",
        "test/readme.test.ts",
      ]);
    },
  );
});

test("the slowest files of Bun's report are listed, the slowest first", () => {
  const report = [
    '<testsuites name="bun test" tests="2" time="3">',
    '  <testsuite name="a" file="test/a.test.ts" tests="5" failures="1" skipped="2" time="1.5" hostname="h">',
    '    <testsuite name="inner" file="test/a.test.ts" time="1.4">',
    "    </testsuite>",
    "  </testsuite>",
    '  <testsuite name="test/b.test.ts" file="test/b.test.ts" tests="1" time="12.25" hostname="h">',
    "  </testsuite>",
    "</testsuites>",
  ].join("\n");
  const times = fileOutcomes(report);
  expect(times).toEqual([
    { file: "test/a.test.ts", seconds: 1.5, passed: 2, failed: 1, skipped: 2 },
    { file: "test/b.test.ts", seconds: 12.25, passed: 1, failed: 0, skipped: 0 },
  ]);
  expect(describeSlowest(times, 1)).toBe("\nThe slowest test files\n     12.3 s  test/b.test.ts\n");
});
