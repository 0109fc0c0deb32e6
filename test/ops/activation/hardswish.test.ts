/** hardswish on every backend. */
import { hardswish } from "../../../src/ops/activation/hardswish.ts";
import { testTable } from "../run.ts";
import { activationRow, testDerivatives, testSecondGradients } from "./rows.ts";

const formula = (x: number): number => (x <= -3 ? 0 * x : x >= 3 ? x : (x * (x + 3)) / 6);

testTable("hardswish", [
  activationRow("hardswish", hardswish, formula, { ulps: 2 }),
  activationRow("hardswish near 3", hardswish, formula, { ulps: 2, values: { low: 2, high: 6 } }),
  activationRow("hardswish near −3", hardswish, formula, { ulps: 2, values: { low: -6, high: -2 } }),
]);
testSecondGradients({ hardswish });
testDerivatives("hardswish", hardswish, { at: [-4, -3, -1.5, 0, 3, 4], are: [0, 0, 0, 0.5, 1, 1] });
