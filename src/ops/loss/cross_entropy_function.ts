/** The fused cross entropy and its gradient. Besides its operands, it saves two numbers for each target. */

import { isGradEnabled, noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { execute, executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { lastElement } from "../../core/collections.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { contiguous } from "../copy/copy.ts";
import { div } from "../elementwise/division.ts";
import { composedGradients } from "../gradient/composed_gradients.ts";
import type { IndexDType } from "../indexing/indices.ts";
import { sum } from "../reduction/sum.ts";
import { expand } from "../view/expand.ts";
import { crossEntropyCpu, crossEntropyGradientCpu } from "./cross_entropy.cpu.ts";
import { crossEntropyGradientMetal, crossEntropyMetal } from "./cross_entropy.metal.ts";
import { crossEntropyGradientReference, crossEntropyReference } from "./cross_entropy.reference.ts";
import { fromClasses } from "./cross_entropy_composed.ts";
import { fusesSum, summedCrossEntropy } from "./cross_entropy_sum.cpu.ts";
import { hasMeanKernel, meanOf } from "./mean.ts";
import type { CrossEntropyCall } from "./options.ts";
import type { CrossEntropyAttributes } from "./primitive.ts";

const crossEntropyPrimitive = definePrimitive<CrossEntropyAttributes>({
  name: "crossEntropy",
  family: "loss",
  implementations: { metal: crossEntropyMetal, cpu: crossEntropyCpu, reference: crossEntropyReference },
});

const crossEntropyGradientPrimitive = definePrimitive<CrossEntropyAttributes>({
  name: "crossEntropyGradient",
  family: "loss",
  implementations: {
    metal: crossEntropyGradientMetal,
    cpu: crossEntropyGradientCpu,
    reference: crossEntropyGradientReference,
  },
});

/** Computes the loss of class indices in one pass over the logits, and its gradient in another. */
export function fusedCrossEntropy(logits: Tensor, targets: Tensor<IndexDType>, call: CrossEntropyCall): Tensor {
  const { axis, ignoreIndex, labelSmoothing, weight } = call;
  const attributes: CrossEntropyAttributes = { axis, ignoreIndex, labelSmoothing };
  const dtype = accumulationDType(logits.dtype);
  const factors = weight ? noGrad(() => factorsOf(weight, dtype)) : [];
  if (fusesSum(logits, targets, call)) return toDType(summedCrossEntropy(logits, targets, factors, call), logits.dtype);
  const spec = { shape: targets.shape, dtype };
  const inputs = [logits, targets, ...factors];
  const specs = [spec, spec, { ...spec, shape: [2, ...spec.shape] }] as const;
  const [losses, used, logSums] = executeMany(crossEntropyPrimitive, inputs, specs, attributes);
  const { output, divisor } = noGrad(() => reduce(losses, used, call));
  const result = noGrad(() => toDType(output, logits.dtype));
  const saved = [logits, targets, logSums, ...factors, ...(divisor ? [divisor] : [])] as const;
  record("crossEntropy", [logits], [result], saved, ([gradient], [x, classes, sums, ...others]) => {
    if (isGradEnabled()) {
      const savedCall = { ...call, weight: weight && others[0] };
      return composedGradients(([variable]) => fromClasses(variable, classes, savedCall), [x], [true], gradient);
    }
    const wide = toDType(gradient, dtype);
    const scale = expand(divisor ? div(wide, lastElement(others)) : wide, classes.shape);
    const operands = [x, classes, sums, scale, ...others.slice(0, factors.length)];
    return [execute(crossEntropyGradientPrimitive, operands, x.shape, x.dtype, attributes, "crossEntropy")];
  });
  return result;
}

/** Returns the classes' factors and their sum, as operands of the primitives. */
function factorsOf(weight: Tensor, dtype: "float64" | "float32"): Tensor[] {
  const factors = contiguous(toDType(weight, dtype));
  return [factors, sum(factors)];
}

/** Returns the reduced losses and, for a mean, the divisor. */
function reduce(losses: Tensor, used: Tensor, { reduction }: CrossEntropyCall): { output: Tensor; divisor?: Tensor } {
  if (reduction === "none") return { output: losses };
  if (reduction === "mean" && hasMeanKernel(losses, used)) return meanOf(losses, used);
  const total = sum(losses);
  if (reduction === "sum") return { output: total };
  const divisor = sum(used);
  return { output: div(total, divisor), divisor };
}
