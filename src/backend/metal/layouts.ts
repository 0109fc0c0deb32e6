/**
 * The structs of `orchard.h` as data: their fields in order. A test compares each with the header, so both must change
 * together.
 */

/** A field's type. `span` is `orchard_span`: offset and length of bytes elsewhere in the block. */
export type FieldType = "u32" | "i32" | "u64" | "i64" | "span" | "u32[3]" | "u64[8]" | "i64[8]" | "u8[32]";

/** A struct: its fields in order, with their offsets. */
export interface Layout {
  readonly fields: Readonly<Record<string, FieldType>>;
  readonly offsets: Readonly<Record<string, number>>;
  readonly size: number;
}

export const fieldSize: Readonly<Record<FieldType, number>> = {
  u32: 4,
  i32: 4,
  u64: 8,
  i64: 8,
  span: 8,
  "u32[3]": 12,
  "u64[8]": 64,
  "i64[8]": 64,
  "u8[32]": 32,
};

/** Natural alignment: the size of the largest element, at most 8 bytes. */
export const fieldAlignment: Readonly<Record<FieldType, number>> = {
  u32: 4,
  i32: 4,
  u64: 8,
  i64: 8,
  span: 4,
  "u32[3]": 4,
  "u64[8]": 8,
  "i64[8]": 8,
  "u8[32]": 1,
};

/** A layout that is computed on first use, since most programs use few. */
class LaterLayout implements Layout {
  #found: Pick<Layout, "offsets" | "size"> | undefined;

  constructor(readonly fields: Readonly<Record<string, FieldType>>) {}

  get offsets(): Layout["offsets"] {
    this.#found ??= layOut(this.fields);
    return this.#found.offsets;
  }

  get size(): number {
    this.#found ??= layOut(this.fields);
    return this.#found.size;
  }
}

const layout = (fields: Readonly<Record<string, FieldType>>): Layout => new LaterLayout(fields);

function layOut(fields: Layout["fields"]): Pick<Layout, "offsets" | "size"> {
  const offsets: Record<string, number> = {};
  let end = 0;
  let widest = 1;
  for (const [name, type] of Object.entries(fields)) {
    const alignment = fieldAlignment[type];
    end = Math.ceil(end / alignment) * alignment;
    offsets[name] = end;
    end += fieldSize[type];
    widest = Math.max(widest, alignment);
  }
  return { offsets, size: Math.ceil(end / widest) * widest };
}

const header = { size: "u32", version: "u32" } as const;

const statisticsFields = [
  "liveBytes",
  "liveBuffers",
  "cachedBytes",
  "cachedBuffers",
  "peakBytes",
  "memoryLimit",
  "cacheLimit",
  "allocations",
  "poolHits",
  "dispatches",
  "commandBuffers",
  "encoders",
  "barriers",
  "copiesStorage",
  "copiesContiguous",
  "copiesWriteBack",
  "copiesStaging",
  "copiesRequested",
  "copiedBytes",
  "librariesCompiled",
  "libraryHits",
  "pipelinesCompiled",
  "pipelineHits",
  "archiveHits",
  "archiveRebuilds",
  "archiveFailures",
  "errors",
  "failedTickets",
  "queuesReplaced",
  "commandBuffersRepeated",
  "largestWork",
  "archiveWrites",
] as const;

/** A context's statistics since it was opened, in bytes and counts. */
export type MetalStatistics = Record<(typeof statisticsFields)[number], number>;

/** The layouts by C name without `orchard_`, in camelCase. */
export const layouts = {
  openOptions: layout({
    ...header,
    defaultStorage: "u32",
    flags: "u32",
    batchOperations: "u32",
    timeoutMs: "u32",
    batchBytes: "u64",
    cacheLimit: "u64",
    memoryLimit: "u64",
    cacheFolder: "span",
    materializeSource: "span",
    label: "span",
    batchWork: "u64",
  }),
  bufferOptions: layout({ ...header, length: "u64", storage: "u32", flags: "u32", label: "span" }),
  bufferInfo: layout({
    ...header,
    length: "u64",
    allocated: "u64",
    contents: "u64",
    lastTicket: "u64",
    storage: "u32",
    retainCount: "u32",
  }),
  view: layout({
    ...header,
    buffer: "u64",
    offset: "u64",
    elementSize: "u32",
    rank: "u32",
    storage: "u32",
    flags: "u32",
    shape: "u64[8]",
    strides: "i64[8]",
    label: "span",
  }),
  materialized: layout({ ...header, buffer: "u64", offset: "u64", copies: "u32", reserved: "u32" }),
  namedText: layout({ name: "span", text: "span" }),
  libraryOptions: layout({
    ...header,
    languageVersion: "u32",
    mathMode: "u32",
    mathFunctions: "u32",
    flags: "u32",
    name: "span",
    source: "span",
    headers: "span",
    macros: "span",
    label: "span",
  }),
  constant: layout({ name: "span", index: "u32", type: "u32", value: "u8[32]" }),
  pipelineOptions: layout({
    ...header,
    function: "span",
    constants: "span",
    maxThreads: "u32",
    flags: "u32",
    label: "span",
  }),
  binding: layout({ buffer: "u64", offset: "u64", length: "u64", index: "u32", access: "u32" }),
  inline: layout({ index: "u32", reserved: "u32", bytes: "span" }),
  threadgroupMemory: layout({ index: "u32", length: "u32" }),
  dispatch: layout({
    ...header,
    pipeline: "u64",
    grid: "u32[3]",
    gridKind: "u32",
    threadgroup: "u32[3]",
    flags: "u32",
    bindings: "span",
    inlineBytes: "span",
    threadgroupMemory: "span",
    label: "span",
    work: "u64",
  }),
  statistics: layout({
    ...header,
    ...Object.fromEntries(statisticsFields.map((name) => [name, "u64"])),
  }),
} as const satisfies Record<string, Layout>;

/** The version of the interface that these layouts and declarations describe. */
export const ABI_VERSION = 2;
