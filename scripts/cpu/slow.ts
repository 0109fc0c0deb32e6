/** The order of compilation. */
import { type ObjectFile, objectName } from "./objects.ts";

/** The slowest files with GCC 12 and AVX-512. Any other file takes a tenth of the first one's time. */
const slow = [
  "attention.backward.isa",
  "attention.forward.isa",
  "reduction.reduction.isa",
  "quant.quant.isa",
  "matmul.kernel.isa",
  "scan.scan.isa",
  "elementwise.binary.isa",
  "elementwise.unary.isa",
  "random.random.isa",
  "sorting.sort",
];

/** Moves slow files to the front, so that no processor waits for one at the end. The other files keep their order. */
export function slowestFirst(objects: readonly ObjectFile[]): ObjectFile[] {
  const rank = (object: ObjectFile): number => {
    const name = objectName(object).replace(/\.[^.]+$/, "");
    const at = slow.indexOf(name);
    return at < 0 ? slow.length : at;
  };
  return objects.toSorted((a, b) => rank(a) - rank(b));
}
