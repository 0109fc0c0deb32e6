import { type Pointer, toArrayBuffer } from "bun:ffi";
import { getOrMake } from "../../core/collections.ts";
import { ArgumentError, BackendError, DisposedError, OutOfMemoryError } from "../../core/errors.ts";
import { observer } from "../../observe/observer.ts";
import { type AllocationHint, allocateHost, type Memory, noSuchBlock, type StorageMode } from "../../tensor/memory.ts";
import { reserve } from "../../tensor/reserve.ts";
import { type LiveMemory, meter, peakOf } from "../../tensor/usage.ts";
import { Storage } from "./abi.ts";
import { emptyStruct, readStruct } from "./block.ts";
import { isMetalOpen, type MetalContext, metalContext } from "./context.ts";
import { forgetFinished, hasFailed, isComplete, waitForOlderHalf, waitForTicket } from "./journal.ts";
import { layouts, type MetalStatistics } from "./layouts.ts";

/**
 * A Metal buffer as a tensor's memory. The garbage collector owns it through an array buffer over its contents: it
 * knows the size and calls the dylib when the array buffer is collected, even in a loop without turns of the event
 * loop.
 */
export class MetalMemory implements Memory {
  readonly device = "metal";
  readonly byteLength: number;
  /** The number of bytes that were requested, without padding. */
  readonly usedLength: number;
  readonly handle: number;
  private readonly anchor: ArrayBuffer;
  private readonly anchorAddress: number;
  /** The last ticket when the buffer was created. As long as it is unchanged, no wait is needed. */
  private readonly firstTicket: number;
  private released = false;
  /** The ticket of the blit that moved the bytes to the CPU. */
  private moveTicket = 0;

  constructor(
    readonly context: MetalContext,
    byteLength: number,
    { storage, label }: AllocationHint = {},
  ) {
    // Metal has no empty buffers, and a bound buffer must hold at least one element of the widest parameter type.
    this.byteLength = Math.max(byteLength, 16);
    this.usedLength = byteLength;
    createBuffer(context, this.byteLength, storage, label);
    this.handle = Number(facts[0]);
    this.anchorAddress = Number(facts[1]);
    this.firstTicket = Number(facts[2]);
    notePeak(Number(facts[3]));
    this.anchor = this.adopted();
    boundMemory(context, this.byteLength, this.anchorAddress === 0);
    if (observer) observer.allocated(this.byteLength, this.storage, usage(), label);
  }

  get isClosed(): boolean {
    return this.context.isClosed;
  }

  /** The current storage mode. */
  get storage(): StorageMode {
    return this.info().storage === Storage.private ? "private" : "shared";
  }

  /** Changes the storage mode with a blit on the device, without waiting. */
  moveToStorage(storage: StorageMode): void {
    this.context.call("move buffer", this.context.native.orchard_buffer_hint(this.checkedHandle(), Storage[storage]));
  }

  /** Moves shared memory that the host has written to the hinted storage mode. */
  moveToHint(storage = this.context.defaultStorage): void {
    if (storage === "private") this.moveToStorage(storage);
  }

  hostBuffer(): ArrayBuffer {
    this.moveToHost();
    const { lastTicket } = this.info();
    waitForTicket(this.context, lastTicket === this.firstTicket ? 0 : lastTicket);
    // If the device failed, the storage has been given other memory, which it reads instead of this buffer.
    if (this.released) return this.anchor;
    this.checkMove();
    return this.contents();
  }

  /** Starts a blit to CPU-accessible memory, if the bytes are elsewhere. */
  private moveToHost(): void {
    if (this.storage !== "private") return;
    this.moveToStorage("shared");
    this.moveTicket = this.info().lastTicket;
  }

  private checkMove(): void {
    if (!hasFailed(this.context, this.moveTicket)) return;
    throw new BackendError(
      "read",
      "lost",
      `${this.byteLength} bytes of private memory were lost: the command buffer that moved them to the CPU failed`,
    );
  }

  /** Returns the bytes, even if the work that wrote them failed. */
  contents(): ArrayBuffer {
    const address = this.info().contents;
    if (address === this.anchorAddress) return this.anchor;
    return toArrayBuffer(address, 0, this.byteLength); // the buffer moved; the anchor still owns it
  }

  hostBytes(): Uint8Array {
    return new Uint8Array(this.hostBuffer());
  }

  /** Copies the current contents to host memory. */
  toHost(): Memory {
    this.moveToHost();
    waitForTicket(this.context, this.info().lastTicket);
    this.checkMove();
    const host = allocateHost(this.byteLength);
    new Uint8Array(host.hostBuffer()).set(new Uint8Array(this.contents()).subarray(0, host.byteLength));
    return host;
  }

  whenReady(): Promise<void> | null {
    this.moveToHost();
    const { lastTicket } = this.info();
    if (isComplete(this.context, lastTicket)) return null;
    return this.context.finished(lastTicket).catch(() => undefined); // readers recover from failures
  }

  release(): void {
    if (this.released) return;
    this.released = true;
    if (!this.context.isClosed) this.context.native.orchard_release(this.handle);
  }

  private adopted(): ArrayBuffer {
    try {
      return this.adopt();
    } catch (cause) {
      if (!(cause instanceof RangeError)) throw cause;
      this.release();
      const advice = `${noSuchBlock(this.byteLength)}; use { storage: "private" }, which needs no block`;
      throw new OutOfMemoryError("allocate", "outOfMemory", advice, { cause });
    }
  }

  /**
   * Ties the buffer to an array buffer, whose collection releases it. A private buffer has no accessible contents, only
   * an anchor.
   */
  private adopt(): ArrayBuffer {
    const contents = this.anchorAddress;
    const collected = (this.context.native.orchard_collected as unknown as { ptr: Pointer }).ptr;
    const [address, length] =
      contents === 0 ? [this.context.counterAddress, 8] : [contents as Pointer, this.byteLength];
    return adoptBytes(address, 0, length, this.handle as Pointer, collected);
  }

  private info() {
    infoScratch ??= emptyStruct(layouts.bufferInfo);
    const status = this.context.native.orchard_buffer_info_get(this.checkedHandle(), infoScratch, infoScratch.length);
    this.context.call("buffer", status);
    return readStruct<"contents" | "lastTicket" | "storage">(layouts.bufferInfo, infoScratch);
  }

  private checkedHandle(): number {
    if (this.released) throw new DisposedError("buffer", "disposed", "its memory was already released");
    return this.handle;
  }
}

/** `toArrayBuffer` with the last two parameters that Bun's types lack: a native deallocator and its argument. */
const adoptBytes: (
  address: Pointer,
  byteOffset: number,
  byteLength: number,
  deallocatorContext: Pointer,
  deallocator: Pointer,
) => ArrayBuffer = toArrayBuffer;

let infoScratch: Uint8Array | undefined;
/** The results of the last `orchard_tensor_create`. */
const facts = new BigUint64Array(4);

const encoder = new TextEncoder();
const UNNAMED = new Uint8Array(1);

function createBuffer(
  context: MetalContext,
  length: number,
  storage: keyof typeof Storage = "default",
  label?: string,
): void {
  reserve(length);
  const name = label ? encoder.encode(label) : UNNAMED;
  const { native, handle } = context;
  const create = () => {
    const named = label ? name.length : 0;
    context.call("allocate", native.orchard_tensor_create(handle, length, Storage[storage], name, named, facts));
  };
  try {
    create();
  } catch (error) {
    if (error instanceof ArgumentError && error.code === "limitExceeded")
      throw new OutOfMemoryError("allocate", error.code, error.message.slice("[allocate] ".length), { cause: error });
    if (!(error instanceof OutOfMemoryError)) throw error;
    forgetFinished(context, { wait: true }); // pending work and garbage hold memory
    Bun.gc(true);
    create();
  }
}

const LEAST_GROWTH = 64 * 2 ** 20;
/** The least growth on a GPU, as a share of its memory: waiting after each large result would leave it idle. */
const GROWTH_SHARE = 1 / 64;
const MOST_GARBAGE = 256 * 2 ** 20;
let newBytes = 0;
let hasHidden = false;
/** Live bytes after the last requested collection. */
let neededBytes = 0;

/**
 * Limits memory that nothing else limits. It acts after each allocation of half of `neededBytes`, and at least 64 MB
 * and, on a GPU, a 64th of its memory.
 * Pending work retains its operands, so it waits for the older half of the work while the device continues with the
 * other half. The garbage collector does not see private memory, and treats the operands of pending work as reachable.
 * So the collector is run if live bytes have grown since its last run: by as much if private memory was allocated,
 * otherwise by far more. Tensors that the program disposes of cause no run.
 */
function boundMemory(context: MetalContext, byteLength: number, isHidden: boolean): void {
  newBytes += byteLength;
  hasHidden ||= isHidden;
  const growth = Math.max(leastGrowth(context), neededBytes / 2);
  if (newBytes < growth) return;
  newBytes = 0;
  waitForOlderHalf(context);
  const expected = hasHidden ? neededBytes + growth : 2 * neededBytes + MOST_GARBAGE;
  if (liveMemory(context).liveBytes < expected) return;
  Bun.gc(true);
  hasHidden = false;
  neededBytes = liveMemory(context).liveBytes;
}

const leastGrowths = new WeakMap<MetalContext, number>();

const leastGrowth = (context: MetalContext): number =>
  getOrMake(leastGrowths, context, () => {
    const { isSoftware, recommendedWorkingSet } = context.deviceInfo();
    return isSoftware ? LEAST_GROWTH : Math.max(LEAST_GROWTH, recommendedWorkingSet * GROWTH_SHARE);
  });

const statisticsScratch = emptyStruct(layouts.statistics);
const statisticsView = new DataView(statisticsScratch.buffer, statisticsScratch.byteOffset);
const statistic = (name: keyof MetalStatistics): number =>
  Number(statisticsView.getBigUint64(layouts.statistics.offsets[name], true));

function liveMemory(context: MetalContext): LiveMemory {
  context.call(
    "statistics",
    context.native.orchard_statistics_get(context.handle, statisticsScratch, statisticsScratch.length),
  );
  return { liveBytes: statistic("liveBytes"), blocks: statistic("liveBuffers") };
}

const { usage, notePeak } = meter(
  "metal",
  peakOf(() => (isMetalOpen() ? liveMemory(metalContext()) : { liveBytes: 0, blocks: 0 }), {
    settle: () => isMetalOpen() && forgetFinished(metalContext(), { wait: true }),
    trim: () => isMetalOpen() && metalContext().trim(),
  }),
);
