/** Activations whose formulas are straight lines, exponentials and their quotients, on every backend. */
import { expect, test } from "bun:test";
import { withBackend } from "../../../src/backend/policy.ts";
import { celu } from "../../../src/ops/activation/celu.ts";
import { elu } from "../../../src/ops/activation/elu.ts";
import { hardsigmoid } from "../../../src/ops/activation/hardsigmoid.ts";
import { hardtanh } from "../../../src/ops/activation/hardtanh.ts";
import { leakyRelu } from "../../../src/ops/activation/leaky_relu.ts";
import { logSigmoid } from "../../../src/ops/activation/log_sigmoid.ts";
import { mish } from "../../../src/ops/activation/mish.ts";
import { relu } from "../../../src/ops/activation/relu.ts";
import { relu6 } from "../../../src/ops/activation/relu6.ts";
import { selu } from "../../../src/ops/activation/selu.ts";
import { softsign } from "../../../src/ops/activation/softsign.ts";
import { tanhshrink } from "../../../src/ops/activation/tanhshrink.ts";
import { threshold } from "../../../src/ops/activation/thresholds.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { clamp } from "../../../src/ops/elementwise/clamp.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { integers } from "../elementwise/oracle.ts";
import { tested, testTable } from "../run.ts";
import { tanhshrinkBySeries } from "./oracle.ts";
import { activationRow, testDerivatives, testSecondGradients } from "./rows.ts";

const isNaNOr = (x: number, value: number): number => (Number.isNaN(x) ? x : value);
const between = (x: number, least: number, most: number): number => isNaNOr(x, Math.min(Math.max(x, least), most));
const eluBy = (alpha: number, rate: number, scale: number) => (x: number) =>
  scale * (x > 0 ? x : alpha * Math.expm1(rate * x));

const negativeSlope = 0.3;
const leaky = (x: Tensor): Tensor => leakyRelu(x, { negativeSlope });
const eluOf = (x: Tensor): Tensor => elu(x, { alpha: 1.5 });
const celuOf = (x: Tensor): Tensor => celu(x, { alpha: 0.5 });
const [alpha, scale] = [1.6732632423543772, 1.0507009873554805];

testTable("activations of lines", [
  activationRow("hardsigmoid", hardsigmoid, (x) => between(x + 3, 0, 6) / 6, { ulps: 1 }),
  activationRow("leakyRelu", leaky, (x) => (x > 0 ? x : negativeSlope * x), { ulps: 1 }),
  { ...activationRow("relu6", relu6, (x) => between(x, 0, 6), { ulps: 0.1 }), dtypes: ["float32", ...integers] },
  activationRow("hardtanh", hardtanh, (x) => between(x, -1, 1), { ulps: 0.1 }),
  activationRow(
    "hardtanh from −0.5 to 3",
    (x) => hardtanh(x, { minVal: -0.5, maxVal: 3 }),
    (x) => between(x, -0.5, 3),
    {
      ulps: 0.1,
    },
  ),
]);

testTable("activations of exponentials", [
  activationRow("elu", eluOf, eluBy(1.5, 1, 1)),
  activationRow("selu", selu, eluBy(alpha, 1, scale), { ulps: 5 }),
  activationRow("celu", celuOf, eluBy(0.5, 2, 1)),
  activationRow("mish", mish, (x) => x * Math.tanh(x > 40 ? x : Math.log1p(Math.exp(x))), {
    isMultipleOfExponential: true,
  }),
  activationRow("logSigmoid", logSigmoid, (x) => Math.min(x, 0) - Math.log1p(Math.exp(-Math.abs(x)))),
  activationRow("softsign", softsign, (x) => x / (1 + Math.abs(x)), { ulps: 2 }),
  activationRow("tanhshrink", tanhshrink, tanhshrinkBySeries, { ulps: 6 }),
]);

testSecondGradients({
  hardsigmoid,
  leakyRelu: leaky,
  relu6,
  hardtanh,
  elu: eluOf,
  selu,
  celu: celuOf,
  mish,
  logSigmoid,
  softsign,
  tanhshrink,
});

testDerivatives("hardsigmoid", hardsigmoid, { at: [-4, -3, 0, 3, 4], are: [0, 0, 1 / 6, 0, 0] });
testDerivatives("leakyRelu", leaky, { at: [-1, 0, 1], are: [negativeSlope, negativeSlope, 1] });
testDerivatives("relu6", relu6, { at: [-1, 0, 3, 6, 7], are: [0, 0, 1, 0, 0] });
testDerivatives("hardtanh", hardtanh, { at: [-2, -1, 0, 1, 2], are: [0, 0, 1, 0, 0] });
testDerivatives("elu", eluOf, { at: [0, 1, 1000], are: [1.5, 1, 1] });
testDerivatives("celu", celuOf, { at: [0, 1, 1000], are: [1, 1, 1] });
testDerivatives("tanhshrink", tanhshrink, { at: [0, -0], are: [0, 0] });
testDerivatives("softsign", softsign, { at: [0, 1, -3], are: [1, 0.25, 0.0625] });

// PyTorch's backward kernels compare: hardtanh's is 0 for x <= min or x >= max, elu's is the slope below for x <= 0,
// threshold's is 0 for x <= threshold; comparisons with NaN are false (Activation.cpp, ActivationEluKernel.cu)
const nan = Number.NaN;
testDerivatives("relu6 with NaN", relu6, { at: [nan, 3], are: [1, 1] });
testDerivatives("hardtanh with NaN", hardtanh, { at: [nan, 2], are: [1, 0] });
testDerivatives("elu with NaN", eluOf, { at: [nan, 1], are: [1, 1] });
testDerivatives("celu with NaN", celuOf, { at: [nan, 1], are: [1, 1] });
testDerivatives("selu with NaN", selu, { at: [nan, 1], are: [scale, scale] });
testDerivatives("threshold with NaN", (x) => threshold(x, 1, 9), { at: [nan, 0, 1, 2], are: [1, 0, 0, 1] });

test.each(tested)("threshold keeps NaN on %s", (backend) => {
  withBackend(backend, () => expect(threshold(tensor([0, 1, 2, nan]), 1, 9).toArray()).toEqual([9, 9, 2, nan]));
});

testDerivatives("relu with NaN", relu, {
  at: [Number.NaN, 0, -0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  are: [1, 0, 0, 1, 0],
});

test.each(tested)("bounds keep -0, which equals them, on %s", (backend) => {
  withBackend(backend, () => {
    expect(clamp(tensor([-0, 0, -1]), { min: 0, max: 2 }).toArray()).toEqual([-0, 0, 0]);
    expect(relu6(tensor([-0, 7, Number.NaN])).toArray()).toEqual([-0, 6, Number.NaN]);
  });
});
