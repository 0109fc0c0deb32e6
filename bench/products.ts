// Measures `matmul` on the cpu backend, in GFLOP/s and as a fraction of the processor's peak. The peak is measured by a
// loop of only float32 fused multiply-adds. `bun run bench products 1,2,4` measures with each of these numbers of
// threads.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findCompiler } from "../scripts/cpu/compiler.ts";
import { configure, cpuLibrary } from "../src/backend/cpu/loader.ts";
import { cpuInfo } from "../src/backend/cpu/report.ts";
import { withBackend, withStrict } from "../src/backend/policy.ts";
import { packageRoot } from "../src/core/paths.ts";
import { matmul } from "../src/ops/matmul/matmul.ts";
import { randint } from "../src/ops/random/randint.ts";
import { transpose } from "../src/ops/view/permute.ts";
import type { DType } from "../src/tensor/dtype.ts";
import { interleaved, table } from "./support/measure.ts";

/** Batch, m, k, n. T: the second factor is transposed, like the weights of `linear`. */
const sizes = [
  ...[64, 128, 256, 512, 1024, 2048].map((size) => [1, size, size, size, ""] as const),
  [64, 64, 64, 64, ""],
  [64, 256, 256, 256, ""],
  [1, 128, 784, 512, "T"],
  [1, 8, 4096, 4096, ""],
  [1, 8, 4096, 4096, "T"],
  [1, 768, 128, 512, "T"],
  [1, 768, 512, 128, "T"],
] as const;
const dtypes: DType[] = ["float32", "bfloat16", "float16"];

const { native } = cpuLibrary();
const { isa, threads: all } = cpuInfo(native);
const counts = (process.argv[2] ?? `1,${all}`).split(",");

/** Returns the peak GFLOP/s of one thread. */
async function peak(): Promise<number> {
  const { command, linkFlags } = await findCompiler();
  const program = join(mkdtempSync(join(tmpdir(), "orchard-peak-")), "peak");
  const source = join(packageRoot, "bench/support/peak.cpp");
  const flags = ["-std=c++17", "-O3", "-march=native", "-DORCHARD_ISA=native", ...linkFlags];
  const compiled = Bun.spawnSync([...command, source, ...flags, "-o", program]);
  if (!compiled.success) throw new Error(compiled.stderr.toString());
  return Number(Bun.spawnSync([program]).stdout.toString());
}

/** Returns the fastest of 15 samples of about 10 ms, which other programs disturb least. */
function rate(dtype: DType, [batch, m, k, n, layout]: (typeof sizes)[number]): number {
  const operations = 2 * batch * m * n * k;
  const calls = Math.min(2000, Math.max(1, Math.round(1e9 / operations)));
  const a = randint(-8, 8, [batch, m, k], { dtype });
  const b = layout
    ? transpose(randint(-8, 8, [batch, n, k], { dtype }), 1, 2)
    : randint(-8, 8, [batch, k, n], { dtype });
  const run = () => {
    for (let call = 0; call < calls; call++) matmul(a, b).dispose();
  };
  const [measured] = withStrict(true, () => withBackend("cpu", () => interleaved({ run }, 15)));
  return (operations * calls) / measured.fastest / 1e6;
}

const most = await peak();
console.log(`Products on ${isa}; one thread's multiply-adds of float32 reach ${most} GFLOP/s`);
const rows = dtypes.flatMap((dtype) =>
  sizes.map((size) => {
    const [batch, m, k, n, layout] = size;
    const rates = counts.flatMap((count) => {
      configure(native, "threads", count);
      const reached = rate(dtype, size);
      return [reached.toFixed(0), (reached / most / Number(count)).toFixed(2)];
    });
    return [`${dtype} ${batch > 1 ? `${batch} × ` : ""}${m}·${k}·${n} ${layout}`, ...rates];
  }),
);
console.log(table(["", ...counts.flatMap((count) => [`${count} threads`, "of peak"])], rows));
