/** ELF files with a table of segments, an interpreter, strings and dynamic entries, for tests. */

export interface Made {
  readonly interpreter?: string | undefined;
  readonly libraries?: readonly string[];
  /** Bytes between the parts. */
  readonly gap?: number;
  /** The address at which the file is mapped. */
  readonly base?: number;
}

/** Makes a file that names an interpreter and libraries. */
export function elf({ interpreter, libraries = [], gap = 0, base = 0 }: Made): Uint8Array {
  const parts: { bytes: Uint8Array; type: number; at: number }[] = [];
  let end = 64 + 3 * 56 + gap;
  const add = (bytes: Uint8Array, type: number) => {
    parts.push({ bytes, type, at: end });
    end += bytes.length + gap;
    return end - bytes.length - gap;
  };
  const text = (own: string) => new TextEncoder().encode(`${own}\0`);
  if (interpreter !== undefined) add(text(interpreter), 3);
  const strings = add(text(["", ...libraries].join("\0")), 0);
  const names = libraries.map((_, at) => 1 + libraries.slice(0, at).reduce((sum, own) => sum + own.length + 1, 0));
  const entries = [...names.map((name) => [1, name]), [5, base + strings], [0, 0]].flat();
  add(new Uint8Array(BigUint64Array.from(entries, BigInt).buffer), 2);
  const file = new Uint8Array(end);
  const view = new DataView(file.buffer);
  view.setUint32(0, 0x7f454c46);
  view.setBigUint64(32, 64n, true);
  const segments = [{ type: 1, at: 0, bytes: file }, ...parts.filter(({ type }) => type > 0)];
  view.setUint16(56, segments.length, true);
  for (const [index, { type, at, bytes }] of segments.entries()) {
    const start = 64 + 56 * index;
    view.setUint32(start, type, true);
    for (const [offset, value] of [[8, at], [16, base + at], [32, bytes.length]] as const) // biome-ignore format: rows
      view.setBigUint64(start + offset, BigInt(value), true);
  }
  for (const { bytes, at } of parts) file.set(bytes, at);
  return file;
}
