import type { Implementation } from "../../backend/backend.ts";
import { tupleOf } from "../../core/tuples.ts";
import { currentCapture } from "../../observe/capture.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { stepCall, stepManyCall } from "./primitive.ts";
import { isPackedRoom, rowWidth } from "./room.ts";
import type { StepAttributes, StepSequence } from "./step.ts";

/** Numbers for each sequence: `StepSequence` in `native/cpu/attention/step.cpp`. */
const NUMBERS = 10;

export const stepCpu: Implementation<StepAttributes> = {
  run({ operation, inputs, outputs: [out, ...rooms], attributes }) {
    const { sequences, replayed, heads, kvHeads, scale, softcap = 0, window = Infinity, rotation } = attributes;
    const { cycles, magnitude, interleaved } = rotation;
    const [q, k, v] = tupleOf(inputs, 3);
    const [dim, valueDim] = [rowWidth(rooms[0]), rowWidth(rooms[1])];
    const isPacked = isPackedRoom(rooms[0]);
    const sizes = [dim, dim, valueDim];
    const call = rooms.length === 2 ? stepCall : stepManyCall;
    const numbers = numbersOf(sequences, rooms);
    if (replayed)
      currentCapture()?.liveContents(numbers, () => {
        const now = replayed();
        return now && numbersOf(now, rooms);
      });
    call(
      operation,
      {
        dtype: q.dtype,
        roomDtype: isPacked ? unpackedDType(q) : rooms[0].dtype,
        isPacked,
        sequences: sequences.length,
        tokens: q.shape[1],
        heads,
        kvHeads,
        dim,
        valueDim,
        scale,
        softcap,
        left: window - 1,
        interleaved,
        pairs: cycles.length,
        magnitude,
        offsets: [q.offset, k.offset, v.offset, out.offset],
        sequenceStrides: [q.strides[0], k.strides[0], v.strides[0]],
        tokenStrides: [q.strides[1], k.strides[1], v.strides[1]],
        headStrides: sizes.map((size, at) => (inputs[at].rank === 4 ? inputs[at].strides[2] : size)),
      },
      [q, k, v, cycles.length > 0 ? cycles : undefined, numbers, out, ...rooms],
    );
  },
};

function numbersOf(sequences: readonly StepSequence[], rooms: readonly Tensor[]): Float64Array {
  const numbers = new Float64Array(sequences.length * NUMBERS);
  for (let at = 0; at < sequences.length; at++) writeSequence(numbers, at * NUMBERS, sequences[at], rooms);
  return numbers;
}

/** Returns the dtype to which q8_0 blocks are unpacked. */
const unpackedDType = ({ dtype }: Tensor): DType => (dtype === "float64" ? "float32" : dtype);

function writeSequence(numbers: Float64Array, start: number, sequence: StepSequence, rooms: readonly Tensor[]): void {
  const { room, batch, position, first, rows } = sequence;
  numbers[start] = room;
  numbers[start + 1] = position;
  numbers[start + 2] = first;
  numbers[start + 3] = rows;
  for (let part = 0; part < 2; part++) {
    const { offset, strides } = rooms[2 * room + part];
    const at = start + 4 + 3 * part;
    numbers[at] = offset + batch * strides[0];
    numbers[at + 1] = strides[1];
    numbers[at + 2] = strides[2];
  }
}
