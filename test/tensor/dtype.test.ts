import { expect, test } from "bun:test";
import { accumulationDType, dtypes } from "../../src/tensor/dtype.ts";

test("sums of float64 are kept in float64, all others in float32", () => {
  const wide = dtypes.filter((dtype) => accumulationDType(dtype) === "float64");
  expect(wide).toEqual(["float64"]);
  expect(accumulationDType("bfloat16")).toBe("float32");
});
