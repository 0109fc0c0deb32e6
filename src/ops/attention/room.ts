/** The preallocated rows of keys or values of a decoding step, as plain numbers or in q8_0 blocks. */
import type { Tensor } from "../../tensor/tensor.ts";

/** Values and bytes of a q8_0 block. */
const [BLOCK_VALUES, BLOCK_BYTES] = [32, 34];

/** Tests whether the rows of a cache are q8_0 blocks, stored as bytes. */
export const isPackedRoom = ({ dtype }: Tensor): boolean => dtype === "uint8";

/** Returns the number of values in a row. */
export const rowWidth = (room: Tensor): number =>
  isPackedRoom(room) ? (room.shape[3] / BLOCK_BYTES) * BLOCK_VALUES : room.shape[3];
