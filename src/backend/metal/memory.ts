import { type Pointer, toArrayBuffer } from "bun:ffi";
import { DisposedError } from "../../errors.ts";
import { type AllocationHint, allocateHost, type Memory } from "../../tensor/memory.ts";
import { Storage, type StorageMode } from "./abi.ts";
import { emptyStruct, readStruct, writeBlock } from "./block.ts";
import type { MetalContext } from "./context.ts";
import { isComplete, settleTicket } from "./journal.ts";
import { layouts } from "./layouts.ts";

/**
 * A Metal buffer as a tensor's memory. The garbage collector owns it through an array buffer over its contents: it knows the size,
 * and calls the dylib itself when the array buffer is gone, in a loop without a turn of the event loop too.
 */
export class MetalMemory implements Memory {
  readonly place = "metal";
  readonly byteLength: number;
  readonly handle: number;
  private readonly anchor: ArrayBuffer;
  private released = false;

  constructor(
    readonly context: MetalContext,
    byteLength: number,
    { storage, label }: AllocationHint = {},
  ) {
    this.byteLength = Math.max(byteLength, 1); // Metal has no empty buffers
    this.handle = createBuffer(context, this.byteLength, storage, label ?? "tensor");
    this.anchor = this.adopt();
  }

  /** Where the buffer lives. */
  get storage(): StorageMode {
    return this.info().storage === Storage.private ? "private" : "shared";
  }

  /** Has the buffer live in another mode from now on: a blit on the device, no wait. */
  moveToStorage(storage: StorageMode): void {
    this.context.call("move buffer", this.context.native.orchard_buffer_hint(this.checkedHandle(), Storage[storage]));
  }

  hostBuffer(): ArrayBuffer {
    if (this.storage === "private") this.moveToStorage("shared");
    settleTicket(this.context, this.info().lastTicket);
    // Where the device failed, the storage has other memory by now, and asks that one.
    return this.released ? this.anchor : this.contents();
  }

  /** The bytes, whatever became of the work that wrote them. */
  contents(): ArrayBuffer {
    const address = this.info().contents;
    if (address === this.anchorAddress) return this.anchor;
    return toArrayBuffer(address as Pointer, 0, this.byteLength); // it moved: the anchor stays its owner
  }

  hostBytes(): Uint8Array {
    return new Uint8Array(this.hostBuffer());
  }

  /** A copy in host memory, of whatever the buffer holds. */
  toHost(): Memory {
    if (this.storage === "private") {
      this.moveToStorage("shared");
      settleTicket(this.context, this.info().lastTicket);
    }
    const host = allocateHost(this.byteLength);
    new Uint8Array(host.hostBuffer()).set(new Uint8Array(this.contents()).subarray(0, host.byteLength));
    return host;
  }

  settled(): Promise<void> | null {
    const { lastTicket } = this.info();
    if (isComplete(this.context, lastTicket)) return null;
    return this.context.finished(lastTicket).catch(() => undefined); // a failure is mended by whoever reads
  }

  release(): void {
    if (this.released) return;
    this.released = true;
    if (!this.context.isClosed) this.context.native.orchard_release(this.handle);
  }

  private anchorAddress = 0;

  /** Ties the buffer to an array buffer, whose collection releases it. A private one has no contents to show, only an anchor. */
  private adopt(): ArrayBuffer {
    const { contents } = this.info();
    this.anchorAddress = contents;
    const collected = (this.context.native.orchard_collected as unknown as { ptr: Pointer }).ptr;
    const [address, length] =
      contents === 0 ? [this.context.counterAddress, 8] : [contents as Pointer, this.byteLength];
    return adoptBytes(address, 0, length, this.handle as Pointer, collected);
  }

  private info() {
    const status = this.context.native.orchard_buffer_info_get(this.checkedHandle(), infoScratch, infoScratch.length);
    this.context.call("buffer", status);
    return readStruct<"contents" | "lastTicket" | "storage">(layouts.bufferInfo, infoScratch);
  }

  private checkedHandle(): number {
    if (this.released) throw new DisposedError("buffer", "disposed", "its memory was given back");
    return this.handle;
  }
}

/** `toArrayBuffer` with its last two parameters, which Bun's types lack: a native deallocator, and what it is given. */
const adoptBytes = toArrayBuffer as unknown as (
  address: Pointer,
  byteOffset: number,
  byteLength: number,
  deallocatorContext: Pointer,
  deallocator: Pointer,
) => ArrayBuffer;

const infoScratch = emptyStruct(layouts.bufferInfo);
const out = new BigUint64Array(1);

function createBuffer(context: MetalContext, length: number, storage: StorageMode | undefined, label: string): number {
  const block = writeBlock(layouts.bufferOptions, {
    length,
    storage: Storage[storage ?? "default"],
    label,
  });
  context.call("allocate", context.native.orchard_buffer_create(context.handle, block, block.length, out));
  return Number(out[0]);
}
