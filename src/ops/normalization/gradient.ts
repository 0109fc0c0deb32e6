/** The backward pass of normalizations as a differentiable operation, for higher-order gradients. */
import { executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { keysOf } from "../../core/records.ts";
import type { DType } from "../../tensor/dtype.ts";
import { plainList } from "../../tensor/frozen.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { mean } from "../reduction/mean.ts";
import { reshape } from "../view/reshape.ts";
import { backwardCpu } from "./backward.cpu.ts";
import { backwardMetal } from "./backward.metal.ts";
import { backwardReference } from "./backward.reference.ts";
import type { NormalizationAttributes, OutputName } from "./primitive.ts";
import { type Named, present } from "./problem.ts";
import { type GradientSource, type Gradients, type NormalizedRows, recordGradients } from "./second_gradients.ts";

/** Maps saved tensors and incoming gradients to the needed gradients. */
const normalizationBackward = definePrimitive<NormalizationAttributes>({
  name: "normalizationBackward",
  family: "normalization",
  implementations: { metal: backwardMetal, cpu: backwardCpu, reference: backwardReference },
});

/** A call's arguments besides its tensors. */
interface Attributes {
  readonly operation: string;
  /** Dtype of the gradients of weight and bias. */
  readonly vectorDType: DType;
  readonly isCentered: boolean;
  readonly eps: number;
}

/** Tensors saved by the forward. */
export type Saved = Named<"mean" | "weight"> & Readonly<Record<"x" | "scale", Tensor>>;

/** x, `mean` if rows are centered, `scale`, `gradOut`, and optionally `weight` and `gradSum`. */
type Operands = Saved & Named<"gradSum"> & { readonly gradOut: Tensor };

const gradientNames = { x: "gradX", weight: "gradWeight", bias: "gradBias" } as const satisfies Record<
  GradientSource,
  OutputName
>;

/** Computes the gradients that are needed in one pass over the rows. */
export function normalizationGradient(
  attributes: Attributes,
  operands: Operands,
  needed: ReadonlySet<GradientSource>,
): Gradients {
  const { operation, isCentered, eps, vectorDType } = attributes;
  const { x, weight, gradOut, gradSum } = operands;
  const sources = keysOf(gradientNames).filter((source) => needed.has(source));
  const inputs = present(operands);
  const outputs = sources.map((source) => gradientNames[source]);
  const row = { shape: plainList(x.shape).slice(-1), dtype: vectorDType };
  const specs = sources.map((source) => (source === "x" ? { shape: x.shape, dtype: x.dtype } : row));
  const call = { inputs: inputs.names, outputs, isCentered, eps };
  const results = executeMany(normalizationBackward, inputs.tensors, specs, call, operation);
  const variables = present({ x, weight, gradOut, gradSum });
  return recordGradients({ operation, inputs, variables, sources, results }, (saved: Operands) =>
    rowsFor(attributes, saved),
  );
}

/** Returns the layout of rows along the last axis, with the weight along it. */
const rowsFor = (attributes: Attributes, { mean: average, scale }: Operands): NormalizedRows => ({
  isCentered: attributes.isCentered,
  eps: attributes.eps,
  scale: reshape(scale, [...scale.shape, 1]),
  mean: (x) => mean(x, { dim: -1, keepdim: true }),
  spread: (vector) => vector,
  gradient: (x, v) => normalizationGradient(attributes, { x, mean: average, scale, gradOut: v }, new Set(["x"])).x!,
});
