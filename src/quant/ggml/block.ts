/** What a format of blocks is. */
export interface BlockFormat {
  /** Values of a block. */
  readonly values: number;
  /** Bytes of a block. */
  readonly bytes: number;
  /** Its number in GGUF files (`ggml_type`). */
  readonly type: number;
  /** Where a block has its scales and minima in float16, which large values make infinite. */
  readonly halves: readonly number[];
  /** Unpacks the block at a byte to the values from `to` on; computed in float32, each operation rounded. */
  unpack(bytes: Uint8Array, at: number, out: Float32Array, to: number): void;
  /** Packs the values from `from` on. */
  pack(values: Float32Array, from: number, bytes: Uint8Array, at: number): void;
}
