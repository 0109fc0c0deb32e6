/** `orchard doctor` on machines of every kind: a temporary cache folder and PATH. No dylib is required. */
import { expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { metalFix, nvidiaGpu } from "../../src/cli/doctor.ts";
import { buildFolder, cpuLibraryName, packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";

/** Creates a cache folder whose toolchain's `swiftc` is the given shell script; without one it is empty. */
function machine(swiftc?: string) {
  const { path: cache } = testFolder("doctor");
  const toolchain = join(cache, "orchard", "toolchain", "swift-6.0.3-test");
  if (swiftc === undefined) return { cache, toolchain };
  const bin = join(toolchain, "usr/libexec/swift/bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "swiftc"), `#!/bin/sh\n${swiftc}\n`);
  chmodSync(join(bin, "swiftc"), 0o755);
  writeFileSync(join(toolchain, "stamp.json"), "{}");
  return { cache, toolchain };
}

/** Returns the doctor's output, with no Swift on PATH and a missing dylib. */
function doctor(cache: string, library = join(cache, "missing.so"), environment: Record<string, string> = {}) {
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, "src/cli/orchard.ts", "doctor"], {
    cwd: packageRoot,
    env: { HOME: cache, XDG_CACHE_HOME: cache, PATH: cache, ORCHARD_LIBRARY: library, ...environment },
  });
  expect(stderr.toString()).toBe("");
  return { text: stdout.toString(), exitCode };
}

/** A file that the loader finds but can't use. */
function noLibrary(folder: string): string {
  const path = join(folder, "text.so");
  writeFileSync(path, "not a library");
  return path;
}

test("an installed toolchain is named, and setup is not recommended, regardless of the dylib's state", () => {
  const { cache, toolchain } = machine("echo 'Swift version 6.0.3 (swift-6.0.3-RELEASE)'");
  for (const library of [join(cache, "missing.so"), noLibrary(cache)]) {
    const { text } = doctor(cache, library, { ORCHARD_BLAS: "none" });
    expect(text).toContain(`6.0.3, ${toolchain}/usr/libexec/swift/bin/swift\n`);
    expect(text).not.toContain("setup");
  }
});

test("a toolchain that does not start has to be removed first, because setup considers it complete", () => {
  const { cache, toolchain } = machine("exit 1");
  expect(doctor(cache).text).toContain(`fix: rm -r ${toolchain} && bun run setup\n`);
});

test("without Swift it names the command that installs it", () => {
  const command = process.platform === "darwin" ? "xcode-select --install" : "bun run setup";
  expect(doctor(machine().cache).text).toMatch(new RegExp(`Swift 6\\.0 or newer was not found\\n +fix: ${command}\\n`));
});

test("a missing or invalid dylib is blamed on the environment if a variable names it", () => {
  const { cache } = machine();
  for (const path of [join(cache, "missing.so"), noLibrary(cache)]) {
    const { text, exitCode } = doctor(cache, path);
    expect(text).toContain(path);
    expect(text).toContain("fix: unset ORCHARD_LIBRARY\n");
    expect(exitCode).toBe(1);
  }
});

test("an invalid LAPACK library in the environment is an error; a missing one is not", () => {
  if (!existsSync(join(buildFolder, cpuLibraryName))) return expect(doctor(machine().cache).text).toContain("✗ cpu ");
  const { cache } = machine();
  const path = noLibrary(cache);
  const named = doctor(cache, undefined, { ORCHARD_BLAS: path }).text;
  expect(named).toMatch(new RegExp(`cpu LAPACK +none: .*${path} can't be loaded.*\\n +fix: unset ORCHARD_BLAS\\n`));
  const left = doctor(cache, undefined, { ORCHARD_BLAS: "none" }).text;
  expect(left).toMatch(/cpu LAPACK +none: the built-in linear algebra is used\n[^ ]/);
});

test.if(process.platform === "linux")(
  "without clang or a linker, it recommends the toolchain and not the dylib",
  () => {
    const problems = ["no clang++ was found in the toolchain cache or on PATH", "no linker (ld.lld or ld) was found"];
    for (const problem of problems)
      expect(metalFix(`[doctor] ${problem}`, "bun install --force", false)).toBe("bunx orchard toolchain install");
    expect(metalFix("[doctor] no device", "bun install --force", false)).toBe("bun install --force");
  },
);

test.if(process.platform === "linux")("an NVIDIA GPU is named, with its missing parts", () => {
  const { path: folder } = testFolder("doctor");
  const [driver, cache] = [join(folder, "driver"), join(folder, "cache")];
  const values = { XDG_CACHE_HOME: cache };
  expect(nvidiaGpu(driver, values)).toEqual([]);
  for (const [at, model] of ["NVIDIA H200", "NVIDIA A100-SXM4-80GB"].entries()) {
    const card = join(driver, `gpus/0000:0${at + 1}:00.0`);
    mkdirSync(card, { recursive: true });
    writeFileSync(join(card, "information"), `Model: \t\t ${model}\nIRQ:   \t\t 35\n`);
  }
  writeFileSync(join(driver, "version"), "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05\n");
  const detail = "NVIDIA H200, NVIDIA A100-SXM4-80GB: the driver is installed, but not the compiler for its kernels";
  const missing = { subject: "nvidia gpu", state: "note" as const, detail, fix: expect.any(String) as string };
  expect(nvidiaGpu(driver, values)).toEqual([missing]);
  expect(nvidiaGpu(driver, values)[0]?.fix).toEndWith("toolchain install --gpu");
  const [found] = nvidiaGpu(driver, { ...values, ORCHARD_METAL_GPU_CLANG: "/opt/clang++" });
  expect(found).toEqual({
    subject: "nvidia gpu",
    state: "ok",
    detail:
      "NVIDIA H200, NVIDIA A100-SXM4-80GB; ORCHARD_METAL_DEVICE=nvidia makes the metal backend use it; " +
      "compiler: /opt/clang++",
  });
});
