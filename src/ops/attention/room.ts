/** Rooms of a step of decoding: rows of keys or of values, as numbers or in blocks of q8_0. */
import type { Tensor } from "../../tensor/tensor.ts";

/** Values of a block of q8_0, and its bytes. */
const [BLOCK_VALUES, BLOCK_BYTES] = [32, 34];

/** Whether rows are blocks of q8_0: bytes. */
export const isPackedRoom = ({ dtype }: Tensor): boolean => dtype === "uint8";

/** How many values a row has. */
export const rowWidth = (room: Tensor): number =>
  isPackedRoom(room) ? (room.shape[3]! / BLOCK_BYTES) * BLOCK_VALUES : room.shape[3]!;
