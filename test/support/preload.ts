/**
 * Runs before every test file: the suite sees the defaults, whatever the shell has set. What a run may choose (another
 * dylib, the checker, a cache) passes through.
 */
import { plugin } from "bun";

// A test that hangs ends; no test is about time. A cold cache of kernels on a busy machine takes its minutes.
// The default is a file's own: set here it would be the first one's alone, and bunfig.toml has no name for it.
const timeout = `import { setDefaultTimeout as setTimeoutOfFile } from "bun:test"; setTimeoutOfFile(300_000);`;
plugin({
  name: "timeouts",
  setup(build) {
    build.onLoad({ filter: /\.test\.ts$/ }, async ({ path }) => ({
      contents: `${timeout} ${await Bun.file(path).text()}`, // one line, so that lines keep their numbers
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
  "ORCHARD_METAL_CHECK",
  "ORCHARD_METAL_CACHE",
  "ORCHARD_METAL_CLANG",
  "ORCHARD_METAL_HEADERS",
]);

for (const name of Object.keys(process.env)) {
  if (name.startsWith("ORCHARD_") && !chosen.has(name)) delete process.env[name];
}
