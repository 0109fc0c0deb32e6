/** Keeps what tensors take on all backends together within the memory limit. */
import { OutOfMemoryError } from "../core/errors.ts";
import { type MemoryLimit, memoryLimit, residentBytes } from "../core/limits.ts";
import { memory, reclaimMemory } from "./usage.ts";

let limit: MemoryLimit | undefined;
/** Bytes that may be allocated before what is live is counted anew. */
let spare = 0;

/** @internal What tensors may take; determined at the first call. */
export function limitOfMemory(): MemoryLimit {
  limit ??= memoryLimit();
  return limit;
}

/** @internal For tests: another limit from now on; undefined: the system's. */
export function setMemoryLimit(count: number | undefined): void {
  limit = count === undefined ? undefined : { ...memoryLimit(), count, source: "by a test" };
  spare = 0;
}

/**
 * @internal Called before memory is allocated, on whatever backend.
 *
 * @throws {OutOfMemoryError} `memoryLimit`, with the figures, where garbage collection makes no room either.
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
  // other threads of JavaScript count what is theirs: it is looked at again before all is taken
  spare = Math.max(0, Math.min(room, count / 8) - byteLength);
}

function bytesLeft(): number {
  const { count, resident } = limitOfMemory();
  const { host, metal } = memory();
  const { external, heapUsed } = process.memoryUsage(); // the heap includes what is external
  const live = host.liveBytes + metal.liveBytes + scriptBytes(external);
  // What is small is not counted one by one. It is too much where both the process and JavaScript's heap are too large:
  // one keeps pages for reuse, the other has the user's mapped files.
  const small = Math.max(resident - residentBytes(), count - heapUsed);
  return Math.min(count - live, small);
}

/** Large blocks of JavaScript that were not collected, as far as the event loop had a turn to learn of it. */
let countedBytes = 0;
const collected = new FinalizationRegistry<number>((byteLength) => {
  countedBytes -= byteLength;
});

/** @internal Counts a block of JavaScript's for as long as it lives. */
export function countScriptBlock(block: ArrayBuffer): void {
  countedBytes += block.byteLength;
  collected.register(block, block.byteLength);
}

/** In a loop without a turn of the event loop, only the collector knows: all blocks of this thread, native ones too. */
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

/** @internal For messages. */
export function whatIsAllowed(): string {
  const { count, source } = limitOfMemory();
  return `tensors may take ${count} (${source})`;
}
