/**
 * Runs before every test file. It unsets environment variables, so that the suite sees the defaults, except those that
 * a run may choose: another dylib, the checker, a cache.
 */
import { join, relative } from "node:path";
import { plugin } from "bun";
import { suiteCacheLimit } from "../../scripts/suite/report.ts";

const packageRoot = join(import.meta.dir, "..", "..");

// The timeout only ends tests that hang: compiling kernels into a cold cache can take minutes on a busy machine. A
// default timeout applies to the file that sets it (Bun 1.4.5 has no project setting), so the statement is inserted
// into the first line of each file. The hook that checks that a file restored the environment is registered last, since
// hooks run in the order of registration.
const statement = 'import { setDefaultTimeout as setSuiteTimeout } from "bun:test"; setSuiteTimeout(600_000);';
const leftovers = JSON.stringify(join(import.meta.dir, "leftovers.ts"));
const check = (path: string) => `
import { afterAll as afterSuiteFile } from "bun:test"; import { restoreSuite } from ${leftovers};
afterSuiteFile(() => restoreSuite(${JSON.stringify(relative(packageRoot, path))}));`;
plugin({
  name: "suite",
  setup: (build) => {
    build.onLoad({ filter: /\.test\.ts$/ }, async ({ path }) => ({
      contents: `${statement} ${await Bun.file(path).text()}${check(path)}`,
      loader: "ts",
    }));
  },
});

const allowed = new Set([
  "ORCHARD_LIBRARY",
  "ORCHARD_CPU_LIBRARY",
  "ORCHARD_CPU_ISA",
  "ORCHARD_CPU_RECORD",
  "ORCHARD_BLAS",
  "ORCHARD_SKIP_METAL",
  "ORCHARD_REPORT",
  "ORCHARD_METAL_CHECK",
  "ORCHARD_METAL_CACHE",
  "ORCHARD_METAL_CACHE_LIMIT",
  "ORCHARD_METAL_CLANG",
  "ORCHARD_METAL_CUDA",
  "ORCHARD_METAL_DEVICE",
  "ORCHARD_METAL_GPU_CLANG",
  "ORCHARD_METAL_GPU_COMPILE",
  "ORCHARD_METAL_GPU_GRAPHS",
  "ORCHARD_METAL_HEADERS",
  "ORCHARD_PRINT_RATIOS",
  "ORCHARD_TEST_ALL",
  "ORCHARD_TEST_MODULES",
  "ORCHARD_TEST_SEED",
]);

for (const name of Object.keys(process.env)) {
  if (name.startsWith("ORCHARD_") && !allowed.has(name)) delete process.env[name];
}

for (const name of Object.keys(process.env)) if (name.startsWith("HF_")) delete process.env[name];
// No test may download a model from the public hub. Tests of downloads have a local server.
process.env["HF_HUB_OFFLINE"] = "1";
// A test must not mistake uninitialized memory for zeros.
process.env["ORCHARD_METAL_POISON"] = "1";
// Several files run at once, and the software device computes on the same cores. A timeout must end only work that
// hangs.
process.env["ORCHARD_METAL_TIMEOUT_MS"] = "600000";
process.env["ORCHARD_METAL_COMPILE_TIMEOUT_MS"] = "600000";
// The limit has room for all kernels of the suite, and for the precompiled headers of each build, of 17 MB each, so
// that nothing is evicted and compiled again.
process.env["ORCHARD_METAL_CACHE_LIMIT"] = String(suiteCacheLimit);
// No test may depend on the system's entropy, and neither may a program that it starts.
process.env["ORCHARD_SEED"] = "1";
// No test may depend on crossovers that were measured on this machine.
process.env["ORCHARD_ATTENTION_TABLE"] = "none";
process.env["ORCHARD_LINALG_TABLE"] = "none";

// Registers the matchers for tensors. The suite's environment is set by now, and no dylib is loaded yet.
await import("../../src/test.ts");

// Code that reads an ArrayBuffer's block after its release finds wrong numbers, so its test fails.
const { poisonSpareBlocks } = await import("../../src/tensor/spare_blocks.ts");
poisonSpareBlocks(0xff);

const { rememberSuite } = await import("./leftovers.ts");
rememberSuite();
