/** Prints readers of GGUF files. */
import { formatFile, formatMetadata } from "../format.ts";
import type { GgufReader } from "./file.ts";
import type { GgufValue } from "./types.ts";

/** @internal Returns the version, the metadata, and a line for each tensor. */
export function formatGguf(reader: GgufReader & { readonly path: string }, isClosed: boolean): string {
  const entries = reader.names.map((name) => ({ name, ...reader.info(name) }));
  const metadata = Object.entries(reader.metadata).map(([name, value]) => [name, formatValue(value)] as const);
  return formatFile(`GGUF ${reader.version}`, reader.path, entries, { metadata, isClosed });
}

/** Prints arrays by length, as they may be whole vocabularies. */
const formatValue = (value: GgufValue): string =>
  value.type === "array" ? `${value.value.length.toLocaleString("en")} × ${value.of}` : formatMetadata(value.value);
