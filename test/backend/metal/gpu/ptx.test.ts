/**
 * Kernels for NVIDIA GPUs pass NVIDIA's assembler. They are compiled by the GPU's clang, and loaded through the
 * stand-in for the driver, which keeps their PTX. `--all` compiles every kernel, and installs the assembler from PyPI.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { kernelVersions } from "../../../../src/backend/metal/kernel_files.ts";
import { installedGpuCompiler } from "../../../../src/cli/toolchain/gpu.ts";
import { environmentFlag } from "../../../../src/core/environment.ts";
import { cacheFolder, packageRoot } from "../../../../src/core/paths.ts";
import { bunWords } from "../../../support/program.ts";
import { isExhaustive } from "../../../support/repeats.ts";
import { seed, someOf } from "../../../support/some.ts";
import { buildStandin } from "./standin.ts";

const clang = process.env["ORCHARD_METAL_GPU_CLANG"] ?? installedGpuCompiler();
const isTested = process.platform === "linux" && !environmentFlag("ORCHARD_SKIP_METAL") && clang !== undefined;
const folder = mkdtempSync(join(tmpdir(), "orchard-ptx-"));
afterAll(() => rmSync(folder, { recursive: true }));

const wheel = "nvidia-cuda-nvcc==13.0.88";
const installed = join(cacheFolder(), "gpu", wheel, "nvidia/cu13/bin/ptxas");

/** NVIDIA's assembler, if there is one. */
function findAssembler(): string | undefined {
  const found = Bun.which("ptxas") ?? ["/usr/local/cuda/bin/ptxas", installed].find((path) => existsSync(path));
  if (found !== undefined || !isExhaustive) return found;
  const words = ["-m", "pip", "install", "--quiet", "--no-deps", "--target", join(cacheFolder(), "gpu", wheel), wheel];
  const { exitCode, stderr } = Bun.spawnSync(["python3", ...words]);
  if (exitCode !== 0) throw new Error(stderr.toString());
  return installed;
}

/** Compiles functions of the files (all: 0), and returns the paths of their PTX. */
async function compile(files: readonly string[], count: number): Promise<string[]> {
  const target = mkdtempSync(join(folder, "modules-"));
  const child = Bun.spawnSync([...bunWords, join(import.meta.dir, "compiled.ts"), `${count}`, `${seed}`, ...files], {
    env: {
      ...process.env,
      ORCHARD_METAL_DEVICE: "nvidia",
      ORCHARD_METAL_CUDA: await buildStandin(folder),
      STANDIN_LOG: join(folder, "log"),
      STANDIN_PTX: target,
    },
  });
  expect(child.stderr.toString()).toBe("");
  const paths = readdirSync(target).map((name) => join(target, name));
  expect(paths.length).toBeGreaterThan(0);
  return paths;
}

/** Returns what ptxas says about a module, for an architecture: "" if the module is right. */
function assemble(ptxas: string, path: string, architecture: string): string {
  const words = [ptxas, `-arch=${architecture}`, "-O1", "-o", "/dev/null", path];
  return Bun.spawnSync(words).stderr.toString();
}

// Kernels that need Metal 4 use its tensor operations, which NVIDIA's GPUs lack (docs/gpu.md, "Limits").
const kernels = [...new Bun.Glob("**/*.metal").scanSync({ cwd: join(packageRoot, "kernels") })]
  .filter((name) => kernelVersions[name] === undefined)
  .sort()
  .map((name) => join(packageRoot, "kernels", name));

describe.skipIf(!isTested)("PTX of the kernels", () => {
  const files = someOf(kernels, 1);
  test(`the assembler accepts the PTX for sm_80 and sm_90, seed ${seed}`, async () => {
    mkdirSync(folder, { recursive: true });
    const assembler = findAssembler();
    for (const file of files) {
      for (const path of await compile([file], isExhaustive ? 0 : 1)) {
        const text = await Bun.file(path).text();
        expect(text).toContain(".target sm_80");
        if (assembler === undefined) continue;
        for (const architecture of ["sm_80", "sm_90"]) expect(assemble(assembler, path, architecture)).toBe("");
      }
    }
  }, 3_600_000);

  // Without tensor cores and registers the product would be right, but many times slower.
  test("products of half use tensor cores, and keep matrices in registers", async () => {
    const tiled = await compile([join(import.meta.dir, "tiles.metal")], 0);
    const texts = await Promise.all(tiled.map((path) => Bun.file(path).text()));
    for (const text of texts) {
      expect(text).toContain("mma.sync.aligned.m16n8k8.row.col.f32");
      expect(text).not.toContain(".local");
      expect(text.match(/movmatrix/g)).toHaveLength(2); // loads each right matrix once for four products
    }
  });

  test("products of float by half or bfloat use tensor cores, and transposed loads cost nothing", async () => {
    const mixed = await compile([join(import.meta.dir, "mixed.metal")], 0);
    const counts: number[] = [];
    for (const path of mixed) {
      const text = await Bun.file(path).text();
      counts.push([...text.matchAll(/mma\.sync\.aligned\.m16n8k16/g)].length);
      for (const absent of [".local", "shfl.sync", "movmatrix"]) expect(text).not.toContain(absent);
    }
    // A bfloat has one part, a half has two; factors that are not finite are multiplied again.
    expect(counts.sort()).toEqual([2, 4]);
  });

  test("threadgroup memory is shared memory in a program whose overloads differ in address spaces", async () => {
    const assembler = findAssembler();
    const paths = await compile([join(import.meta.dir, "spaced.metal")], 0);
    expect(paths).toHaveLength(2);
    for (const path of paths) {
      const text = await Bun.file(path).text();
      expect(text).toContain(".extern .shared");
      for (const access of ["ld", "st"]) expect(text).toMatch(new RegExp(`${access}\\.shared`));
      if (assembler !== undefined) expect(assemble(assembler, path, "sm_80")).toBe("");
    }
  });
});
