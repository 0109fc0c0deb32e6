/** Building the cpu backend's dylib: its objects, their order, and when one is rebuilt. */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { compile, forNow, laterFamilies, leastOptimized, usualBuild } from "../../scripts/cpu/build.ts";
import { findCompiler, findCompilers } from "../../scripts/cpu/compiler.ts";
import { blockOf, generatedHeaders, writeGenerated } from "../../scripts/cpu/generated.ts";
import {
  includedFiles,
  isOutOfDate,
  keyFile,
  objectFiles,
  objectKey,
  objectName,
  setsOf,
} from "../../scripts/cpu/objects.ts";
import { precompile } from "../../scripts/cpu/precompile.ts";
import { setsOfMachine, setsSource, tableNames } from "../../scripts/cpu/sets.ts";
import { slowestFirst } from "../../scripts/cpu/slow.ts";
import { cpuCalls } from "../../src/backend/cpu/call.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";
import { usually } from "../support/repeats.ts";

const { path: folder } = testFolder("objects");
const compiler = { command: ["c++"], linkFlags: [], version: "1", isClang: false };

describe("generated headers are written once", () => {
  const pathOf = (name: string) => join(folder, "native", ".build", name);

  test("generated headers are written once, and again after a change", () => {
    writeGenerated(folder);
    const paths = generatedHeaders().map(({ name }) => pathOf(name));
    for (const path of paths) utimesSync(path, 1, 1);
    writeFileSync(paths[0], "other");
    writeGenerated(folder);
    expect(paths.map((path) => statSync(path).mtimeMs > 1000)).toEqual(paths.map((_, index) => index === 0));
    expect(readFileSync(paths[0], "utf8")).toBe(generatedHeaders()[0].text);
  });

  test("generated headers that no call needs are removed", () => {
    const path = pathOf("generated/former_block.h");
    writeFileSync(path, "");
    writeGenerated(folder);
    expect(existsSync(path)).toBe(false);
  });

  test("generated headers declare the fields of each block in the order in which they are written", () => {
    const text = generatedHeaders()
      .map((header) => header.text)
      .join("");
    const fieldsOf = (struct: string): string[] => {
      const [, bases = "", body] = new RegExp(`^struct ${struct}(?: : ([\\w, ]+))? {\\n([^}]*)};$`, "m").exec(text)!;
      const declared = [...body.matchAll(/ (\w+)(?:\[\d+\])*;$/gm)].map(([, field]) => field.replaceAll("_", ""));
      return [...bases.split(", ").filter(Boolean).flatMap(fieldsOf), ...declared];
    };
    expect(cpuCalls.size).toBeGreaterThan(100);
    for (const call of cpuCalls.values())
      expect(fieldsOf(blockOf(call))).toEqual(call.fields.map((field) => field.name.toLowerCase()));
  });
});

describe("objects of the build", () => {
  test("a file for every instruction set is compiled once for each, and the most basic set is linked first", () => {
    mkdirSync(join(folder, "kernels"), { recursive: true });
    for (const name of ["plain.cpp", "kernels/add.isa.cpp"]) writeFileSync(join(folder, name), "");
    const objects = objectFiles(folder, "/objects", compiler);
    const sets = process.arch === "x64" ? ["baseline", "avx2", "avx512"] : ["neon"];
    expect(objects.map(objectName)).toEqual([`plain.${sets[0]}`, ...sets.map((set) => `kernels.add.isa.${set}`)]);
    for (const [index, { flags }] of objects.slice(1).entries())
      expect(flags).toContain(`-DORCHARD_ISA=${sets[index]}`);
    const lessOptimized = objects.filter(({ flags }) => flags.includes("-O2")).map(objectName);
    expect(lessOptimized).toEqual(process.arch === "x64" ? ["kernels.add.isa.baseline"] : []);
  });

  const sources = {
    "s.cpp": '#include "a/h.h"\n  #  include "none.h"\n',
    "a/h.h": '#include "../s.cpp"\n#include <vector>\n',
  };
  const write = (root: string, files: Readonly<Record<string, string>>) => {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(root, name, ".."), { recursive: true });
      writeFileSync(join(root, name), text);
    }
    return { source: join(root, "s.cpp"), path: join(root, "s.o"), flags: ["-O2"] };
  };
  const newFolder = () => mkdtempSync(join(folder, "keys-"));

  test("includes are found recursively, each once", () => {
    const { source } = write(newFolder(), sources);
    expect(includedFiles(source).map((path) => relative(dirname(source), path))).toEqual(["s.cpp", "a/h.h", "none.h"]);
  });

  test("a key does not depend on the place and time of the sources", () => {
    const [one, other] = [write(newFolder(), sources), write(newFolder(), sources)];
    utimesSync(other.source, 1000, 1000);
    expect(objectKey(compiler, one)).toBe(objectKey(compiler, other));
  });

  test("a key changes with each input of the object", () => {
    const plain = write(newFolder(), sources);
    const keys = [
      objectKey(compiler, plain),
      objectKey({ ...compiler, version: "2" }, plain),
      objectKey({ ...compiler, command: ["clang++"] }, plain),
      objectKey(compiler, { ...plain, flags: ["-O3"] }),
      objectKey(compiler, write(newFolder(), { ...sources, "s.cpp": `${sources["s.cpp"]} ` })),
      objectKey(compiler, write(newFolder(), { ...sources, "a/h.h": `${sources["a/h.h"]} ` })),
      objectKey(compiler, write(newFolder(), { ...sources, "none.h": "" })),
    ];
    const debug = { ...plain, flags: ["-g"] };
    const moved = { ...write(newFolder(), sources), flags: ["-g"] };
    expect(objectKey(compiler, debug)).not.toBe(objectKey(compiler, moved)); // debug information names the source
    writeFileSync(plain.source, "int changed;\n");
    expect(new Set([...keys, objectKey(compiler, plain)]).size).toBe(keys.length + 1);
  });

  test("an object is out of date if it is missing, or has other inputs", () => {
    const object = write(newFolder(), sources);
    expect(isOutOfDate(object, "key")).toBe(true);
    writeFileSync(object.path, "");
    expect(isOutOfDate(object, "key")).toBe(true);
    writeFileSync(keyFile(object.path), "key");
    expect(isOutOfDate(object, "key")).toBe(false);
    expect(isOutOfDate(object, "other")).toBe(true);
  });

  test.each([false, true])(
    "an object is out of date if its source was edited while it was compiled: %p",
    async (isEdited) => {
      const { path: folder } = testFolder(`edited_${isEdited}`);
      const [source, script] = [join(folder, "a.cpp"), join(folder, "compiler.sh")];
      writeFileSync(source, "int a;");
      // A compiler's arguments: -c source -o object.
      writeFileSync(script, `${isEdited ? 'echo "int b;" > "$2"' : ""}\necho object > "$4"\n`);
      const compiler = { command: ["sh", script], version: "1" };
      const object = { source, path: join(folder, "a.o"), flags: [] };
      await compile(compiler, object, undefined, true);
      expect(isOutOfDate(object, objectKey(compiler, object))).toBe(isEdited);
    },
  );

  test("an object is out of date after a compilation that failed", async () => {
    const { path: folder } = testFolder("failed_compilation");
    const object = { source: join(folder, "a.cpp"), path: join(folder, "a.o"), flags: [] };
    const compiler = { command: ["false"], version: "1" };
    writeFileSync(object.source, "int a;");
    writeFileSync(object.path, "object");
    writeFileSync(keyFile(object.path), objectKey(compiler, object));
    expect(isOutOfDate(object, objectKey(compiler, object))).toBe(false);
    await expect(compile(compiler, object, undefined, true)).rejects.toThrow("does not compile");
    expect(isOutOfDate(object, objectKey(compiler, object))).toBe(true);
  });
});

describe("a quick build compiles only what changed", () => {
  const names = ["matmul.matmul.baseline", "linalg.qr.baseline", "linalg.lu.isa.avx512", "quant.quant.isa.avx512"];
  const objects = (folder: string) =>
    names.map((name) => ({
      source: `${name.replace(/\.[^.]+$/, "")}.cpp`,
      path: join(folder, `${name}.o`),
      flags: ["-O3", "-Wall", "-Werror"],
    }));
  const built = (isClang: boolean, given: ReturnType<typeof objects>, stale = true) =>
    forNow({ isClang }, given, () => stale).map((object) => ({ name: objectName(object), flags: object.flags }));

  test("a quick build compiles objects that are out of date, without warnings, and keeps the others", () => {
    const own = { ...objects("/objects")[0], source: "matmul/matmul.cpp" };
    const perSet = { ...own, source: "matmul/kernel.isa.cpp" };
    const flags = ["-O3", "-Wall", "-Werror", "-O2", "-fvect-cost-model=dynamic", "-w"];
    expect(built(false, [perSet])).toEqual([{ name: names[0], flags }]);
    expect(built(true, [own])[0].flags).toEqual(["-O3", "-Wall", "-Werror", "-O1", "-w"]);
    expect(built(false, [own], false)[0].flags).toEqual(own.flags);
    // For mutants, all objects are compiled quickly, because each runs only for seconds.
    const apart = forNow({ isClang: false }, [own, perSet], () => true, true);
    expect(apart.map(({ flags: used }) => used.slice(-2))).toEqual([
      ["-O1", "-w"],
      ["-O1", "-w"],
    ]);
  });

  test("warnings are errors only in full builds: code with warnings compiles in a quick build", async () => {
    const { command } = await findCompiler();
    const source = join(folder, "warns.cpp");
    writeFileSync(source, "static int unused() { return 1; }\nint used() { int x; return x; }\n");
    const whole = { source, path: join(folder, "warns.baseline.o"), flags: ["-Wall", "-Wextra", "-Werror"] };
    const [now] = forNow({ isClang: (await findCompiler()).isClang }, [whole], () => true);
    const compile = ({ flags, path }: typeof whole) => Bun.spawnSync([...command, ...flags, "-c", source, "-o", path]);
    expect(compile(whole).exitCode).not.toBe(0);
    const quick = compile({ ...whole, flags: [...now.flags] });
    expect([quick.exitCode, quick.stderr.toString()]).toEqual([0, ""]);
  });

  test("a quick build leaves out linalg and quant unless one of them was compiled before", () => {
    const place = mkdtempSync(join(folder, "families-"));
    expect(built(false, objects(place)).map(({ name }) => name)).toEqual([names[0]]);
    writeFileSync(join(place, `${names[1]}.o`), "");
    expect(built(false, objects(place)).map(({ name }) => name)).toEqual(names);
  });
});

describe("the suite's build", () => {
  const object = (source: string, set: string) => ({
    source: `/sources/${source}.cpp`,
    path: `/objects/${source}.${set}.o`,
    flags: ["-O3", "-Werror"],
  });
  const objects = [object("sort", "baseline"), ...["baseline", "avx2", "avx512"].map((set) => object("add.isa", set))];
  const flagsOf = (isStale: boolean, sets?: readonly string[]) =>
    leastOptimized(objects, () => isStale, sets).map(({ flags }) => flags);

  test("optimizes objects of unused sets least if they are out of date", () => {
    const full = ["-O3", "-Werror"];
    const least = [...full, "-O1", "-w"];
    expect(flagsOf(true, ["baseline", "avx2"])).toEqual([full, least, least, full]);
    expect(flagsOf(false, ["baseline", "avx2"])).toEqual([full, full, full, full]);
    expect(flagsOf(true)).toEqual([full, full, full, full]);
  });

  test("compiles every set, and fully optimizes those that programs use on this machine", async () => {
    const compiler = await findCompiler();
    const [build, whole] = [await usualBuild("tests"), await usualBuild("all")];
    expect([build.sets, whole.sets, whole.unusedSets]).toEqual([undefined, undefined, undefined]);
    const all = setsOf(compiler).map(({ name }) => name);
    const used = setsOfMachine(setsOf(compiler));
    expect(used.length).toBeGreaterThan(0);
    expect(build.unusedSets).toEqual(all.filter((name) => !used.includes(name)));
  });
});

describe("a machine needs a certain instruction set", () => {
  const all = ["baseline", "avx2", "avx512"].map((name) => ({ name, flags: [] }));
  const v3 = "avx avx2 fma f16c movbe bmi1 bmi2 abm";
  const v4 = `${v3} avx512f avx512bw avx512cd avx512dq avx512vl`;
  const processors = (flags: string) => `processor\t: 0\nflags\t\t: fpu sse2 ${flags} rdrand\nbugs\t\t:\n`;

  test("a machine needs the best set that its processor supports, and the set that the user chose", () => {
    expect(setsOfMachine(all, processors(v4), undefined)).toEqual(["avx512"]);
    expect(setsOfMachine(all, processors(v3), undefined)).toEqual(["avx2"]);
    expect(setsOfMachine(all, processors(v4.replace("avx512dq", "")), undefined)).toEqual(["avx2"]);
    expect(setsOfMachine(all, processors(v4.replace(" fma", "")), undefined)).toEqual(["baseline"]);
    expect(setsOfMachine(all, processors(""), "avx2")).toEqual(["baseline", "avx2"]);
    expect(setsOfMachine(all, processors(v4), "avx512_bf16")).toEqual(["avx512"]);
  });

  test("all sets are needed if the system does not report the processor's features", () => {
    expect(setsOfMachine(all, "processor : 0\n", undefined)).toEqual(["baseline", "avx2", "avx512"]);
    expect(setsOfMachine([all[0]], processors(v4), undefined)).toEqual(["baseline"]);
  });

  test("slow files are compiled first, the others in their order", () => {
    const objects = ["a.baseline", "scan.scan.isa.avx2", "attention.backward.isa.avx2", "b.baseline"];
    const named = objects.map((name) => ({ source: "", path: `/o/${name}.o`, flags: [] }));
    const order = slowestFirst(named).map(objectName);
    expect(order).toEqual(["attention.backward.isa.avx2", "scan.scan.isa.avx2", "a.baseline", "b.baseline"]);
  });

  test("headers are precompiled for flags that many objects share, and removed with those objects", async () => {
    const own = await findCompiler();
    const compiling = { ...own, command: [process.platform === "linux" ? "/usr/bin/c++" : own.command[0]] };
    const of = (flags: string[]) => ({ source: "", path: "", flags });
    const many = Array.from({ length: 6 }, () => of(["-std=c++17", "-O1"]));
    const few = of(["-std=c++17", "-O2"]);
    const made = existsSync(compiling.command[0])
      ? await precompile(compiling, folder, [...many, few], () => undefined, "#include <vector>\n")
      : undefined;
    if (made === undefined) return expect(await precompile(own, folder, [few], () => undefined)).toBeUndefined();
    const [flag, header] = made.flagsFor(many[0]);
    expect([flag, made.flagsFor(few)]).toEqual([own.isClang ? "-include-pch" : "-include", []]);
    expect(existsSync(own.isClang ? header : `${header}.gch`)).toBe(true);
    await made.remove();
    expect(existsSync(join(folder, "precompiled"))).toBe(false);
  });
});

test("precompiled headers are rebuilt after they were removed, and sources compile without them too", async () => {
  for (const own of usually(await findCompilers(), (_, at) => at === 0)) {
    const place = mkdtempSync(join(folder, "precompiled-"));
    const source = join(place, "source.cpp");
    writeFileSync(source, "#include <vector>\nint size() { return int(std::vector<int>(3).size()); }\n");
    const object = { source, path: join(place, "source.baseline.o"), flags: ["-std=c++17"] };
    const compile = (flags: readonly string[]) => {
      const command = [...own.command, ...object.flags, ...flags, "-c", source, "-o", object.path];
      expect(Bun.spawnSync(command).stderr.toString()).toBe("");
    };
    for (let times = 0; times < 2; times++) {
      const headers = await precompile(own, place, Array(6).fill(object), () => undefined, "#include <vector>\n");
      compile(headers?.flagsFor(object) ?? []);
      await headers?.remove();
    }
    compile([]);
  }
});

const sources = join(packageRoot, "native", "cpu");
const built = join(packageRoot, "native", ".build", "cpu");

describe.if(process.platform === "linux" && process.arch === "x64")("a dylib of some instruction sets", () => {
  /** Links the objects of the last full build with the tables of only these sets, and runs a program with it. */
  async function runWith(
    sets: readonly string[],
    program: string,
    environment: Record<string, string> = {},
    without: readonly string[] = [],
  ) {
    const compiler = await findCompiler();
    const [source, library] = [join(folder, "sets.cpp"), join(folder, `lib-${[...sets, ...without].join("-")}.so`)];
    writeFileSync(source, setsSource(sources, setsOf(compiler), sets));
    const objects = objectFiles(sources, built, compiler, [], sets)
      .filter((object) => !without.includes(objectName(object).split(".")[0]))
      .map(({ path }) => path);
    const command = [...compiler.command, "-std=c++17", "-fPIC", "-fvisibility=hidden", "-shared", "-pthread", source];
    const rest = ["-Wl,-z,defs", "-ldl", ...compiler.linkFlags, "-o", library];
    const link = Bun.spawnSync([...command, ...objects, ...rest]);
    expect(link.stderr.toString()).toBe("");
    const env = { ...process.env, ORCHARD_CPU_LIBRARY: library, ORCHARD_BACKEND: "cpu", ...environment };
    const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", program], { cwd: packageRoot, env });
    return `${stdout}${stderr}`;
  }
  const compute = `
    import { codepaths, ones, setStrict } from "./src/index.ts";
    import { cpuLibrary } from "./src/backend/cpu/loader.ts";
    import { cpuInfo } from "./src/backend/cpu/report.ts";
    setStrict(true);
    const x = ones([64, 64]).matmul(ones([64, 64])).softmax(-1).sum();
    const backends = new Set(codepaths().map(({ backend }) => backend));
    console.log(x.item().toFixed(3), cpuInfo(cpuLibrary().native).isas.join(), [...backends].join());`;

  test("the dylib uses only instruction sets that it was built with", async () => {
    expect(await runWith(["baseline"], compute)).toBe("64.000 baseline cpu\n");
  });

  test("the dylib rejects a set that it was not built with, and names the command that builds it", async () => {
    const refused = await runWith(["baseline"], compute, { ORCHARD_CPU_ISA: "avx2" });
    expect(refused).toContain("this build of the dylib has no kernels for avx2: in a clone, `bun run build` compiles");
  });

  test("a dylib for another processor is rejected as a whole", async () => {
    const refused = await runWith([], compute);
    expect(refused).toContain("the dylib was built for another processor");
  });

  test("a dylib without linalg and quant links and trains, and errors name the build command", async () => {
    const program = `
      import { codepaths, linalg, mseLoss, nn, optim, tensor } from "./src/index.ts";
      const model = new nn.Linear(2, 1);
      const optimizer = new optim.AdamW(model.parameters(), { lr: 0.1 });
      mseLoss(model.forward(tensor([[1, 2]])), tensor([[1]])).backward();
      optimizer.step();
      console.log([...new Set(codepaths().map(({ backend }) => backend))].join());
      console.log(linalg.cholesky(tensor([[4]])).item(), codepaths().at(-1).backend);`;
    const printed = await runWith(["baseline"], program, {}, laterFamilies);
    expect(printed).toContain("cpu\n2 reference\n");
    expect(printed).toContain("has no function cholesky; `bun run build` rebuilds it");
  });

  test("the dylib has every table that the headers declare", () => {
    const names = tableNames(sources);
    expect(names.length).toBeGreaterThan(30);
    expect(names).toEqual(expect.arrayContaining(["matmul_kernels", "unary_operations", "quant_kernels"]));
  });
});

test("the machine's compiler is found and its version reported", async () => {
  const { version, isClang } = await findCompiler();
  expect(version).toMatch(/\d+\.\d+/);
  expect(isClang).toBe(/clang/i.test(version));
});
