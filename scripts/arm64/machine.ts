/** On what the tests of arm64's code run: this machine, where it is one, or emulated processors. */
import { join } from "node:path";
import { buildFolder, cpuLibraryName } from "../../src/core/paths.ts";
import { buildCpu } from "../cpu/build.ts";
import { Failure } from "../failure.ts";
import { withSpinner } from "../progress.ts";
import { buildPortable } from "../release/dylib.ts";
import { setUpCpu } from "../toolchain/setup.ts";
import { installEmulation } from "./emulation.ts";

/** A processor, and Bun on it. */
export interface Processor {
  readonly name: string;
  readonly bun: readonly string[];
  /** The dylib of the cpu backend. */
  readonly library: string;
  readonly isEmulated: boolean;
  /** The instruction sets that the dylib should find there, where that is known. */
  readonly isas?: readonly string[];
  /** The folders whose tests run there; all where it is left out. */
  readonly folders?: readonly string[];
}

/**
 * QEMU's: the one with every extension that it knows, one with dot products of bytes alone, and one of plain Armv8.0.
 * Instruction sets differ in products only, so that the second runs their tests.
 */
export const emulatedProcessors: Readonly<Record<string, Pick<Processor, "isas" | "folders">>> = {
  max: { isas: ["neon", "dotprod", "fhm", "bf16"] },
  "cortex-a76": { isas: ["neon", "dotprod"], folders: ["test/quant", "test/ops/matmul", "test/backend/cpu"] },
  "cortex-a72": { isas: ["neon"] },
};

/** Builds the dylib, and installs what runs it. @throws {Failure} where neither way is open */
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
