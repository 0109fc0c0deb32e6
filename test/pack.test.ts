/**
 * The packages as others get them: staged and packed, added to an empty project without network or toolchain, and used
 * there. They and what they depend on come from a registry of this process's. The dylib is this machine's build;
 * `bun run release --local` does the same with the portable one, from a real registry, in projects of every kind.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { basename, join } from "node:path";
import packageFile from "../package.json";
import { packFolders } from "../scripts/release/pack.ts";
import { deviceTarget, stageDevice, stageMain, stagePlatform } from "../scripts/release/stage.ts";
import { toolchainsFolder } from "../src/cli/toolchain.ts";
import { buildFolder, cpuLibraryName, libraryName, packageRoot, platform } from "../src/core/paths.ts";
import * as library from "../src/index.ts";
import { testFolder } from "./support/folder.ts";
import { localRegistry } from "./support/registry.ts";

const { path: folder } = testFolder("pack");
const project = join(folder, "project");
const nothing = join(folder, "nothing");
const installed = join(project, "node_modules", packageFile.name);

const environment = { PATH: nothing, HOME: nothing, TMPDIR: folder };

/**
 * Runs Bun in the empty project of a machine that has nothing else: no tool on PATH, no cache, a registry that does not
 * answer.
 */
function bun(...words: string[]) {
  const { stdout, stderr, exitCode } = Bun.spawnSync([process.execPath, ...words], {
    cwd: project,
    env: { ...environment, BUN_CONFIG_REGISTRY: "http://127.0.0.1:9/" },
  });
  return { out: stdout.toString(), err: stderr.toString(), exitCode };
}

/** Adds the package in that project, and returns the names that were asked of the registry. */
async function add(): Promise<string[]> {
  using registry = localRegistry(folder, { [packageFile.name]: main, [platformName]: platformFolder });
  const child = Bun.spawn([process.execPath, "add", packageFile.name], {
    cwd: project,
    env: { ...environment, BUN_CONFIG_REGISTRY: registry.url },
    stdout: "ignore",
    stderr: "pipe",
  });
  const err = await child.stderr.text();
  const exitCode = await child.exited;
  expect([exitCode, exitCode === 0 ? "" : err]).toEqual([0, ""]);
  return [...registry.served].sort();
}

/** Learns 2·x + 1 from eight points by gradient descent, and says what it found and where. */
const program = `
import { codepaths, noGrad, type Tensor, tensor } from "${packageFile.name}";

const x: Tensor<"float32"> = tensor([[-2], [-1.5], [-1], [-0.5], [0.5], [1], [1.5], [2]]);
const y = x.mul(2).add(1);
let [w, b]: [Tensor, Tensor] = [tensor([[0]]), tensor([0])];
for (let step = 0; step < 200; step++) {
  for (const parameter of [w, b]) parameter.requiresGrad = true;
  const loss = x.matmul(w).add(b).sub(y).square().mean();
  loss.backward();
  [w, b] = noGrad(() => [w.sub(w.grad!.mul(0.1)).detach(), b.sub(b.grad!.mul(0.1)).detach()]);
}
const learned: readonly number[] = [Number(w.item()), Number(b.item())];
const backends = [...new Set(codepaths().map(({ backend }) => backend))];
console.log(JSON.stringify({ learned, backends, sum: tensor([1, 2, 3]).sum().item() }));
`;

beforeAll(async () => {
  mkdirSync(nothing, { recursive: true });
  await Bun.write(join(project, "package.json"), '{ "name": "empty", "type": "module" }\n');
  await Bun.write(join(project, "program.ts"), program);
  const dylibs = [join(buildFolder, cpuLibraryName), ...(hasMetal ? [join(buildFolder, libraryName)] : [])];
  await stageMain(main);
  await stagePlatform(platformFolder, platform, dylibs);
  [tarball, platformTarball] = (await packFolders([main, platformFolder], join(folder, "tarballs"))) as [
    string,
    string,
  ];
});

/** On macOS, unless this run leaves Metal out. */
const hasMetal = process.platform === "darwin" && existsSync(join(buildFolder, libraryName));

const platformName = `${packageFile.name}-${platform}`;
const main = join(folder, "packages", packageFile.name);
const platformFolder = join(folder, "packages", platformName);
let [tarball, platformTarball] = ["", ""];

describe("the tarballs", () => {
  const listed = (path = tarball) => {
    const { stdout } = Bun.spawnSync(["tar", "-tzf", path]);
    return stdout
      .toString()
      .trim()
      .split("\n")
      .map((path) => path.replace(/^package\//, ""));
  };

  test("the package holds JavaScript, declarations, kernels and documents, and nothing else", () => {
    const kinds = [
      /^(?:package\.json|README\.md|LICENSE|CHANGELOG\.md)$/,
      /^docs\/[\w/-]+\.(?:md|svg|png)$/,
      /^src\/[\w./]+(?<!\.d)\.(?:js|html|css)$/,
      /^src\/[\w./]+\.d\.ts$/,
      /^src\/kernels\.json$/,
      /^src\/bundle\/(?:bytecode\.js\.jsc|(?:bytecode|library)\.js\.map)$/,
      /^src\/train\/dashboard\/page\/(?:client|ticks)\.ts$/,
      /^src\/serve\/page\/(?:client|events)\.ts$/,
      /^kernels\/[\w/]+\.(?:metal|h)$/,
      /^swift\/(?:Package\.swift|Sources\/.*)$/,
    ];
    const names = listed();
    expect(names.filter((name) => !kinds.some((kind) => kind.test(name)))).toEqual([]);
    expect(kinds.filter((kind) => !names.some((name) => kind.test(name)))).toEqual([]);
    expect(names.filter((name) => /(?:^|\/)\.|\.test\.|(?:^|\/)[Tt]ests?\/|\.o$|~$/.test(name))).toEqual([]);
  });

  test("the platform's holds this machine's dylib of the cpu backend, and of Metal only Apple's", () => {
    const dylibs = [cpuLibraryName, ...(hasMetal ? [libraryName] : [])];
    const others = ["LICENSE", "README.md", "index.d.ts", "index.js", "package.json"];
    expect(listed(platformTarball).sort()).toEqual([...others, ...dylibs].sort());
  });

  test("have checksums that sha256sum reads", async () => {
    const sums = await Bun.file(join(folder, "tarballs", "SHA256SUMS")).text();
    const digest = (path: string) => new Bun.SHA256().update(readFileSync(path)).digest("hex");
    expect(sums).toBe([tarball, platformTarball].map((path) => `${digest(path)}  ${basename(path)}\n`).join(""));
  });

  test("no declaration names a TypeScript source, and none is of type any", () => {
    const declarations = [...new Bun.Glob("src/**/*.d.ts").scanSync({ cwd: main })];
    const texts = declarations.map((file) => ({ file, text: readFileSync(join(main, file), "utf8") }));
    const withoutComments = (text: string) => text.replace(/\/\*[\s\S]*?\*\//g, "");
    const namesSource = (text: string) => /["'][./][^"'\n]*(?<!\.d)\.ts["']/.test(withoutComments(text));
    expect(texts.filter(({ text }) => namesSource(text)).map(({ file }) => file)).toEqual([]);
    const anys = /(?:[:|=<,]|=>)\s*any\s*(?:[;,)>|[\]}]|$)/m;
    const code = (text: string) => text.replace(/\/\*[\s\S]*?\*\/|"[^"\n]*"/g, "");
    expect(texts.filter(({ text }) => anys.test(code(text))).map(({ file }) => file)).toEqual([]);
  });
});

describe("in an empty project", () => {
  let asked: string[];
  beforeAll(async () => {
    asked = await add();
  });

  function used() {
    const { out, err, exitCode } = bun("program.ts");
    expect([exitCode, exitCode === 0 ? "" : err]).toEqual([0, ""]);
    return { ...(JSON.parse(out) as { learned: number[]; backends: string[]; sum: number }), err };
  }

  function expectLearned({ learned: [w, b], sum }: { learned: number[]; sum: number }): void {
    expect(w!).toBeCloseTo(2, 4);
    expect(b!).toBeCloseTo(1, 4);
    expect(sum).toBe(6);
  }

  test("it and what it depends on is all that was added", () => {
    const dependencies = Object.keys(packageFile.dependencies);
    expect(asked).toEqual(expect.arrayContaining(dependencies));
    const names = ["*/package.json", "@*/*/package.json"].flatMap((pattern) => [
      ...new Bun.Glob(pattern).scanSync({ cwd: join(project, "node_modules") }),
    ]);
    expect(names.map((name) => name.replace("/package.json", "")).sort()).toEqual(asked);
    expect(asked).toContain(platformName);
  });

  test("it computes and trains by the packed dylib, without a word", () => {
    const result = used();
    expectLearned(result);
    expect(result.backends).toEqual([hasMetal ? "metal" : "cpu"]);
    if (process.platform === "linux" || hasMetal) expect(result.err).toBe("");
  });

  test("it is one file with bytecode, which this Bun takes, and says what each module said", async () => {
    await Bun.write(join(project, "one.js"), oneFile);
    await Bun.write(
      join(project, "items.ts"),
      "export default () => ({ length: 2, get: (index: number) => -index });\n",
    );
    const { out, err, exitCode } = bun("one.js");
    expect([exitCode, exitCode === 0 ? "" : err]).toEqual([0, ""]);
    const told = JSON.parse(out) as { loaded: string[]; names: Record<string, string>; stack: string; item: number };
    expect(told.loaded).toEqual([
      ...["bundle/bytecode.js", "bundle/chosen.js", "core/packaged.js", "core/place.js", "index.js"],
    ]);
    expect(told.names).toEqual(namesOf(library as unknown as Names));
    expect(told.stack).toContain(join(installed, "src", "ops", "matmul", "matmul.js"));
    expect(existsSync(join(installed, "src", "ops", "matmul", "matmul.js"))).toBe(true);
    expect(told.item).toBe(-1); // a thread gave it, by a module of its own
  });

  test("matchers for tests are of the same library", async () => {
    const text = `import { expect, test } from "bun:test";
      import "${packageFile.name}/test";
      import { tensor } from "${packageFile.name}";
      test("one", () => expect(tensor([1])).toBeCloseToTensor(tensor([1])));`;
    await Bun.write(join(project, "one.test.ts"), text);
    const { err, exitCode } = bun("test", "one.test.ts");
    expect([exitCode, exitCode === 0 ? "" : err]).toEqual([0, ""]);
  });

  test("nothing in it names the folder in which it was bundled", () => {
    for (const file of ["bytecode.js", "bytecode.js.map", "library.js", "library.js.map"])
      expect([file, readFileSync(join(installed, "src", "bundle", file), "utf8").includes(basename(folder))]).toEqual([
        file,
        false,
      ]);
  });

  test.each([
    ["bytecode of another version", (path: string) => Bun.write(`${path}.jsc`, new Uint8Array(1000))],
    ["no bytecode", (path: string) => rm(`${path}.jsc`)],
    ["another engine", (path: string) => rm(path)], // the file that is then not asked for
  ])("%s: the text of the library computes, without a word", async (_, spoil) => {
    const path = join(installed, "src", "bundle", "bytecode.js");
    const kept = [path, `${path}.jsc`].map((file) => [file, readFileSync(file)] as const);
    rmSync(path); // a link to the file in Bun's cache
    writeFileSync(path, kept[0]![1]);
    rmSync(`${path}.jsc`);
    writeFileSync(`${path}.jsc`, kept[1]![1]);
    await spoil(path);
    const result = used();
    for (const [file, bytes] of kept) writeFileSync(file, bytes);
    expectLearned(result);
    expect(result.err).toBe("");
  });

  test("its command runs", () => {
    const { out, exitCode } = bun("x", "orchard", "--version");
    expect([out, exitCode]).toEqual([`${packageFile.version}\n`, 0]);
  });

  test("what it advises is there: no command that only a clone has", () => {
    const advice = [
      bun("x", "orchard", "doctor"),
      bun("x", "orchard", "train", "--resume", "nowhere"),
      bun("x", "orchard", "train", "--stepz", "3"),
      bun("x", "orchard", "swift", "program.swift"),
    ].map(({ out, err }) => out + err);
    for (const text of advice) expect(text).not.toMatch(/bun run|bun src|scripts\//);
    expect(advice[0]).toContain("`bunx orchard tune` measures this machine");
    expect(advice[1]).toContain("nowhere has no run; start one with `bunx orchard train`");
    expect(advice[2]).toContain("bunx orchard train --help");
  });

  test("its types resolve and are the tensors' own", async () => {
    const types = join(project, "node_modules", "@types");
    mkdirSync(types, { recursive: true });
    for (const name of ["@types/bun", "@types/node", "bun-types", "undici-types"])
      symlinkSync(join(packageRoot, "node_modules", name), join(project, "node_modules", name));
    await Bun.write(join(project, "tsconfig.json"), JSON.stringify(tsconfig));
    const tsc = join(packageRoot, "node_modules", ".bin", "tsc");
    expect(bun(tsc, "--noEmit")).toEqual({ out: "", err: "", exitCode: 0 });
    await Bun.write(join(project, "program.ts"), program.replace('Tensor<"float32">', 'Tensor<"int32">'));
    const { out, exitCode } = bun(tsc, "--noEmit");
    expect(out).toMatch(/^program\.ts\(4,7\): error TS2322: .*float32/m);
    expect(exitCode).not.toBe(0);
    await Bun.write(join(project, "program.ts"), program);
  });

  test("an executable and a bundle compute by the dylib that they hold, where nothing else is installed", async () => {
    const away = join(folder, "away");
    mkdirSync(away);
    expect(bun("build", "--compile", "program.ts", "--outfile", join(away, "executable")).exitCode).toBe(0);
    expect(bun("build", "--target=bun", "program.ts", "--outdir", join(away, "bundle")).exitCode).toBe(0);
    for (const command of [[join(away, "executable")], [process.execPath, join(away, "bundle", "program.js")]]) {
      const { stdout, stderr } = Bun.spawnSync(command, { cwd: nothing, env: environment });
      expect(stderr.toString()).toBe("");
      const result = JSON.parse(stdout.toString()) as { learned: number[]; backends: string[]; sum: number };
      expectLearned(result);
      expect(result.backends).toEqual([hasMetal ? "metal" : "cpu"]);
    }
    // What is loaded on first use is there too.
    await Bun.write(join(project, "archive.ts"), archive);
    expect(bun("build", "--target=bun", "archive.ts", "--outdir", join(away, "bundle")).exitCode).toBe(0);
    const { stdout, stderr } = Bun.spawnSync([process.execPath, join(away, "bundle", "archive.js")], {
      cwd: away,
      env: { ...environment, BUN_CONFIG_REGISTRY: "http://127.0.0.1:9/" }, // Bun would install what is missing
    });
    expect([stdout.toString(), stderr.toString()]).toEqual(["[ 1, 2 ]\n", ""]);
  });

  test("kernels come in the JavaScript, each with the text of its file", () => {
    const kernels = JSON.parse(readFileSync(join(installed, "src", "kernels.json"), "utf8")) as Record<string, string>;
    const files = [...new Bun.Glob("**/*.{metal,h}").scanSync({ cwd: join(packageRoot, "kernels") })].sort();
    expect(Object.keys(kernels)).toEqual(files);
    for (const file of files) expect(kernels[file]).toBe(readFileSync(join(packageRoot, "kernels", file), "utf8"));
  });

  test("without the platform's package the import says so in one line, and the reference backend computes", () => {
    const folder = join(project, "node_modules", platformName);
    cpSync(folder, `${folder}.away`, { recursive: true });
    rmSync(folder, { recursive: true });
    const name = hasMetal ? "metal" : "cpu";
    const line = `[orchard] ${name} is unavailable: its dylib is in ${platformName}, which is not installed: `;
    const { err } = bun("-e", `import "${packageFile.name}";`);
    expect(err.trimEnd().split("\n")).toEqual([expect.stringContaining(line)]);
    expect(err).toContain(`\`bun add ${platformName}@${packageFile.version}\``);
    const result = used();
    expectLearned(result);
    expect(result.backends).toEqual(["reference"]);
    expect(result.err.trimEnd().split("\n")).toHaveLength(hasMetal ? 2 : 1);
  });
});

/** Where this run built the device. Its package is not packed here, which takes long: it is put where Bun puts it. */
const hasDevice = process.platform === "linux" && process.arch === "x64" && existsSync(join(buildFolder, libraryName));

describe.if(hasDevice)("the software device's package", () => {
  const name = `${packageFile.name}-${deviceTarget}`;
  const device = join(folder, "packages", name);
  const place = join(project, "node_modules", name);

  /** Runs Bun in the project with the cache folder that has a toolchain, or with an empty one. */
  function checked(words: readonly string[], more: Record<string, string> = {}) {
    const { stdout, stderr, exitCode } = Bun.spawnSync([process.execPath, ...words], {
      cwd: project,
      env: { ...environment, ...more },
    });
    return { out: stdout.toString(), err: stderr.toString(), exitCode };
  }

  beforeAll(async () => {
    const platformPackage = join(project, "node_modules", platformName);
    renameSync(`${platformPackage}.away`, platformPackage); // where the test before put it
    await stageDevice(device, join(buildFolder, libraryName), join(buildFolder, "metal"));
    await Bun.write(join(project, "kernel.ts"), kernelProgram);
  });

  test("holds the dylib, Metal's headers and what describes them", async () => {
    const names = [...new Bun.Glob("**").scanSync({ cwd: device })];
    const own = names.filter((path) => !path.startsWith("metal/"));
    expect(own.sort()).toEqual(["LICENSE", "README.md", "index.d.ts", "index.js", libraryName, "package.json"].sort());
    expect(names).toContain("metal/mrt/prelude.h");
    const manifest = (await Bun.file(join(device, "package.json")).json()) as Record<string, unknown>;
    expect(manifest).toMatchObject({ name, version: packageFile.version, os: ["linux"], cpu: ["x64"] });
    expect(await Bun.file(join(device, "README.md")).text()).toMatch(/needs glibc 2\.\d\d or newer/);
  });

  test("without it, what needs it says how to add it", () => {
    const command = `bun add --dev ${name}@${packageFile.version}`;
    expect(bun("x", "orchard", "doctor").out).toContain(`the software device is not installed\n`);
    expect(bun("x", "orchard", "doctor").out).toContain(`fix: ${command}\n`);
    expect(bun("kernel.ts").err).toContain(`\`${command}\` adds the software device`);
    expect(checked(["-e", `import "${packageFile.name}";`], { ORCHARD_BACKEND: "metal" }).err).toContain(
      `its dylib is in ${name}, which is not installed: \`bun add ${name}@`,
    );
  });

  test("with it, but no compiler, a kernel says what brings one", () => {
    symlinkSync(device, place);
    const { err, exitCode } = bun("kernel.ts");
    expect(err).toContain("`orchard toolchain install` brings one");
    expect(exitCode).toBe(1);
  });

  test("with both, kernels run, the checker speaks up, and several files are checked", async () => {
    const cache = mkdtempSync(join(folder, "cache-"));
    mkdirSync(join(cache, "orchard"));
    if (existsSync(toolchainsFolder())) symlinkSync(toolchainsFolder(), join(cache, "orchard", "toolchain"));
    const more = { XDG_CACHE_HOME: cache, PATH: process.env["PATH"]! };
    expect(checked(["kernel.ts"], more)).toEqual({ out: "3,5,7 metal\n", err: "", exitCode: 0 });
    const { err, exitCode } = checked(["kernel.ts", "past"], { ...more, ORCHARD_METAL_CHECK: "1" });
    expect(err).toContain("reads 4 bytes at byte 12 of buffer 'x', which is 12 bytes long");
    expect(exitCode).toBe(1);
    const source = "#include <metal_stdlib>\nkernel void NAME(device float *x) { x[0] = 1; }\n";
    for (const file of ["one", "two"]) await Bun.write(join(project, `${file}.metal`), source.replace("NAME", file));
    const both = checked(["x", "orchard", "metal", "check", "one.metal", "two.metal", "--jobs", "2"], more);
    expect(both.out).toBe("one.metal: no problems\ntwo.metal: no problems\n");
    rmSync(place);
  });
});

const kernelProgram = `
import { metalKernel } from "${packageFile.name}";

const ahead = process.argv[2] === "past" ? 1 : 0;
const kernel = metalKernel({
  name: "odd",
  source: "#include <metal_stdlib>\\nkernel void odd(const device float *x, device float *y, " +
    "uint i [[thread_position_in_grid]]) { y[i] = 2 * x[i + " + ahead + "] + 1; }",
});
const { y } = kernel.run({ x: new Float32Array([1, 2, 3]), y: new Float32Array(3) }, { grid: 3 }).outputs;
console.log(y.join(), "metal");
`;

type Names = Readonly<Record<string, unknown>>;

/** What functions and classes are called, by where they are; also in a program of its own, as text. */
function namesOf(library: Names): Record<string, string> {
  const rooms = ["data", "distributed", "io", "linalg", "nn", "optim", "text"].map((room) => [room, library[room]]);
  const found = [["", library], ...rooms].flatMap(([room, members]) =>
    Object.entries(members as Names).map(([key, value]) => [
      `${room}.${key}`,
      typeof value === "function" ? value.name : typeof value,
    ]),
  );
  return Object.fromEntries(found.sort());
}

/** Loads one file of the library and tells what it finds, of names, errors and threads. */
const oneFile = `
import * as library from "${packageFile.name}";
import { data, matmul, tensor } from "${packageFile.name}";

${namesOf.toString()}
const stack = (() => {
  try { return String(matmul(tensor([[1, 2]]), tensor([[1, 2]]))); } catch (error) { return error.stack; }
})();
const source = import.meta.resolve("${packageFile.name}").replace("file://", "").replace("index.js", "");
const paths = Object.keys(require.cache).filter((path) => path.startsWith(source));
const loaded = paths.map((path) => path.slice(source.length));
using items = await data.openWorkerDataset(new URL("./items.ts", import.meta.url), { workers: 1 });
const item = await items.get(1);
console.log(JSON.stringify({ names: namesOf(library), stack, loaded: loaded.sort(), item }));
`;

const archive = `
import { io, tensor } from "${packageFile.name}";
import { testFolder } from "./support/folder.ts";

await io.saveNpz("archive.npz", { x: tensor([1, 2]) });
console.log(io.loadNpz("archive.npz")["x"]!.toArray());
`;

/** Stricter than what `bun init` writes: declarations are checked, and no import may name a TypeScript file. */
const tsconfig = {
  compilerOptions: {
    lib: ["ESNext"],
    target: "ESNext",
    module: "Preserve",
    moduleDetection: "force",
    types: ["bun"],
    moduleResolution: "bundler",
    verbatimModuleSyntax: true,
    noEmit: true,
    strict: true,
    skipLibCheck: false,
    erasableSyntaxOnly: true,
    exactOptionalPropertyTypes: true,
    noFallthroughCasesInSwitch: true,
    noUncheckedIndexedAccess: true,
    noImplicitOverride: true,
    noPropertyAccessFromIndexSignature: true,
    noUnusedLocals: true,
  },
};
