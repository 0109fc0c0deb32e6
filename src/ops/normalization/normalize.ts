/** Code shared by the normalizations: one primitive for each pass, and the gradients. */
import { needsGradient, record } from "../../autograd/record.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { accumulationDType, type DType } from "../../tensor/dtype.ts";
import { plainList } from "../../tensor/frozen.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { add, mul } from "../elementwise/arithmetic.ts";
import { forwardCpu } from "./forward.cpu.ts";
import { forwardMetal } from "./forward.metal.ts";
import { forwardReference } from "./forward.reference.ts";
import { normalizationGradient, type Saved } from "./gradient.ts";
import type { NormalizationAttributes } from "./primitive.ts";
import { type Named, namedTensors, present } from "./problem.ts";
import type { GradientSource, Gradients } from "./second_gradients.ts";

/**
 * Maps x and optional residual, weight and bias to `out` and `scale`, and to `sum` and `mean` if they are among the
 * outputs.
 */
const normalizationForward = definePrimitive<NormalizationAttributes>({
  name: "normalizationForward",
  family: "normalization",
  implementations: { metal: forwardMetal, cpu: forwardCpu, reference: forwardReference },
});

type OperandName = "x" | "residual" | "weight" | "bias";

/** A validated call: rows are the last axis of x, and weight and bias have its size. */
export interface NormalizationCall {
  /** The public function, for errors. */
  readonly operation: string;
  readonly isCentered: boolean;
  readonly eps: number;
  readonly operands: Named<OperandName> & { readonly x: Tensor };
}

/** Results of a normalization; `sum` if there is a residual. */
export interface Normalized {
  readonly out: Tensor;
  readonly sum?: Tensor | undefined;
}

/** Results of `addLayerNorm` and `addRmsNorm`, both of the shape and dtype of x. */
export interface SumAndNorm<D extends DType = DType> {
  readonly out: Tensor<D>;
  readonly sum: Tensor<D>;
}

/**
 * Normalizes rows, with gradients. It saves the rows (the sum, if there is a residual), the weight, and one or two
 * numbers for each row.
 */
export function normalize(call: NormalizationCall): Normalized {
  const { operands } = call;
  if (plainList(operands.x.shape).at(-1) === 0) return rowsOfNothing(operands);
  const inputs = present(operands);
  const { out, sum, mean, scale } = forward(call, inputs);
  if (needsGradient(...inputs.tensors)) recordRows(call, inputs, { out, sum, mean, scale });
  mean?.dispose(); // if a gradient is needed, the graph holds a reference
  scale.dispose();
  return { out, sum };
}

type Present<Name extends string> = ReturnType<typeof present<Name>>;
type ForwardResults = Named<"sum" | "mean"> & Record<"out" | "scale", Tensor>;

function recordRows(
  call: NormalizationCall,
  inputs: Present<OperandName>,
  { out, sum, mean, scale }: ForwardResults,
): void {
  const { operation, operands } = call;
  const vectorDType = (operands.weight ?? operands.bias ?? operands.x).dtype;
  const saved = present({ x: sum ?? operands.x, mean, scale, weight: operands.weight });
  const outputs = sum ? [out, sum] : [out];
  record(operation, inputs.tensors, outputs, saved.tensors, ([gradOut, gradSum], tensors, needs) => {
    const kept = { ...namedTensors<Saved>(saved.names, tensors), gradSum: gradSum ?? undefined };
    const needed = new Set(inputs.names.filter((_, at) => needs[at]).map(sourceOf));
    const gradients: Gradients = gradOut
      ? normalizationGradient({ ...call, vectorDType }, { ...kept, gradOut }, needed)
      : { x: gradSum };
    return inputs.names.map((name) => gradients[sourceOf(name)] ?? null);
  });
}

/** Maps an operand to its gradient: x and the residual share one. */
const sourceOf = (name: OperandName): GradientSource => (name === "residual" ? "x" : name);

/** The results of a forward pass, in the order of the native function. */
const resultNames = {
  centered: { alone: ["out", "mean", "scale"], added: ["out", "sum", "mean", "scale"] },
  plain: { alone: ["out", "scale"], added: ["out", "sum", "scale"] },
} as const;

function forward(
  { operation, isCentered, eps, operands: { x, residual } }: NormalizationCall,
  inputs: Present<OperandName>,
): ForwardResults {
  const whole = { shape: x.shape, dtype: x.dtype };
  const row = { shape: plainList(x.shape).slice(0, -1), dtype: accumulationDType(x.dtype) };
  const outputs = resultNames[isCentered ? "centered" : "plain"][residual ? "added" : "alone"];
  const specs = outputs.map((name) => (name === "out" || name === "sum" ? whole : row));
  const attributes = { inputs: inputs.names, outputs, isCentered, eps };
  const results = executeMany(normalizationForward, inputs.tensors, specs, attributes, operation);
  return namedTensors<ForwardResults>(outputs, results);
}

/** Returns the empty results of empty rows, connected to all operands in the graph. */
function rowsOfNothing({ x, residual, weight, bias }: NormalizationCall["operands"]): Normalized {
  const sum = residual && add(x, residual);
  const weighted = mul(sum ?? x, weight ?? 1);
  return { out: toDType(add(weighted, bias ?? 0), x.dtype), sum };
}
