import { exp, neg } from "../../src/ops/elementwise/unary.ts";
import type { DType } from "../../src/tensor/dtype.ts";
import { testTable } from "./run.ts";
import type { Layout } from "./samples.ts";
import { commonShapes, type OperationRow, withLayouts } from "./table.ts";

const floats: readonly DType[] = ["float64", "float32", "float16", "bfloat16"];
const extra: readonly Layout[] = [
  "offset",
  "transposed",
  "strided",
  "reversed",
  "expanded",
  "transposed",
  "strided",
  "reversed",
  "offset",
];

function unaryRow(
  name: string,
  compute: OperationRow["compute"],
  formula: (x: number) => number,
  { ulps, dtypes }: { ulps: number; dtypes: readonly DType[] },
): OperationRow {
  return {
    name,
    compute,
    dtypes,
    samples: withLayouts(commonShapes, extra).map((input) => ({ inputs: [input], options: undefined })),
    oracle: ([x]) => ({ shape: x!.shape, values: x!.values.map(formula) }),
    accuracy: { ulps },
    gradient: true,
  };
}

testTable("unary", [
  unaryRow("exp", ([x]) => exp(x!), Math.exp, { ulps: 4, dtypes: floats }),
  unaryRow(
    "neg",
    ([x]) => neg(x!),
    (x) => -x,
    { ulps: 0, dtypes: [...floats, "int64", "int32", "int8"] },
  ),
]);
