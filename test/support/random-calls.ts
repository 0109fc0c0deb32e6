/**
 * Throws random calls at the dylib: random functions, handles, sizes, descriptor bytes and orders. Each result must be
 * a status that orchard.h names. It runs as a program, so that a crash is an exit code and not the end of the tests:
 *
 *     bun test/support/random-calls.ts <seed> <calls> <threads>
 */
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { declarations, statusNames } from "../../src/backend/metal/abi.ts";
import { emptyStruct, readStruct, writeBlock } from "../../src/backend/metal/block.ts";
import { type Layout, layouts } from "../../src/backend/metal/layouts.ts";
import { library } from "../../src/backend/metal/loader.ts";

const { native } = library();

/** mulberry32: small, seeded, good enough to choose calls. */
function generator(seed: number) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const source = `#include <metal_stdlib>
using namespace metal;
constant uint n [[function_constant(0)]];
kernel void copy(device const float* a [[buffer(0)]], device float* b [[buffer(1)]],
                 uint i [[thread_position_in_grid]]) { b[i] = a[i]; }
kernel void fold(device float* a [[buffer(0)]], threadgroup float* t [[threadgroup(0)]],
                 uint i [[thread_index_in_threadgroup]]) {
  t[i] = a[i]; threadgroup_barrier(mem_flags::mem_threadgroup); a[i] = t[0] + (is_function_constant_defined(n) ? n : 0);
}`;

/** Excluded functions, which would block or change what is measured. */
const excluded = new Set([
  "orchard_abi_version",
  "orchard_capture_begin",
  "orchard_configure",
  "orchard_close",
  "orchard_open",
]);
type Kind = "buffer" | "library" | "pipeline";

const names = Object.keys(declarations).filter((name) => !excluded.has(name)) as (keyof typeof declarations)[];

/** Releases every owner. */
function releaseFully(handle: number): void {
  while (native.orchard_release(handle) === 0);
}

class Storm {
  private readonly random: () => number;
  private readonly handles: Record<Kind, number[]> = { buffer: [], library: [], pipeline: [] };
  readonly statuses = new Map<string, number>();

  constructor(
    seed: number,
    private readonly context: number,
  ) {
    this.random = generator(seed);
  }

  private below(limit: number): number {
    return Math.floor(this.random() * limit);
  }

  private pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  /** Mostly a handle of the right kind, sometimes of another, sometimes an invalid one. */
  private handle(kind: Kind): number {
    if (this.random() < 0.85 && this.handles[kind].length > 0) return this.pick(this.handles[kind]);
    const any = this.pick([...Object.values(this.handles).flat(), this.context]);
    return this.pick([any, any + this.below(3), 0, 1, 2 ** 53 - 1, this.below(2 ** 50)]);
  }

  private size(): number {
    return this.pick([0, 1, 3, 4, 16, 100, 4096, 16384, 65536, 1 << 20, 2 ** 31, 2 ** 32, 2 ** 40, 2 ** 53 - 1]);
  }

  private small(): number {
    return this.pick([0, 0, 1, 1, 2, 3, 5, 16, 31, 32, 64, 255, 1024, 1025, 4096, 2 ** 31, 2 ** 32 - 1]);
  }

  /** A block that is usually valid, sometimes with altered bytes. */
  private block(layout: Layout, sensible: () => Parameters<typeof writeBlock>[1]): Uint8Array {
    const block = new Uint8Array(writeBlock(layout, sensible()));
    if (this.random() < 0.35)
      for (let times = this.below(4); times >= 0; times--) block[this.below(block.length)] = this.below(256);
    return block;
  }

  private descriptor(name: string): Uint8Array {
    const label = this.pick(["", "x", "buffer", "ü".repeat(20)]);
    switch (name) {
      case "orchard_buffer_create":
        return this.block(layouts.bufferOptions, () => ({
          length: this.pick([1, 16, 4096, 65536, this.size()]),
          storage: this.below(4),
          flags: this.below(2),
          label,
        }));
      case "orchard_library_create":
        return this.block(layouts.libraryOptions, () => ({
          source: this.pick([source, source, source, "", "kernel void k(", "no"]),
          label,
        }));
      case "orchard_pipeline_create":
        return this.block(layouts.pipelineOptions, () => ({
          function: this.pick(["copy", "fold", "none", ""]),
          maxThreads: this.pick([0, 0, 32, 1024, 5000]),
        }));
      case "orchard_dispatches_encode":
        return this.dispatches();
      case "orchard_dispatch_encode":
        return this.block(layouts.dispatch, () => this.dispatch());
      default:
        return this.block(layouts.view, () => ({
          buffer: this.handle("buffer"),
          offset: this.pick([0, 0, 4, this.size()]),
          elementSize: this.pick([1, 2, 4, 8, 3]),
          rank: this.pick([0, 1, 2, 8, 9]),
          storage: this.below(4),
          flags: this.below(2),
          shape: [this.pick([2, 4, 0]), this.pick([2, 3, 2 ** 40]), 1, 1, 1, 1, 1, 1],
          strides: [this.pick([4, 1, -1, 0]), this.pick([1, 4, 2 ** 50]), 1, 1, 1, 1, 1, 1],
        }));
    }
  }

  /** A list of up to three dispatches, sometimes truncated. */
  private dispatches(): Uint8Array {
    const blocks = Array.from({ length: this.below(4) }, () => this.descriptor("orchard_dispatch_encode"));
    const list = blocks.flatMap((block) => {
      const padded = new Uint8Array(8 + Math.ceil(block.length / 8) * 8);
      new DataView(padded.buffer).setBigUint64(0, BigInt(block.length + (this.random() < 0.1 ? this.size() : 0)), true);
      padded.set(block, 8);
      return [...padded];
    });
    return new Uint8Array(list.slice(0, this.random() < 0.9 ? list.length : this.below(list.length + 1)));
  }

  /** In one of three calls only handles are random, so that some dispatches succeed. */
  private dispatch(): Parameters<typeof writeBlock>[1] {
    if (this.random() < 0.33) return this.soundDispatch();
    const binding = (index: number) => ({
      buffer: this.handle("buffer"),
      offset: this.pick([0, 0, 0, 4, this.size()]),
      length: 0,
      index,
      access: this.pick([1, 2, 3, 3, 0, 9]),
    });
    return {
      pipeline: this.handle("pipeline"),
      grid: [this.pick([1, 32, 64, this.small()]), this.pick([1, 1, 1, this.below(3)]), 1],
      gridKind: this.pick([0, 0, 1, 2]),
      threadgroup: [this.pick([1, 32, this.small()]), 1, 1],
      bindings: { layout: layouts.binding, items: [binding(0), binding(this.pick([1, 1, 0, 31, 77]))] },
      inlineBytes:
        this.random() < 0.1
          ? { layout: layouts.inline, items: [{ index: 2, bytes: new Uint8Array(this.pick([4, 4096, 4097])) }] }
          : undefined,
      threadgroupMemory:
        this.random() < 0.5
          ? { layout: layouts.threadgroupMemory, items: [{ index: 0, length: this.pick([16, 128, 5, 40000]) }] }
          : undefined,
      label: "storm",
    };
  }

  private soundDispatch(): Parameters<typeof writeBlock>[1] {
    const items = [0, 1].map((index) => ({ buffer: this.handle("buffer"), offset: 0, length: 0, index, access: 3 }));
    return {
      pipeline: this.handle("pipeline"),
      grid: [this.pick([1, 32]), 1, 1],
      gridKind: 0,
      threadgroup: [32, 1, 1],
      bindings: { layout: layouts.binding, items },
      threadgroupMemory: { layout: layouts.threadgroupMemory, items: [{ index: 0, length: 128 }] },
      label: "storm",
    };
  }

  /** Releases the remaining objects. */
  releaseAll(): void {
    for (const handle of Object.values(this.handles).flat()) releaseFully(handle);
  }

  /** One random call. `length` is always correct for the view, which every caller must ensure. */
  step(): void {
    const name = this.pick(names);
    const out = new BigUint64Array(4);
    const status = this.call(name, out);
    const known = statusNames[status];
    if (known === undefined) throw new Error(`${name} answered ${status}`);
    this.statuses.set(`${name} ${known}`, (this.statuses.get(`${name} ${known}`) ?? 0) + 1);
    if (status === 0 && /_create$/.test(name))
      this.handles[(/library|pipeline/.exec(name)?.[0] ?? "buffer") as Kind].push(Number(out[0]));
    for (const kind of Object.values(this.handles)) {
      if (kind.length > 30) releaseFully(kind.splice(this.below(kind.length), 1)[0] as number);
    }
  }

  private call(name: keyof typeof declarations, out: BigUint64Array): number {
    const bytes = new Uint8Array(this.pick([1, 16, 4096]));
    const text = new Uint8Array(this.pick([0, 5, 64])).fill(97 + this.below(26));
    const owner = this.random() < 0.9 ? this.context : this.handle("buffer");
    if (
      /(buffer|library|pipeline)_create$/.test(name) ||
      name === "orchard_dispatch_encode" ||
      name === "orchard_dispatches_encode" ||
      name === "orchard_materialize" ||
      name === "orchard_write_back"
    )
      return this.build(name, owner, out);
    switch (name) {
      case "orchard_buffer_info_get":
        return native.orchard_buffer_info_get(
          this.handle("buffer"),
          emptyStruct(layouts.bufferInfo),
          layouts.bufferInfo.size,
        );
      case "orchard_statistics_get":
        return native.orchard_statistics_get(owner, emptyStruct(layouts.statistics), layouts.statistics.size);
      case "orchard_buffer_read":
        return native.orchard_buffer_read(this.handle("buffer"), this.pick([0, 1, this.size()]), bytes, bytes.length);
      case "orchard_buffer_write":
        return native.orchard_buffer_write(this.handle("buffer"), this.pick([0, 1, this.size()]), bytes, bytes.length);
      case "orchard_buffer_fill":
        return native.orchard_buffer_fill(
          this.handle("buffer"),
          this.pick([0, this.size()]),
          this.size(),
          this.below(300),
          out,
        );
      case "orchard_buffer_copy":
        return native.orchard_buffer_copy(
          this.handle("buffer"),
          this.pick([0, this.size()]),
          this.handle("buffer"),
          this.pick([0, this.size()]),
          this.size(),
          out,
        );
      case "orchard_tensor_create": {
        const length = this.pick([1, 4096, this.size()]);
        return native.orchard_tensor_create(owner, length, this.below(4), text, text.length, out);
      }
      case "orchard_ticket_wait":
        return native.orchard_ticket_wait(owner, this.pick([0, 1, 5, this.size()]), this.below(3));
      case "orchard_inject_fault":
        return native.orchard_inject_fault(owner, text, text.length, 0, 0, 0);
      default:
        return this.plain(name, owner, bytes, text, out);
    }
  }

  private build(name: keyof typeof declarations, owner: number, out: BigUint64Array): number {
    const block = this.descriptor(name);
    if (name === "orchard_dispatch_encode") return native.orchard_dispatch_encode(block, block.length, out);
    if (name === "orchard_dispatches_encode") {
      if (block.length === 0) return native.orchard_dispatches_encode(new Uint8Array(8), 0, new BigUint64Array(3));
      return native.orchard_dispatches_encode(block, block.length, new BigUint64Array(3));
    }
    if (name === "orchard_write_back")
      return native.orchard_write_back(block, block.length, this.handle("buffer"), this.size(), out);
    if (name === "orchard_materialize") {
      const result = emptyStruct(layouts.materialized);
      const status = native.orchard_materialize(block, block.length, result, result.length);
      if (status === 0)
        this.handles.buffer.push(Number(new DataView(result.buffer, result.byteOffset).getBigUint64(8, true)));
      return status;
    }
    const parent = name === "orchard_pipeline_create" ? this.handle("library") : owner;
    return native[name as "orchard_buffer_create"](parent, block, block.length, out);
  }

  /** The functions whose arguments can be derived from their types. */
  private plain(
    name: keyof typeof declarations,
    owner: number,
    bytes: Uint8Array,
    text: Uint8Array,
    out: BigUint64Array,
  ): number {
    const { args } = declarations[name] as { args: readonly string[] };
    const values: unknown[] = [];
    for (const [position, type] of args.entries()) {
      if (type === "buffer") values.push(args[position + 1] === "u64" ? (name.includes("label") ? text : bytes) : out);
      else if (position > 0 && args[position - 1] === "buffer")
        values.push(name.includes("label") ? text.length : bytes.length);
      else if (type === "u64") values.push(position === 0 ? this.subject(name, owner) : this.size());
      else values.push(this.small() | 0);
    }
    return (native[name] as (...values: unknown[]) => number)(...values);
  }

  /** The handle that a function operates on. */
  private subject(name: string, owner: number): number {
    const kinds = ["buffer", "library", "pipeline"] as const;
    const kind = kinds.find((candidate) => name.includes(candidate));
    if (kind) return this.handle(kind);
    return /retain|release/.test(name) ? this.handle(this.pick(kinds)) : owner;
  }
}

function storm(seed: number, calls: number, context: number): Record<string, number> {
  const run = new Storm(seed, context);
  for (let call = 0; call < calls; call++) run.step();
  run.releaseAll();
  return Object.fromEntries(run.statuses);
}

/** Buffers that still have an owner, once all work is done. */
function liveBuffers(context: number): number {
  const ticket = new BigUint64Array(1);
  native.orchard_commit(context, ticket);
  native.orchard_ticket_wait(context, Number(ticket[0]), 5000);
  const statistics = emptyStruct(layouts.statistics);
  native.orchard_statistics_get(context, statistics, statistics.length);
  return readStruct<"liveBuffers">(layouts.statistics, statistics).liveBuffers;
}

if (!isMainThread) {
  const { seed, calls, context } = workerData as { seed: number; calls: number; context: number };
  parentPort?.postMessage(storm(seed, calls, context));
} else {
  const [seed = 1, calls = 20_000, threads = 2] = process.argv.slice(2).map(Number);
  const out = new BigUint64Array(1);
  const options = writeBlock(layouts.openOptions, { memoryLimit: 64 << 20, timeoutMs: 5000 });
  if (native.orchard_open(options, options.length, out) !== 0) throw new Error("no context");
  const context = Number(out[0]);
  const counts = await Promise.all(
    Array.from({ length: threads }, (_, index) => {
      const worker = new Worker(new URL(import.meta.url), {
        workerData: { seed: seed + index, calls: calls / threads, context },
      });
      return new Promise<Record<string, number>>((resolve, reject) => {
        worker.on("message", resolve);
        worker.on("error", reject);
      });
    }),
  );
  const live = liveBuffers(context);
  const closed = native.orchard_close(context);
  const total: Record<string, number> = {};
  for (const count of counts) for (const [key, times] of Object.entries(count)) total[key] = (total[key] ?? 0) + times;
  console.log(JSON.stringify({ closed, live, total }));
}
