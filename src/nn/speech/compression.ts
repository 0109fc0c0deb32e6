/** Measures how repetitive a text is. */
import { zlib } from "../../io/zlib.ts";

/** Returns the size of a text in UTF-8 divided by its size after compression; repetitive texts have high values. */
export function compressionRatioOf(text: string): number {
  const bytes = Buffer.from(text.trim());
  return bytes.length / zlib().deflateSync(bytes).length;
}
