/** A block format. */
export interface BlockFormat {
  /** Values per block. */
  readonly values: number;
  /** Bytes per block. */
  readonly bytes: number;
  /** The type number in GGUF files (`ggml_type`). */
  readonly type: number;
  /** The byte offsets of float16 scales and minima in a block, which large values can overflow. */
  readonly halves: readonly number[];
  /** Unpacks the block at byte `at` to the values from `to` on, in float32, with each operation rounded. */
  unpack(bytes: Uint8Array, at: number, out: Float32Array, to: number): void;
  /** Packs the values from `from` on. */
  pack(values: Float32Array, from: number, bytes: Uint8Array, at: number): void;
}
