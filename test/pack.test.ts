/**
 * The package as others get it: packed, added to an empty project without network or toolchain, and used there. What it
 * depends on comes from a registry of this process's.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageFile from "../package.json";
import { buildFolder, cpuLibraryName, libraryName, packageRoot, platform } from "../src/core/paths.ts";
import { localRegistry } from "./support/registry.ts";

const folder = mkdtempSync(join(tmpdir(), "orchard-pack-"));
const project = join(folder, "project");
const nothing = join(folder, "nothing");
const installed = join(project, "node_modules", packageFile.name);
afterAll(() => rmSync(folder, { recursive: true }));

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

/** Adds the tarball in that project, and returns the names that were asked of the registry. */
async function add(): Promise<string[]> {
  using registry = localRegistry(folder);
  const child = Bun.spawn([process.execPath, "add", tarball], {
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
  const packed = Bun.spawnSync([process.execPath, "pm", "pack", "--destination", folder, "--quiet"], {
    cwd: packageRoot,
  });
  expect([packed.stderr.toString(), packed.exitCode]).toEqual(["", 0]);
});

/** On macOS, unless this run leaves Metal out. */
const hasMetal = process.platform === "darwin" && existsSync(join(buildFolder, libraryName));

const tarball = join(folder, `${packageFile.name}-${packageFile.version}.tgz`);

describe("the tarball", () => {
  const listed = () => {
    const { stdout } = Bun.spawnSync(["tar", "-tzf", tarball]);
    return stdout
      .toString()
      .trim()
      .split("\n")
      .map((path) => path.replace(/^package\//, ""));
  };

  test("holds sources, kernels, documents and dylibs, and nothing else", () => {
    const kinds = [
      /^(?:package\.json|README\.md|LICENSE|CHANGELOG\.md)$/,
      /^docs\/[\w/-]+\.md$/,
      /^src\/[\w./]+\.(?:ts|html|css)$/,
      /^src\/train\/dashboard\/page\/tsconfig\.json$/,
      /^kernels\/[\w/]+\.(?:metal|h)$/,
      /^swift\/(?:Package\.swift|Sources\/.*)$/,
      /^build\/[a-z]+-(?:x64|arm64)\/libOrchardCPU\.(?:so|dylib)$/,
      /^build\/darwin-arm64\/libOrchardMetal\.dylib$/,
    ];
    const names = listed();
    expect(names.filter((name) => !kinds.some((kind) => kind.test(name)))).toEqual([]);
    expect(kinds.slice(0, 7).filter((kind) => !names.some((name) => kind.test(name)))).toEqual([]);
  });

  test("holds no test, no object file and nothing of a folder whose name begins with a dot", () => {
    expect(listed().filter((name) => /(?:^|\/)\.|\.test\.ts$|(?:^|\/)[Tt]ests?\/|\.o$|~$/.test(name))).toEqual([]);
  });

  test("holds this machine's dylib of the cpu backend, and of Metal only Apple's", () => {
    const dylibs = listed().filter((name) => name.startsWith(`build/${platform}/`));
    const ours = [cpuLibraryName, ...(hasMetal ? [libraryName] : [])];
    expect(dylibs.sort()).toEqual(ours.map((name) => `build/${platform}/${name}`).sort());
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
    expect(names.map((name) => name.replace("/package.json", "")).sort()).toEqual([...asked, packageFile.name].sort());
  });

  test("it computes and trains by the packed dylib, without a word", () => {
    const result = used();
    expectLearned(result);
    expect(result.backends).toEqual([hasMetal ? "metal" : "cpu"]);
    if (process.platform === "linux" || hasMetal) expect(result.err).toBe("");
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

  test("without the dylibs it does the same by the reference backend, and says so once for each", () => {
    rmSync(join(installed, "build"), { recursive: true });
    const result = used();
    expectLearned(result);
    expect(result.backends).toEqual(["reference"]);
    const absent = process.platform === "darwin" ? ["metal", "cpu"] : ["cpu"];
    expect(result.err.trimEnd().split("\n")).toEqual(
      absent.map((name) =>
        expect.stringContaining(`[orchard] ${name} is unavailable: the package holds no dylib of it`),
      ),
    );
  });
});

/** What `bun init` writes. */
const tsconfig = {
  compilerOptions: {
    lib: ["ESNext"],
    target: "ESNext",
    module: "Preserve",
    moduleDetection: "force",
    types: ["bun"],
    moduleResolution: "bundler",
    allowImportingTsExtensions: true,
    verbatimModuleSyntax: true,
    noEmit: true,
    strict: true,
    skipLibCheck: true,
    noFallthroughCasesInSwitch: true,
    noUncheckedIndexedAccess: true,
    noImplicitOverride: true,
  },
};
