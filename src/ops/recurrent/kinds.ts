import { enumeration, type NameOf } from "../../backend/enumeration.ts";

export const recurrentKinds = enumeration("RecurrentKind", ["lstm", "gru", "tanh", "relu"]);
/** LSTM, GRU, and Elman's network with either activation. */
export type RecurrentKind = NameOf<typeof recurrentKinds>;
