/** Memory between inaccessible pages: a read or write before or after an operand ends the process. */
import { dlopen, type Pointer, toArrayBuffer } from "bun:ffi";

const isMac = process.platform === "darwin";
const libc = dlopen(isMac ? "libSystem.B.dylib" : "libc.so.6", {
  mmap: { args: ["ptr", "u64", "i32", "i32", "i32", "i64"], returns: "ptr" },
  mprotect: { args: ["ptr", "u64", "i32"], returns: "i32" },
}).symbols;

const PROT_NONE = 0;
const PROT_READ_WRITE = 3;
const MAP_PRIVATE_ANONYMOUS = isMac ? 0x1002 : 0x22;
const GUARD = 1 << 16;

/** Fills the space next to an operand; it must be unchanged after the call. */
const CANARY = 0xa5;
const CANARIES = 64;

/** Space for an operand, of whole pages between inaccessible pages. */
export class Room {
  readonly bytes: Uint8Array;
  private readonly address: number;
  /** The position of the operand in {@link bytes}. */
  first = 0;
  end = 0;

  constructor(readonly size: number) {
    const whole = Number(libc.mmap(null, size + 2 * GUARD, PROT_NONE, MAP_PRIVATE_ANONYMOUS, -1, 0));
    if (whole <= 0) throw new Error(`mmap could not reserve ${size} bytes`);
    this.address = whole + GUARD;
    if (libc.mprotect(this.address as Pointer, size, PROT_READ_WRITE) !== 0) throw new Error("mprotect fails");
    this.bytes = new Uint8Array(toArrayBuffer(this.address as Pointer, 0, size));
  }

  /** Reserves this many bytes at one end, at a multiple of 8, and returns their position in {@link bytes}. */
  place(count: number, atEnd: boolean): number {
    this.first = atEnd ? this.size - Math.ceil(count / 8) * 8 : 0;
    this.end = this.first + count;
    this.bytes.fill(CANARY, Math.max(0, this.first - CANARIES), this.first);
    this.bytes.fill(CANARY, this.end, Math.min(this.size, this.end + CANARIES));
    return this.first;
  }

  /** The address of the operand, for native code. */
  get pointer(): number {
    return this.address + this.first;
  }

  /** Whether the bytes next to the operand are unchanged. */
  isIntact(): boolean {
    const { bytes, first, end, size } = this;
    for (let at = Math.max(0, first - CANARIES); at < first; at++) if (bytes[at] !== CANARY) return false;
    for (let at = end; at < Math.min(size, end + CANARIES); at++) if (bytes[at] !== CANARY) return false;
    return true;
  }
}
