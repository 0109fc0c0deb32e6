/** Decodes the parameters of matrix products. */
import { productParameters } from "../../ops/matmul/primitive.ts";
import { parametersOf } from "./dispatches.ts";
import type { DeviceCall } from "./recording.ts";

/** The sizes and the layout of a product's result. */
export interface ProductFacts {
  readonly m: number;
  readonly n: number;
  /** Elements of all matrices of the batch. */
  readonly elements: number;
  readonly splits: number;
  readonly hasInput: boolean;
  readonly k: number;
  /** Whether there is one matrix. */
  readonly isSingle: boolean;
  /**
   * Whether there is one result, with contiguous and adjacent rows. `isFactorRowMajor` says the same of the first
   * factor.
   */
  readonly isRowMajor: boolean;
  readonly isFactorRowMajor: boolean;
}

const [A, OUT] = [0, 3];

export function productOf(call: DeviceCall): ProductFacts {
  const bytes = parametersOf(call);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const { members } = productParameters.metal;
  const long = (name: string, at = 0) => Number(view.getBigInt64(members[name].offset + 8 * at, true));
  const [m, n] = [long("m"), long("n")];
  const loop = members["batch"];
  const batch = Number(view.getBigInt64(loop.offset + loop.field.members!["count"].offset, true));
  const starts = loop.offset + loop.field.members!["start"].offset;
  const isRowMajor = (operand: number, columns: number) =>
    batch === 1 &&
    long("rowStrides", operand) === columns &&
    long("columnStrides", operand) === 1 &&
    view.getBigInt64(starts + 8 * operand, true) === 0n;
  const k = long("k");
  return {
    m,
    n,
    k,
    elements: m * n * batch,
    splits: long("splits"),
    isSingle: batch === 1,
    hasInput: view.getUint32(members["hasInput"].offset, true) !== 0,
    isRowMajor: isRowMajor(OUT, n),
    isFactorRowMajor: isRowMajor(A, k),
  };
}
