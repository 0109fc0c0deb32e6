/**
 * Tests that cannot pass on an NVIDIA GPU, for gpu.ts. A row is for tests that ran on one and failed for this reason or
 * expect numbers of the software device's counters, or for files that do not use the device of tensors.
 */

export interface Exception {
  /** The start of the file's path. */
  readonly files: string;
  /** Which tests of the files: parts of titles, as in the source. Default: the files are not run. */
  readonly tests?: readonly string[];
  readonly reason: string;
}

const counters = "it reads counters, which only the software device has";
const checker = "it tests the checker or the compiler of the software device";
const repository = "it tests the repository, not the device";
const settings = "it changes settings of the software device";
const builds = "it starts commands that build the dylibs, which other files are using";
const processes = "it starts several processes, which take a GPU each";

export const exceptions: readonly Exception[] = [
  // whole files
  { files: "test/scripts/", reason: repository },
  { files: "test/pack", reason: repository },
  { files: "test/coverage.test.ts", reason: repository },
  { files: "test/pages.test.ts", reason: repository },
  { files: "test/public.test.ts", reason: repository },
  { files: "test/readme.test.ts", reason: repository },
  { files: "test/cli/", reason: "it starts programs that choose their device" },
  { files: "test/backend/cpu/", reason: "it tests the cpu backend" },
  { files: "test/backend/elf.test.ts", reason: "it tests the cpu backend" },
  { files: "test/backend/metal/gpu/", reason: "it replaces NVIDIA's driver by a stand-in" },
  { files: "test/backend/metal/legal/", reason: checker },
  { files: "test/backend/metal/mutants/", reason: checker },
  { files: "test/backend/metal/tensor_ops/", reason: "kernels that use Metal 4's tensor operations do not compile" },
  { files: "test/backend/metal/tensor_refusals.test.ts", reason: checker },
  { files: "test/backend/metal/checker.test.ts", reason: checker },
  { files: "test/backend/metal/drawn_findings.test.ts", reason: checker },
  { files: "test/backend/metal/metal_check.test.ts", reason: checker },
  { files: "test/backend/metal/fuzz.test.ts", reason: checker },
  { files: "test/backend/metal/swift.test.ts", reason: checker },
  { files: "test/core/native_environment.test.ts", reason: settings },
  { files: "test/train/signals.faults.test.ts", reason: builds },
  ...["collectives", "lora", "nccl", "network", "parallel", "ranks", "sharded", "train", "world"].map((name) => ({
    files: `test/distributed/${name}.hosts.test.ts`,
    reason: processes,
  })),
  { files: "test/optim/counters.test.ts", reason: counters },
  { files: "test/ops/activation/counters.test.ts", reason: counters },
  { files: "test/ops/elementwise/counters.test.ts", reason: counters },
  { files: "test/ops/indexing/counters.test.ts", reason: counters },
  { files: "test/ops/loss/counters.test.ts", reason: counters },
  { files: "test/ops/normalization/counters.test.ts", reason: counters },
  { files: "test/ops/reduction/counters.test.ts", reason: counters },
  // single tests
  {
    files: "test/linalg/eigh.metal.test.ts",
    tests: ["each element is moved once", "as many dispatches for a batch as for one"],
    reason: counters,
  },
  {
    files: "test/linalg/lstsq.metal.test.ts",
    tests: ["each element is moved once", "as many dispatches as one matrix"],
    reason: counters,
  },
  {
    files: "test/linalg/lu.metal.test.ts",
    tests: ["LU moves each element once", "solve moves each element once", "three dispatches for 32 columns"],
    reason: counters,
  },
  {
    files: "test/linalg/qr.metal.test.ts",
    tests: ["QR moves each element once", "as many dispatches, regardless of the batch"],
    reason: counters,
  },
  { files: "test/fft/traffic.metal.test.ts", tests: ["elements take"], reason: counters },
  {
    files: "test/backend/metal/kernel.test.ts",
    tests: ["the software device counts memory traffic"],
    reason: counters,
  },
  { files: "test/ops/matmul/metal.test.ts", tests: ["kernels move the minimum"], reason: counters },
  { files: "test/quant/fast.metal.test.ts", tests: ["as counted"], reason: counters },
  { files: "test/quant/metal.test.ts", tests: ["quantized products read their weights once"], reason: counters },
  { files: "test/ops/attention/log_sum_exp.test.ts", tests: ["writes only its output"], reason: counters },
  {
    files: "test/ops/attention/metal.kernels.test.ts",
    tests: ["read once", "bytes and products", "neither read nor multiplied", "products match the formula"],
    reason: counters,
  },
  { files: "test/ops/convolution/metal.test.ts", tests: ["are read in place"], reason: counters },
  { files: "test/ops/matmul/linear.test.ts", tests: ["is one kernel", "two products and one sum"], reason: counters },
  {
    files: "test/ops/attention/metal.behaviour.test.ts",
    tests: ["every order of threadgroups", "supports too few threads"],
    reason: settings,
  },
  {
    files: "test/backend/metal/names.test.ts",
    tests: ["a kernel with a missing name"],
    reason: settings,
  },
  {
    files: "test/backend/metal/kernel.test.ts",
    tests: ["a setting that only the software device has"],
    reason: settings,
  },
  {
    files: "test/backend/metal/constants.test.ts",
    tests: ["compiles only the kernel in use of a large library"],
    reason: settings,
  },
  { files: "test/ops/attention/offsets.test.ts", tests: ["axes may have offsets beyond 2^31"], reason: settings },
  { files: "test/backend/metal/commands.test.ts", tests: ["explains a race and its absence"], reason: checker },
  {
    files: "test/tensor/reading.test.ts",
    tests: ["a timer runs on metal during a long operation"],
    reason: "the GPU has computed the result before the timer runs",
  },
  {
    files: "test/ops/matmul/einsum.test.ts",
    tests: ["computes the equations of attention by one product each"],
    reason: "codepaths() also tells whether cuBLASLt multiplies, in separate rows",
  },
  {
    files: "test/ops/matmul/matmul.test.ts",
    tests: ["products of views on", "is multiplied without a copy on"],
    reason: "codepaths() also tells whether cuBLASLt multiplies, in separate rows",
  },
  {
    files: "test/ops/elementwise/accuracy.test.ts",
    tests: ["fmod", "remainder"],
    reason: "the result is 0 where it is subnormal, as docs/gpu.md says",
  },
  {
    files: "test/ops/picture/composites.test.ts",
    tests: ["layout of the operands changes no bit"],
    reason: "ctcLoss may return different last bits, as docs/gpu.md says",
  },
  {
    files: "test/linalg/matrix_exp.test.ts",
    tests: ["result does not depend on the others of its batch"],
    reason: "matrixExp may return different last bits, as docs/gpu.md says",
  },
];

/** Returns why a file is not run. */
export const whyNotRun = (file: string): string | undefined =>
  exceptions.find(({ files, tests }) => !tests && file.startsWith(files))?.reason;

/** Returns why a test of a file may fail. */
export const whyExcepted = (file: string, test: string): string | undefined =>
  exceptions.find(({ files, tests }) => file.startsWith(files) && tests?.some((part) => test.includes(part)))?.reason;

/**
 * Environment variables of files. cuBLASLt's products are separate dispatches, so none are fused with other work, and
 * they use none of our kernels.
 */
export const variables: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "test/compile/fused_metal.test.ts": { ORCHARD_CUBLAS: "none" },
  "test/ops/matmul/metal.test.ts": { ORCHARD_CUBLAS: "none" },
};
