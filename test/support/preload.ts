/**
 * Runs before every test file: the suite sees the defaults, whatever the shell has set. What a run may choose (another
 * dylib, the checker, a cache) passes through.
 */
import { plugin } from "bun";

// A test that hangs ends; no test is about time. A cold cache of kernels on a busy machine takes its minutes. A default timeout holds in
// the file that sets it (Bun 1.4.5 has no setting for a project), so that each file gets the statement, in its first line.
const setsTimeout = 'import { setDefaultTimeout as setTimeoutOfTests } from "bun:test"; setTimeoutOfTests(600_000);';
plugin({
  name: "timeout",
  setup: (build) => {
    build.onLoad({ filter: /\.test\.ts$/ }, async ({ path }) => ({
      contents: `${setsTimeout} ${await Bun.file(path).text()}`,
      loader: "ts",
    }));
  },
});

const chosen = new Set([
  "ORCHARD_LIBRARY",
  "ORCHARD_CPU_LIBRARY",
  "ORCHARD_CPU_ISA",
  "ORCHARD_BLAS",
  "ORCHARD_SKIP_METAL",
  "ORCHARD_REPORT",
  "ORCHARD_METAL_CHECK",
  "ORCHARD_METAL_CACHE",
  "ORCHARD_METAL_CLANG",
  "ORCHARD_METAL_HEADERS",
]);

for (const name of Object.keys(process.env)) {
  if (name.startsWith("ORCHARD_") && !chosen.has(name)) delete process.env[name];
}

// Nor do routes depend on what was measured on the machine that runs the suite.
process.env["ORCHARD_ATTENTION_TABLE"] = "none";
