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
  /** Whether there is one matrix, whose rows are contiguous and adjacent. */
  readonly isRowMajor: boolean;
}

const OUT = 3;

export function productOf(call: DeviceCall): ProductFacts {
  const bytes = parametersOf(call);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const { members } = productParameters.metal;
  const long = (name: string, at = 0) => Number(view.getBigInt64(members[name]!.offset + 8 * at, true));
  const [m, n] = [long("m"), long("n")];
  const loop = members["batch"]!;
  const batch = Number(view.getBigInt64(loop.offset + loop.field.members!["count"]!.offset, true));
  const starts = loop.offset + loop.field.members!["start"]!.offset;
  return {
    ...{ m, n, elements: m * n * batch, splits: long("splits") },
    hasInput: view.getUint32(members["hasInput"]!.offset, true) !== 0,
    isRowMajor:
      batch === 1 &&
      long("rowStrides", OUT) === n &&
      long("columnStrides", OUT) === 1 &&
      view.getBigInt64(starts + 8 * OUT, true) === 0n,
  };
}
