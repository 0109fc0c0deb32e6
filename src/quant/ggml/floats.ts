/** 16-bit floats as block formats with one value per block: f16, bf16. */
import type { BlockFormat } from "./block.ts";
import { brainAt, halfAt, putBrain, putHalf } from "./halves.ts";

export const f16: BlockFormat = {
  values: 1,
  bytes: 2,
  type: 1,
  halves: [],
  unpack(bytes, at, out, to) {
    out[to] = halfAt(bytes, at);
  },
  pack: (values, from, bytes, at) => putHalf(bytes, at, values[from]),
};

export const bf16: BlockFormat = {
  values: 1,
  bytes: 2,
  type: 30,
  halves: [],
  unpack(bytes, at, out, to) {
    out[to] = brainAt(bytes, at);
  },
  pack: (values, from, bytes, at) => putBrain(bytes, at, values[from]),
};
