/** Storage of a layer's keys and values, in the computed dtype, in float16 or quantized. */
import { noGrad } from "../../autograd/modes.ts";
import { ShapeError } from "../../core/errors.ts";
import { tupleOf } from "../../core/tuples.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { copy_ } from "../../ops/copy/inplace.ts";
import { empty } from "../../ops/creation/full.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { indexSelect } from "../../ops/indexing/gather.ts";
import { permute } from "../../ops/view/permute.ts";
import { narrow } from "../../ops/view/slice.ts";
import { dequantize } from "../../quant/dequantize/dequantize.ts";
import { blockFormat, type ScaleDType } from "../../quant/formats.ts";
import { packQ8Into } from "../../quant/pack_q8.ts";
import { ofParts } from "../../quant/parts.ts";
import { quantizeGgml } from "../../quant/quantize.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { keep, tidy } from "../../tensor/tidy.ts";

/** Keys and values of one attention layer: [batch, heads, tokens, dim]. */
export interface KeysAndValues {
  /** The keys. */
  readonly keys: Tensor;
  /** The values. */
  readonly values: Tensor;
}

/** @internal Storage formats other than the computed dtype. */
export const cacheFormats = ["float16", "q8_0"] as const;

/**
 * Storage format of cached keys and values. `"float16"` rounds each value to 11 significant bits. `"q8_0"` gives every
 * 32 values a common scale; the error of each value is at most 1/254 of the largest of the 32.
 */
export type CacheFormat = (typeof cacheFormats)[number];

/** @internal Shape and dtype of the tensors to store; the number of tokens is ignored. */
export type Like = Pick<Tensor, "dtype"> & { readonly shape: Shape };

/** How keys or values are stored. */
interface Coding {
  /** The axis of tokens in the storage. */
  readonly axis: number;
  /** Allocates storage for a number of tokens. */
  readonly room: (like: Like, tokens: number) => Tensor;
  /** Writes x [batch, heads, tokens, dim] to a slice of the storage. */
  readonly write: (part: Tensor, x: Tensor) => void;
  /** Reads a slice of the storage as [batch, heads, tokens, dim]. */
  readonly read: (part: Tensor, like: Like) => Tensor;
  /** A view of the storage for the fused decoding step: [batch, heads, tokens, …]. */
  readonly rows: (room: Tensor) => Tensor;
}

/** The axis of tokens in keys and values. */
const TOKENS = 2;

const inDType = (dtypeOf: (like: Like) => DType): Coding => ({
  axis: TOKENS,
  room: (like, tokens) => keep(empty(like.shape.with(TOKENS, tokens), { dtype: dtypeOf(like) })),
  write: (part, x) => void copy_(part, x),
  read: (part) => part,
  rows: (room) => room,
});

const { values: BLOCK_VALUES, bytes: BLOCK_BYTES } = blockFormat("q8_0");

/** Tokens are the first axis, so that a range of tokens is contiguous. */
const quantized: Coding = {
  axis: 0,
  room({ shape }, tokens) {
    const [batch, heads, , dim] = tupleOf(shape, 4);
    if (dim % BLOCK_VALUES !== 0)
      throw new ShapeError(
        "AttentionCache",
        "wrongHeadWidth",
        `expected a head width that is a multiple of ${BLOCK_VALUES} for a q8_0 cache, got ${dim}; use "float16"`,
      );
    return keep(empty([tokens, batch, heads, (dim / BLOCK_VALUES) * BLOCK_BYTES], { dtype: "uint8" }));
  },
  write(part, x) {
    const tokensFirst = permute(x, [2, 0, 1, 3]);
    if (packQ8Into(part, toDType(tokensFirst, "float32"))) return;
    using packed = quantizeGgml(tokensFirst, "q8_0");
    copy_(part, packed.parts.packed);
  },
  read(part, like) {
    using packed = ofParts("q8_0", { packed: part }, like.dtype === "float64" ? "float32" : (like.dtype as ScaleDType));
    return permute(dequantize(packed), [1, 2, 0, 3]);
  },
  rows: (room) => keep(noGrad(() => permute(room, [1, 2, 0, 3]))),
};

const codings: Readonly<Record<CacheFormat | "dtype", Coding>> = {
  dtype: inDType(({ dtype }) => dtype),
  float16: inDType(() => "float16"),
  q8_0: quantized,
};

/** @internal Keys and values of up to `capacity` tokens. It records no autograd history. */
export class TokenStore implements Disposable, KeysAndValues {
  private readonly coding: Coding;
  /** @internal */
  readonly keys: Tensor;
  /** @internal */
  readonly values: Tensor;
  /** @internal Views of the storage for the fused decoding step. */
  readonly room: KeysAndValues;
  private readonly like: Readonly<Record<keyof KeysAndValues, Like>>;

  constructor(
    private readonly format: CacheFormat | undefined,
    readonly capacity: number,
    { keys, values }: Readonly<Record<keyof KeysAndValues, Like>>,
  ) {
    const likeOf = ({ shape, dtype }: Like): Like => ({ shape, dtype });
    this.like = { keys: likeOf(keys), values: likeOf(values) };
    this.coding = codings[format ?? "dtype"];
    this.keys = this.coding.room(keys, capacity);
    this.values = this.coding.room(values, capacity);
    this.room = { keys: this.coding.rows(this.keys), values: this.coding.rows(this.values) };
  }

  /** Writes tokens at the positions from `start` on. */
  write(start: number, { keys, values }: KeysAndValues): void {
    const count = keys.shape[TOKENS];
    const { axis, write } = this.coding;
    tidy(() =>
      noGrad(() => {
        write(narrow(this.keys, axis, start, count), keys);
        write(narrow(this.values, axis, start, count), values);
      }),
    );
  }

  /** Reads `count` tokens from `start` on: views, or unpacked copies. */
  read(start: number, count: number): KeysAndValues {
    const { axis, read } = this.coding;
    return noGrad(() => ({
      keys: read(narrow(this.keys, axis, start, count), this.like.keys),
      values: read(narrow(this.values, axis, start, count), this.like.values),
    }));
  }

  /**
   * Returns a store of another capacity that begins with `count` tokens of this one from `start` on. Disposes of this
   * one.
   */
  resized(capacity: number, start: number, count: number): TokenStore {
    const next = new TokenStore(this.format, capacity, this.like);
    const { axis } = this.coding;
    const copy = (to: Tensor, from: Tensor) => copy_(narrow(to, axis, 0, count), narrow(from, axis, start, count));
    tidy(() =>
      noGrad(() => {
        copy(next.keys, this.keys);
        copy(next.values, this.values);
      }),
    );
    this.dispose();
    return next;
  }

  /** Returns a store whose row i is row `rows[i]` of this one, with the first `count` tokens. Disposes of this one. */
  reordered(rows: readonly number[], count: number): TokenStore {
    const batch = ({ shape, dtype }: Like): Like => ({ shape: shape.with(0, rows.length), dtype });
    const like = { keys: batch(this.like.keys), values: batch(this.like.values) };
    const next = new TokenStore(this.format, this.capacity, like);
    const { axis } = this.coding;
    tidy(() =>
      noGrad(() => {
        const indices = tensor([...rows], { dtype: "int32" });
        const copy = (to: Tensor, from: Tensor) =>
          // the first axis is rows, unless the layout puts tokens first
          copy_(narrow(to, axis, 0, count), indexSelect(narrow(from, axis, 0, count), axis === 0 ? 1 : 0, indices));
        copy(next.keys, this.keys);
        copy(next.values, this.values);
      }),
    );
    this.dispose();
    return next;
  }

  dispose(): void {
    for (const { keys, values } of [this.room, this]) {
      keys.dispose();
      values.dispose();
    }
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
