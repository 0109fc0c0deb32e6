/** prelu on every backend: one weight, and one for each channel. */
import { leaky } from "../../../src/ops/activation/leaky_relu.ts";
import { prelu } from "../../../src/ops/activation/prelu.ts";
import { flatten } from "../../../src/ops/view/flatten.ts";
import { sameShape } from "../../../src/tensor/shape.ts";
import { floats, mapped } from "../elementwise/oracle.ts";
import { testTable } from "../run.ts";
import type { OperandSpec } from "../samples.ts";
import type { OperationRow, Sample } from "../table.ts";

/** Weights are given in the shape that broadcasts; gradients are also compared with those of expanded weights. */
const sample = (x: OperandSpec, weight: OperandSpec): Sample => ({ inputs: [x, weight], options: undefined });

const row: OperationRow = {
  name: "prelu",
  compute: ([x, weight]) =>
    sameShape(weight.shape, x.shape) ? leaky(x, weight) : prelu(x, weight.rank > 1 ? flatten(weight) : weight),
  dtypes: floats,
  samples: [
    sample({ shape: [7] }, { shape: [1] }),
    sample({ shape: [] }, { shape: [] }),
    sample({ shape: [3, 5] }, { shape: [5] }),
    sample({ shape: [2, 3, 4] }, { shape: [3, 1] }),
    sample({ shape: [2, 3, 4] }, { shape: [1] }),
    sample({ shape: [0, 3] }, { shape: [3] }),
    sample({ shape: [2, 4, 3, 5] }, { shape: [4, 1, 1] }),
    sample({ shape: [6, 5], layout: "transposed" }, { shape: [5], layout: "strided" }),
  ],
  oracle: (blocks) => mapped(blocks, (x, weight) => (x > 0 ? x : x * weight)),
  accuracy: { ulps: 0.1 },
  elementwise: true,
  gradient: true,
};

testTable("prelu", [row]);
