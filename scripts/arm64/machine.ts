/** The processors on which arm64's code is tested: this machine if it is arm64, or emulated processors. */
import { join } from "node:path";
import { buildFolder, cpuLibraryName } from "../../src/core/paths.ts";
import { buildCpu } from "../cpu/build.ts";
import { Failure } from "../failure.ts";
import { withSpinner } from "../progress.ts";
import { buildPortable } from "../release/dylib.ts";
import { setUpCpu } from "../toolchain/setup.ts";
import { installEmulation } from "./emulation.ts";

/** A processor, with Bun for it. */
export interface Processor {
  readonly name: string;
  readonly bun: readonly string[];
  /** The dylib of the cpu backend. */
  readonly library: string;
  readonly isEmulated: boolean;
  /** The instruction sets that the dylib should detect, if known. */
  readonly isas?: readonly string[];
  /** The folders whose tests run; all if omitted. */
  readonly folders?: readonly string[];
}

/**
 * QEMU's processors: one with every extension that it supports, one that adds only dot products of bytes, and one with
 * plain Armv8.0. Instruction sets only affect products, so the second runs only their tests.
 */
export const emulatedProcessors: Readonly<Record<string, Pick<Processor, "isas" | "folders">>> = {
  max: { isas: ["neon", "dotprod", "fhm", "bf16"] },
  "cortex-a76": { isas: ["neon", "dotprod"], folders: ["test/quant", "test/ops/matmul", "test/backend/cpu"] },
  "cortex-a72": { isas: ["neon"] },
};

/** Builds the dylib, and installs the emulator if needed. @throws {Failure} if neither is possible */
export async function findProcessors(): Promise<readonly Processor[]> {
  if (process.platform !== "linux")
    throw new Failure(
      "expected Linux: `bun run test` tests the cpu backend of a Mac, whose code for arm64 is the same.",
    );
  return process.arch === "arm64" ? thisMachine() : emulated();
}

async function thisMachine(): Promise<Processor[]> {
  await setUpCpu();
  await buildCpu();
  const library = join(buildFolder, cpuLibraryName);
  return [{ name: "this machine", bun: [process.execPath], library, isEmulated: false }];
}

async function emulated(): Promise<Processor[]> {
  const { command } = await withSpinner("Preparing an arm64 machine", installEmulation);
  const library = await withSpinner("Building the cpu backend for arm64", (progress) =>
    buildPortable("arm64", progress),
  );
  const processors = Object.entries(emulatedProcessors);
  return processors.map(([name, processor]) => ({ name, bun: command(name), library, isEmulated: true, ...processor }));
}
