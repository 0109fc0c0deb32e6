/** Fields of the calls of complex factorizations that cpu and metal compute. */
import { flag, whole } from "../../backend/fields.ts";

export const sizes = { batch: whole, rows: whole, columns: whole } as const;
export const choleskyFields = sizes;
export const luFields = { ...sizes, pivot: flag } as const;
export const triangularFields = { ...sizes, upper: flag, unitDiagonal: flag } as const;
export const qrFields = { ...sizes, width: whole } as const;
