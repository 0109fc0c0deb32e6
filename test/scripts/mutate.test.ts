/** `bun run mutate`: its mutations, the tests that it chooses, and a whole run over a small repository. */
import { describe, expect, spyOn, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseSync } from "oxc-parser";
import { hasCompiler } from "../../scripts/cpu/compiler.ts";
import { Failure } from "../../scripts/failure.ts";
import { checkManyTypes, isCompiled } from "../../scripts/mutate/compile.ts";
import { Copy, filesOf } from "../../scripts/mutate/copy.ts";
import { cppChanges } from "../../scripts/mutate/cpp.ts";
import { firstFailure, groupsOf } from "../../scripts/mutate/judge.ts";
import { runLimited } from "../../scripts/mutate/limited.ts";
import { mutate, readMutateOptions } from "../../scripts/mutate/mutate.ts";
import { applied, type Change } from "../../scripts/mutate/mutation.ts";
import { Tests } from "../../scripts/mutate/nearest.ts";
import { drawMutations, languageOf, languages, readPlace } from "../../scripts/mutate/sites.ts";
import { typescriptChanges } from "../../scripts/mutate/typescript.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { withVariables } from "../support/environment.ts";
import { testFolder } from "../support/folder.ts";
import { someOf } from "../support/some.ts";

const folder = testFolder("mutate");

const mutants = (source: string, changes: readonly Change[]): string[] =>
  changes.map((change) => `${change.kind}: ${applied(source, change)}`);

const ofTypeScript = (source: string) => mutants(source, typescriptChanges(source, "a.ts"));
const ofCpp = (source: string) => mutants(source, cppChanges(source, "a.h"));

describe("mistakes are made in TypeScript", () => {
  test.each([
    ["const x = a - b;", ["arithmetic: const x = a + b;"]],
    ["const x = a < b;", ["boundary: const x = a <= b;", "comparison: const x = a >= b;"]],
    ["const x = a === b;", ["comparison: const x = a !== b;"]],
    ["const x = a && b;", ["condition: const x = a || b;"]],
    ["const x = a ?? b;", ["default: const x = (b);", "default: const x = (a)!;"]],
    ["const x = a ? b : c;", ["condition: const x = !(a) ? b : c;", "condition: const x = false ? b : c;"]],
    ["const x = !a;", ["negation: const x = a;"]],
    ["const x = [0, 1.5, true];", ["[1, 1.5, true]", "[0, 2.5, true]", "[0, 0.5, true]", "[0, 1.5, false]"]],
    ['const x = "float32";', ['constant: const x = "float64";']],
    ['const x: "float32" = y as 3;', []],
    ["type X = 1 | 2;", []],
    ["call(a);", ["removed statement: ;"]],
    ["x = a;", ["removed statement: ;"]],
    [
      "if (a) throw new E(1 + 2);",
      ["condition: if (!(a)) throw new E(1 + 2);", "if (false)", "removed statement: if (a) ;"],
    ],
    ["const x = f(a, b);", ["swapped arguments: const x = f(b, a);"]],
    ["const x = f(a, a);", []],
    ["const x = add(a, b);", []],
    ["const x = A.max(a, b);", ["call: const x = A.min(a, b);"]],
    ["class A extends B { c = () => super.d(); }", []],
    ["const x = a.min(b);", ["call: const x = a.max(b);", "removed call: const x = a;"]],
    ["const x = (a +\n b);", ["arithmetic: const x = (a -\n b);"]],
  ])("%s is mutated as expected", (source, expected) => {
    const found = ofTypeScript(source);
    expect(found).toHaveLength(expected.length);
    for (const [at, part] of expected.entries()) expect(found[at]).toContain(part);
  });
});

describe("mistakes are made in C++ and kernels", () => {
  test.each([
    ["float x = a * b;", ["arithmetic: float x = a / b;"]],
    ["device float *x = y;", []],
    ["template <typename T> struct X;", []],
    ["#define N 4", []],
    ["return a <= b;", ["boundary: return a < b;", "comparison: return a > b;"]],
    ["return 2.0f;", ["constant: return 3.0f;", "constant: return 1.0f;"]],
    ["return 7u;", ["constant: return 8u;", "constant: return 6u;"]],
    ["if (done) return;", ["condition: if (!(done)) return;", "condition: if (false) return;"]],
    ["barrier(mem::group);", ["removed statement: ;"]],
    ["out.items[at] = y;", ["removed statement: ;"]],
    ["auto y = load(at, base);", ["swapped arguments: auto y = load(base, at);"]],
    ["void load(int at, int base);", []],
    ["y = min(a, b);", ["call: y = max(a, b);", "removed statement: ;"]], // swapping these arguments changes nothing
    ["auto y = fma(a, b, c);", ["swapped arguments: auto y = fma(a, c, b);"]],
    ["x = y; // a + b", ["removed statement: ; // a + b"]],
  ])("%s is mutated as expected", (source, expected) => {
    expect(ofCpp(source)).toEqual(expected);
  });
});

describe("mutations work in the files of the repository", () => {
  test("each mutation changes one line, and TypeScript still parses", async () => {
    const files = (await filesOf(packageRoot)).filter((file) => languageOf(file) !== undefined);
    for (const { files: own, name } of languages)
      expect([name, files.some((file) => own.test(file))]).toEqual([name, true]);
    let count = 0;
    for (const file of someOf(files, 40)) {
      const source = readFileSync(join(packageRoot, file), "utf8");
      const lines = source.split("\n");
      for (const change of someOf(languageOf(file)!.changes(source, file), 5)) {
        const mutant = applied(source, change);
        const changed = mutant.split("\n");
        expect(changed).toHaveLength(lines.length);
        const line = source.slice(0, change.start).split("\n").length;
        expect(lines.flatMap((text, at) => (text === changed[at] ? [] : [at + 1]))).toEqual([line]);
        if (file.endsWith(".ts")) expect([file, change, parseSync(file, mutant).errors]).toEqual([file, change, []]);
        count++;
      }
    }
    expect(count).toBeGreaterThan(60);
  });
});

/** A repository of three files; a test covers two of its lines. */
function smallRepository(name: string): (path: string, text: string) => void {
  const root = folder.file(name);
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  write("tsconfig.json", readFileSync(join(packageRoot, "tsconfig.json"), "utf8"));
  write(".gitignore", "node_modules\n");
  write("test/timings.json", JSON.stringify({ version: 1, files: { "test/far.test.ts": 30_000 } }));
  for (const empty of ["scripts", "bench", "examples"]) write(`${empty}/none.ts`, "");
  write("src/sign/sign.ts", "export const isNegative = (x: number): boolean => x < 0;\n");
  write("src/all.ts", 'export { isNegative } from "./sign/sign.ts";\n');
  const head = 'import { expect, test } from "bun:test";\n';
  write("test/far.test.ts", `${head}import "../src/all.ts";\ntest("far", () => expect(1).toBe(1));\n`);
  write("test/none.test.ts", `${head}test("none", () => expect(1).toBe(2));\n`);
  write(
    "test/sign/sign.test.ts",
    `${head}import { isNegative } from "../../src/sign/sign.ts";\n` +
      'test("signs", () => expect(isNegative(-1)).toBe(true));\n',
  );
  symlinkSync(join(packageRoot, "node_modules"), join(root, "node_modules"));
  const git = (...words: string[]) =>
    Bun.spawnSync(["git", "-c", "user.name=a", "-c", "user.email=a@b", ...words], { cwd: root });
  git("init");
  git("add", ".");
  git("commit", "-m", "first");
  return write;
}

describe.skipIf(Bun.which("git") === null)("mutants in a small repository are judged", () => {
  test("the nearest tests come first, and unrelated ones are left out", () => {
    const write = smallRepository("nearest");
    const tests = new Tests(folder.file("nearest"));
    const nearest = (seconds: number) => tests.nearest("src/sign/sign.ts", seconds).map(({ file }) => file);
    expect(nearest(100)).toEqual(["test/sign/sign.test.ts", "test/far.test.ts"]);
    expect(nearest(10)).toEqual(["test/sign/sign.test.ts"]);
    write("test/any.test.ts", 'import "../src/sign/sign.ts";\n'); // also imports the file, but from another folder
    const files = new Tests(folder.file("nearest")).nearest("src/sign/sign.ts", 100).map(({ file }) => file);
    expect(files).toEqual(["test/sign/sign.test.ts", "test/any.test.ts", "test/far.test.ts"]);
    rmSync(folder.file("nearest/test/any.test.ts"));
    // Files that lie deeper than any test belong to the tests of the folder above.
    write("src/sign/deep/part.ts", "export const part = 1;\n");
    write("src/all.ts", 'import "./sign/deep/part.ts";\nexport { isNegative } from "./sign/sign.ts";\n');
    write("test/other.test.ts", 'import "../src/all.ts";\n');
    write("test/sign/slow.test.ts", 'import "../../src/all.ts";\n');
    write("test/timings.json", JSON.stringify({ files: { "test/sign/slow.test.ts": 9000 } }));
    const deep = new Tests(folder.file("nearest")).nearest("src/sign/deep/part.ts", 10).map(({ file }) => file);
    expect(deep).toEqual(["test/sign/slow.test.ts", "test/far.test.ts"]);
    // Tests of a file that imports the mutant's come before others.
    write("src/use/user.ts", 'import "../sign/sign.ts";\n');
    write("test/use/user.test.ts", 'import "../../src/all.ts";\nimport "../../src/use/user.ts";\n');
    const used = new Tests(folder.file("nearest")).nearest("src/sign/sign.ts", 100).map(({ file }) => file);
    expect(used.indexOf("test/use/user.test.ts")).toBeLessThan(used.indexOf("test/far.test.ts"));
    expect(used.indexOf("test/use/user.test.ts")).toBeLessThan(used.indexOf("test/other.test.ts"));
    // Tests of argument tables come early for a file with such a table, unless they take long.
    write("src/sign/deep/part.ts", 'export const part = parameters("part", {});\n');
    for (const name of ["short", "long"]) write(`test/arguments/${name}.test.ts`, 'import "../../src/all.ts";\n');
    write("test/timings.json", JSON.stringify({ files: { "test/arguments/long.test.ts": 15_000 } }));
    const tables = new Tests(folder.file("nearest")).nearest("src/sign/deep/part.ts", 60).map(({ file }) => file);
    expect(tables.indexOf("test/arguments/short.test.ts")).toBeLessThan(tables.indexOf("test/far.test.ts"));
    expect(tables.at(-1)).toBe("test/arguments/long.test.ts");
  });

  test("tests that mention the function around a line of a kernel or of C++ come first", () => {
    const write = smallRepository("functions");
    const source =
      "inline float log_sum(float x) {\n    return x;\n}\n\ninline float mish(float x) {\n    return x;\n}\n";
    for (const file of ["kernels/common/math.h", "native/cpu/math.h"]) write(file, source);
    for (const name of ["mish", "logSum"]) write(`test/ops/${name}.test.ts`, `${name}(1);\n`);
    write("test/timings.json", JSON.stringify({ files: { "test/ops/mish.test.ts": 1, "test/ops/logSum.test.ts": 1 } }));
    const tests = new Tests(folder.file("functions"));
    const first = (file: string, line: number) => tests.nearest(file, 100, line)[0].file;
    for (const file of ["kernels/common/math.h", "native/cpu/math.h"])
      expect([2, 6].map((line) => first(file, line))).toEqual(["test/ops/logSum.test.ts", "test/ops/mish.test.ts"]);
  });

  test("parts of a kernel or C++ file have the tests of the whole; tests of Metal alone are not run for C++", () => {
    const write = smallRepository("parts");
    for (const name of ["lu", "blocks", "lu.metal", "other"]) write(`test/linalg/${name}.test.ts`, "");
    const seconds = { "test/linalg/other.test.ts": 1, "test/linalg/lu.test.ts": 2, "test/linalg/blocks.test.ts": 3 };
    write("test/timings.json", JSON.stringify({ files: { ...seconds, "test/linalg/lu.metal.test.ts": 4 } }));
    const nearest = (file: string) =>
      new Tests(folder.file("parts")).nearest(file, 100).map(({ file: test }) => test.slice(5, -8));
    for (const name of ["cpu", "metal"]) write(`test/backend/${name}/lu.test.ts`, "");
    const files = ["kernels/linalg/lu_blocks.metal", "native/cpu/linalg/lu_blocks.h"];
    for (const file of files) write(file, "");
    expect(files.map(nearest)).toEqual([
      ["linalg/lu", "linalg/blocks", "linalg/lu.metal", "linalg/other"],
      ["linalg/lu", "linalg/blocks", "linalg/other", "backend/cpu/lu"],
    ]);
    const shared = ["kernels/common/lu.h", "native/cpu/memory.h"];
    for (const file of shared) write(file, "");
    const ofOther = (file: string, backend: string) => nearest(file).includes(`backend/${backend}/lu`);
    expect(shared.map((file) => ["cpu", "metal"].map((backend) => ofOther(file, backend)))).toEqual([
      [false, true],
      [true, false],
    ]);
  });

  test("a draw depends on the seed, and the mutation of a line only on that line", () => {
    const write = smallRepository("draws");
    const names = Array.from({ length: 30 }, (_, at) => `src/each/file${at}.ts`);
    for (const [at, name] of names.entries()) write(name, `export const value${at} = (x: number) => x + ${at};\n`);
    const draw = (seed: number) => [...drawMutations(folder.file("draws"), names, readPlace("src"), seed)];
    expect(draw(1)).toEqual(draw(1));
    expect(draw(1)).toHaveLength(30);
    expect(draw(2).map(({ file }) => file)).not.toEqual(draw(1).map(({ file }) => file));
    const before = draw(1).filter(({ file }) => file !== names[7]);
    write(names[7], "// moved\nexport const other = 1 - 2;\n");
    expect(draw(1).filter(({ file }) => file !== names[7])).toEqual(before);
  });

  test("mutants are judged in copies: detected ones are killed, others are listed with the tests run", async () => {
    const write = smallRepository("whole");
    write("src/sign/sign.ts", "export const isNegative = (x: number): boolean => x < 0;\nexport const unused = 1;\n");
    const source = readFileSync(folder.file("whole/src/sign/sign.ts"), "utf8");
    const head = 'import { expect, test } from "bun:test";\nimport { isNegative } from "../../src/sign/sign.ts";\n';
    write(
      "test/sign/sign.test.ts", // the second test depends on the first one
      `${head}let x = 0;\ntest("one", () => expect((x = 1)).toBe(1));\n` +
        'test("signs", () => expect(isNegative(x) || !isNegative(-x)).toBe(false));\n',
    );
    // A separate folder, because another run on this machine may make and remove copies meanwhile.
    const temporary = folder.file("temporary");
    mkdirSync(temporary);
    using _ = withVariables({ TMPDIR: temporary });
    const copies = () => [...new Bun.Glob("orchard-mutate-*").scanSync({ cwd: tmpdir(), onlyFiles: false })].sort();
    const earlier = copies();
    const log = spyOn(console, "log").mockImplementation(() => undefined);
    let printed: string;
    try {
      await mutate(["--jobs", "2", "src/sign/sign.ts:1"], folder.file("whole"));
      printed = log.mock.calls.join("\n");
    } finally {
      log.mockRestore();
    }
    expect(printed).toContain("survived  src/sign/sign.ts:1 boundary");
    expect(printed).toContain("=> x < 0;\n      → export const isNegative = (x: number): boolean => x <= 0;");
    expect(printed).toContain("ran 2 files of 31 s: test/sign/sign.test.ts, test/far.test.ts");
    expect(printed).toContain("killed    src/sign/sign.ts:1 comparison\n      by test/sign/sign.test.ts: signs");
    expect(printed).toContain("TypeScript   1 of 3 killed (33.3 %)");
    expect(readFileSync(folder.file("whole/src/sign/sign.ts"), "utf8")).toBe(source);
    expect(copies()).toEqual(earlier);
  });

  test("types of many mutants are checked at once; an error in another file is attributed to its mutant", async () => {
    const write = smallRepository("many");
    write("src/a.ts", "export const a = 1 as const;\nexport const two: 2 = 2;\n");
    write("src/b.ts", "export const b = (x: number): number => x + 1;\n");
    write("src/c.ts", 'import { a } from "./a.ts";\nexport const c: 1 = a;\n');
    write("src/all.ts", 'import "./b.ts";\nimport "./c.ts";\n');
    using copy = await Copy.of(folder.file("many"));
    const change = (file: string, text: string, replacement: string) => {
      const source = readFileSync(join(copy.root, file), "utf8");
      const start = source.indexOf(text);
      const line = source.slice(0, start).split("\n").length;
      return { file, line, kind: "constant", start, end: start + text.length, replacement };
    };
    const ofA = change("src/a.ts", "1", "3"); // an error in c.ts
    const inA = change("src/a.ts", "= 2", "= 4"); // an error in a.ts itself
    const fine = change("src/b.ts", "1", "2");
    const inB = change("src/b.ts", "x + 1", '"x"');
    const found = await checkManyTypes(copy, [ofA, fine, inA, inB]);
    expect([...found.keys()]).toHaveLength(4);
    expect(found.get(ofA)).toContain("src/c.ts(2,14): error");
    expect(found.get(inA)).toContain("src/a.ts(2,14): error");
    expect(found.get(inB)).toContain("src/b.ts(1,41): error");
    expect(found.get(fine)).toBeUndefined();
    expect(readFileSync(join(copy.root, "src/b.ts"), "utf8")).toBe("export const b = (x: number): number => x + 1;\n");
  });

  test("a later run resumes where an earlier one ended", async () => {
    smallRepository("later");
    const log = spyOn(console, "log").mockImplementation(() => undefined);
    let printed: string;
    try {
      await mutate(["--skip", "1", "--count", "1", "src/sign/sign.ts:1"], folder.file("later"));
      printed = log.mock.calls.join("\n");
    } finally {
      log.mockRestore();
    }
    expect(printed).toContain("   1  killed    src/sign/sign.ts:1 comparison");
    expect(printed).toContain("1 of 1 killed (100.0 %)");
    expect(printed).not.toContain("boundary");
    expect(printed).toContain("--skip 2 goes on from here"); // continues with the line's third mutation
  });

  test("mutants with type errors are not counted, and tests that fail without a mutant are ignored", async () => {
    const write = smallRepository("types");
    write("src/sign/sign.ts", "export const isNegative = (x: number): number => x + (3 as 3 | 4);\n");
    write(
      "src/word.ts",
      'import { isNegative } from "./sign/sign.ts";\nexport const word = (x: string): string => x + isNegative(1);\n',
    );
    write(
      "test/far.test.ts",
      'import { expect, test } from "bun:test";\nimport "../src/word.ts";\ntest("far", () => expect(1).toBe(2));\n',
    );
    const log = spyOn(console, "log").mockImplementation(() => undefined);
    let printed: string;
    try {
      await mutate(["./src/word.ts:2"], folder.file("types"));
      printed = log.mock.calls.join("\n");
    } finally {
      log.mockRestore();
    }
    expect(printed).toMatch(/src\/word.ts:2 arithmetic: not counted: .*error TS/);
    expect(printed).toContain("TypeScript   0 of 2 killed (0.0 %), 1 not counted");
    expect(printed).toContain("test/far.test.ts fails without a mutant, and judged none");
  });
});

test.skipIf(!hasCompiler())("lines of C++ for another machine are excluded", async () => {
  const root = folder.file("compiled");
  mkdirSync(join(root, "native", "cpu"), { recursive: true });
  const source = "#if 0\nint none;\n#endif\n#define TWO \\\n  2\nint two = TWO;\n";
  writeFileSync(join(root, "native", "cpu", "a.h"), source);
  writeFileSync(join(root, "native", "cpu", "b.cpp"), '#include "a.h"\n');
  const mutation = { file: "native/cpu/a.h", kind: "constant", start: 0, end: 0, replacement: "" };
  const found: boolean[] = [];
  for (const line of [2, 5, 6]) found.push(await isCompiled({ root }, { ...mutation, line }));
  expect(found).toEqual([false, true, true]);
  expect(readFileSync(join(root, "native", "cpu", "a.h"), "utf8")).toBe(source);
});

describe("tests run in shared processes", () => {
  test("files share a process up to some seconds, and those that depend on load run separately", () => {
    const files = ["a 4", "b 10", "c 2", "d.memory 1", "e 1", "f 100", "g 1"].map((text) => {
      const [name, seconds] = text.split(" ");
      return { file: `test/${name}.test.ts`, seconds: Number(seconds) };
    });
    const groups = groupsOf(files).map((group) => group.map(({ file }) => file.slice(5, -8)).join());
    expect(groups).toEqual(["a,b", "c", "d.memory", "e", "f", "g"]);
  });

  test("the first failure is named with its file", () => {
    const passed = "\ntest/a.test.ts:\n(pass) one [0.07ms]\n\ntest/b.test.ts:\n";
    expect(
      firstFailure(`${passed}error: expected 1\n(fail) two > three [2.25ms]\n(fail) four\ntest/c.test.ts:\n`),
    ).toEqual({ file: "test/b.test.ts", name: "two three", what: "test/b.test.ts: two > three" });
    const unhandled = `${passed}\n# Unhandled error between tests\n-------\nerror: at load\n`;
    expect(firstFailure(unhandled)).toMatchObject({ name: undefined, what: "test/b.test.ts: at load" });
    expect(firstFailure(passed, true).what).toBe("test/b.test.ts: the tests do not end");
  });

  test("a program that hangs is killed, with its children", async () => {
    const child = "await Bun.spawn([process.execPath, '-e', 'setInterval(() => {}, 1000)']).exited";
    const { isOver } = await runLimited([process.execPath, "-e", child], { cwd: folder.path, seconds: 0.5 });
    expect(isOver).toBe(true);
  });
});

describe("arguments of `bun run mutate`", () => {
  test("arguments of the command are parsed", () => {
    const plain = { place: { path: "", line: undefined }, seed: 1, count: 20, skip: 0, jobs: 1, seconds: 180 };
    expect(readMutateOptions([])).toEqual(plain);
    expect(readMutateOptions(["--seed=7", "--count=3", "--skip=4", "--jobs=2", "--seconds=60", "src/optim/"])).toEqual({
      seed: 7,
      count: 3,
      skip: 4,
      jobs: 2,
      seconds: 60,
      place: { path: "src/optim", line: undefined },
    });
    expect(readMutateOptions(["src/a.ts:40"]).place).toEqual({ path: "src/a.ts", line: 40 });
  });

  test.each([
    [["--nonsense"], "nonsense"],
    [["--seed", "x"], '--seed to be an integer of at least 0, got "x"'],
    [["--count", "0"], "--count to be an integer of at least 1"],
    [["src", "kernels"], "got src and kernels"],
  ])("%j is rejected", (words, message) => {
    expect(() => readMutateOptions(words)).toThrow(Failure);
    expect(() => readMutateOptions(words)).toThrow(message);
  });

  test("a place where nothing can be mutated is rejected", async () => {
    await expect(mutate(["docs"])).rejects.toThrow(
      "expected a folder or a file of src, native/cpu or kernels, got docs",
    );
  });
});
