/** The check of each assumption of docs/apple.md that a command can check, by identifier. */

import type { Probe } from "./probe.ts";
import { languageProbes } from "./probes/language.ts";
import { numberProbes } from "./probes/numbers.ts";
import { systemProbes } from "./probes/system.ts";
import { threadProbes } from "./probes/threads.ts";

/** A check, which runs in a separate process. */
export type Check =
  /** A function of {@link probes}, by the assumption's identifier. */
  | { readonly kind: "probe" }
  /** `programs/<identifier>.swift`: its exit status is 0 if the assumption holds, 2 if the machine can't tell. */
  | { readonly kind: "program" }
  /** Classes of XCTest, or tests as `Class/testName`. */
  | {
      readonly kind: "swift";
      readonly names: readonly string[];
      readonly environment?: Readonly<Record<string, string>>;
    }
  /** Files of `test/`. */
  | {
      readonly kind: "tests";
      readonly files: readonly string[];
      readonly environment?: Readonly<Record<string, string>>;
    }
  /** A part of this command. */
  | { readonly kind: "build" | "kernels" };

/** Probes by the identifier of their assumption. */
export const probes: Readonly<Record<string, Probe>> = {
  ...languageProbes,
  ...numberProbes,
  ...systemProbes,
  ...threadProbes,
};

const probe: Check = { kind: "probe" };
const program: Check = { kind: "program" };
const build: Check = { kind: "build" };
const kernels: Check = { kind: "kernels" };
const swift = (...names: string[]): Check => ({ kind: "swift", names });
const tests = (...files: string[]): Check => ({ kind: "tests", files });

/** Metal's shader validation: misaligned and out-of-bounds accesses. */
const validated = { MTL_SHADER_VALIDATION: "1" };

export const checks: Readonly<Record<string, readonly Check[]>> = {
  ...Object.fromEntries(Object.keys(probes).map((identifier) => [identifier, [probe]])),

  // Results
  "transposed-origin": [probe, tests("test/ops/matmul/metal.test.ts")],
  "barrier-order": [swift("DispatchTests/testBarriersStandOnlyWhereOperandsOverlap")],
  "byte-products": [tests("test/quant/fast.metal.test.ts")],
  "tensor-products": [tests("test/ops/matmul/tensor.metal.test.ts")],
  "matrix-strides": [probe, tests("test/ops/matmul/metal.test.ts")],
  "vector-alignment": [{ kind: "tests", files: ["test/ops/matmul/metal.test.ts"], environment: validated }],
  "bfloat-matrix": [probe, tests("test/ops/matmul/metal.test.ts")],
  "device-fence": [probe, tests("test/linalg/blocks.metal.test.ts")],
  "shuffle-halves": [probe, tests("test/linalg/blocks.metal.test.ts")],
  "precise-rounding": [probe, tests("test/ops/random/random.test.ts")],
  "extended-arithmetic": [probe, tests("test/ops/reduction/scales.test.ts", "test/ops/normalization/scales.test.ts")],
  "integer-shifts": [probe, tests("test/ops/random/random.test.ts", "test/ops/creation/creation.test.ts")],
  "multinomial-weights": [tests("test/ops/random/random.test.ts")],
  "simd-sum-order": [tests("test/ops/matmul/metal.test.ts", "test/ops/reduction/reduction.test.ts")],
  "queue-order": [swift("BufferTests", "DispatchTests")],
  "accelerate-threads": [tests("test/backend/cpu/lapack.test.ts")],
  "constant-offset": [program],

  // Errors
  "argued-constructs": [kernels, build],
  "host-name-instances": [kernels, swift("MaterializeTests")],
  "enumerator-templates": [probe, tests("test/backend/metal/names.test.ts")],
  "narrow-conversions": [probe, tests("test/ops/random/random.test.ts")],
  "sdk-names": [build],
  "build-folder": [build],
  "signed-dylib": [tests("test/scripts/dylib.test.ts")],
  "cut-dylib": [tests("test/backend/metal/loader.test.ts")],
  "autorelease-pools": [tests("test/backend/metal/dispatches.memory.test.ts"), swift("StressTests")],
  "accelerate-symbols": [tests("test/backend/cpu/lapack.test.ts")],
  "library-includes": [swift("LibraryTests"), tests("test/backend/metal/kernel.test.ts")],
  "language-version": [probe, swift("LibraryTests/testAnUnknownLanguageVersionIsRefused")],
  "required-constants": [swift("LibraryTests/testFunctionsAreListedWithTheirConstants")],
  "unused-arguments": [swift("LibraryTests/testPipelineInfo"), tests("test/backend/metal/kernel.test.ts")],
  "reflected-sizes": [swift("DispatchTests/testWhatMetalWouldAbortOnIsRefused")],
  "descriptor-threads": [swift("DispatchTests/testAPipelineOfFewerThreadsRefusesMore")],
  archives: [swift("ArchiveTests")],
  "archive-memory": [swift("ArchiveTests/testManyPipelinesAreCompiledOnceEachAndWrittenTogether")],
  "hosted-runner": [probe, swift("LibraryTests", "ArchiveTests")],
  "blit-lengths": [swift("MaterializeTests/testOddLengthsOfPrivateBuffers")],
  "dropped-buffers": [swift("TicketTests/testAFailedCommandBufferFailsItsOperationsOnly")],
  "queue-length": [swift("StressTests")],
  "completion-handlers": [swift("TicketTests")],
  "exit-in-flight": [swift("ExitTests"), tests("test/backend/metal/trouble.test.ts")],
  "threadgroup-length": [swift("DispatchTests/testThreadgroupMemoryIsOneDispatchs")],
  "validation-line": [tests("test/backend/metal/trouble.test.ts")],
  "fuzzed-grids": [swift("FuzzTests")],

  // The section on programs by others
  "new-buffers": [program],
  "event-timeout": [program],
  "tensor-layout": [tests("test/backend/metal/tensor_ops/products.test.ts")],
  "texture-outside": [program],
  captures: [
    { kind: "swift", names: ["FaultTests/testCaptureSaysWhatItNeeds"], environment: { MTL_CAPTURE_ENABLED: "1" } },
  ],
};

const code = (text: string): string => `\`${text}\``;

/** Describes the check as in docs/apple.md. */
export function describeCheck(check: Check): string {
  switch (check.kind) {
    case "probe":
      return "a probe";
    case "program":
      return "a Swift program";
    case "swift":
      return check.names.map((name) => code(name.split("/").at(-1)!)).join(", ");
    case "tests":
      return check.files.map((file) => code(file.replace(/^test\//, ""))).join(", ");
    case "build":
      return "the build";
    case "kernels":
      return "all kernels, compiled";
  }
}
