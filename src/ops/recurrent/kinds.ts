import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { dtype, flag, oneOf, whole } from "../../backend/fields.ts";

export const recurrentKinds = enumeration("RecurrentKind", ["lstm", "gru", "tanh", "relu"]);
/** LSTM, GRU, and Elman's network with either activation. */
export type RecurrentKind = NameOf<typeof recurrentKinds>;

/** The first fields of a native call: what one direction of a layer computes, and its sizes. */
export const directionFields = {
  dtype,
  kind: oneOf(recurrentKinds),
  isReversed: flag,
  hasBias: flag,
  steps: whole,
  batch: whole,
  size: whole,
};
