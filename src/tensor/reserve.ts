/** Keeps the memory of tensors on all backends within the memory limit. */
import { OutOfMemoryError } from "../core/errors.ts";
import { aNumber, either, nothing } from "../core/kinds.ts";
import { type MemoryLimit, memoryLimit, residentBytes } from "../core/limits.ts";
import { operand, parameters } from "../core/parameters.ts";
import { memory, reclaimMemory } from "./usage.ts";

let limit: MemoryLimit | undefined;
/** Bytes that may be allocated before live memory is counted again. */
let spare = 0;

/** @internal Returns the memory limit, which is determined at the first call. */
export function limitOfMemory(): MemoryLimit {
  limit ??= memoryLimit();
  return limit;
}

/**
 * Sets the memory limit of tensors on all backends together, from the next allocation on. Existing tensors are kept,
 * even if they exceed the new limit. An allocation over the limit first collects garbage, then throws an
 * `OutOfMemoryError` with the code `memoryLimit`.
 *
 * @param bytes a whole number of at least 1; null restores the default, which `ORCHARD_MEMORY_LIMIT` sets
 *
 * @example
 * setMemoryLimit(4 * 2 ** 30); // 4 GiB
 * setMemoryLimit(null);
 *
 * @throws {ArgumentError} for any other value
 */
export function setMemoryLimit(bytes: number | null): void;
export function setMemoryLimit(...values: unknown[]): void {
  const { bytes } = readSetMemoryLimit(values);
  setLimit(bytes === null ? undefined : { ...memoryLimit(), count: bytes, source: "set by setMemoryLimit" });
}

/**
 * Sets the memory limit to a fraction of the memory available to this process: the machine's memory, or the limit of
 * its control group (container). PyTorch: `torch.cuda.set_per_process_memory_fraction`.
 *
 * @param fraction above 0, at most 1
 *
 * @example
 * setMemoryFraction(0.5);
 *
 * @throws {ArgumentError} for any other value
 */
export function setMemoryFraction(fraction: number): void;
export function setMemoryFraction(...values: unknown[]): void {
  const { fraction } = readSetMemoryFraction(values);
  const system = memoryLimit();
  const count = Math.max(1, Math.floor(fraction * system.available));
  setLimit({ ...system, count, source: `set by setMemoryFraction: ${fraction} of ${system.available} bytes` });
}

const readSetMemoryLimit = parameters("setMemoryLimit", {
  bytes: operand(
    either(
      aNumber({
        holds: (bytes) => Number.isSafeInteger(bytes) && bytes >= 1,
        expected: "a whole number of at least 1",
      }),
      nothing,
    ),
  ),
});
const readSetMemoryFraction = parameters("setMemoryFraction", {
  fraction: operand(aNumber({ holds: (part) => part > 0 && part <= 1, expected: "a number above 0 and at most 1" })),
});

const listeners = new Set<(count: number) => void>();

/**
 * @internal Calls `listener` with the limit whenever it changes, for a backend's allocator.
 *
 * @returns a function that unsubscribes
 */
export function followMemoryLimit(listener: (count: number) => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

function setLimit(next: MemoryLimit | undefined): void {
  limit = next;
  spare = 0;
  for (const listener of listeners) listener(limitOfMemory().count);
}

/**
 * @internal Checks an allocation against the limit. Called before every allocation on any backend.
 *
 * @throws {OutOfMemoryError} `memoryLimit` if there is not enough memory even after garbage collection.
 */
export function reserve(byteLength: number): void {
  spare -= byteLength;
  if (spare < 0) makeRoom(byteLength);
}

function makeRoom(byteLength: number): void {
  const { count } = limitOfMemory();
  let room = bytesLeft();
  if (byteLength > room && byteLength <= count) {
    reclaimMemory();
    room = bytesLeft();
  }
  spare = 0;
  if (byteLength > room) throw overLimit(byteLength);
  // other threads count separately, so check again before all of it is used
  spare = Math.max(0, Math.min(room, count / 8) - byteLength);
}

function bytesLeft(): number {
  const { count, resident } = limitOfMemory();
  const { host, metal } = memory();
  const { external, heapUsed } = process.memoryUsage(); // the heap includes external memory
  const live = host.liveBytes + metal.liveBytes + scriptBytes(external);
  // Small blocks are not counted individually. They exceed the limit only if both the process and JavaScript's heap are
  // too large: the process includes cached pages, and the heap includes the user's mapped files.
  const small = Math.max(resident - residentBytes(), count - heapUsed);
  return Math.min(count - live, small);
}

/** Bytes of JavaScript's large blocks that are not known to be collected. It is updated in turns of the event loop. */
let countedBytes = 0;
const collected = new FinalizationRegistry<number>((byteLength) => {
  countedBytes -= byteLength;
});

/** @internal Counts a block allocated by JavaScript while it is live. */
export function countScriptBlock(block: ArrayBuffer): void {
  countedBytes += block.byteLength;
  collected.register(block, block.byteLength);
}

/** In a loop without turns of the event loop, only the collector's count of this thread's blocks is up to date. */
const scriptBytes = (external: number): number =>
  Math.min(countedBytes, Math.max(0, external - memory().host.liveBytes));

function overLimit(byteLength: number): OutOfMemoryError {
  const { host, metal } = memory();
  const script = scriptBytes(process.memoryUsage().external);
  const live = `${host.liveBytes + script} bytes are live on the host and ${metal.liveBytes} on metal`;
  return new OutOfMemoryError(
    "allocate",
    "memoryLimit",
    `${byteLength} bytes are refused: ${live}, and ${whatIsAllowed()}`,
  );
}

/** @internal Describes the limit, for messages. */
export function whatIsAllowed(): string {
  const { count, source } = limitOfMemory();
  return `tensors may take ${count} (${source})`;
}
