import { record } from "../../autograd/record.ts";
import { countCodepath, execute } from "../../backend/dispatch.ts";
import { getBackend } from "../../backend/policy.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { lastElement } from "../../core/collections.ts";
import { ShapeError } from "../../core/errors.ts";
import { choice, either, nothing } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { gelu, geluGradient, geluTanhGradient } from "../../ops/activation/gelu.ts";
import { swiglu } from "../../ops/activation/swiglu.ts";
import { swigluGradient } from "../../ops/activation/swiglu_gradient.ts";
import { add, mul } from "../../ops/elementwise/arithmetic.ts";
import { sumTo } from "../../ops/view/expand.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { elementCount, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { formatName } from "../formats.ts";
import { attributesOf, type GateActivation, gateActivations, weightInputs } from "../primitive.ts";
import { aQuantizedTensor, type QuantizedTensor } from "../quantized_tensor.ts";
import type { SwigluAttributes } from "./attributes.ts";
import {
  aPrecision,
  biasFor,
  checkProduct,
  executeOnRows,
  hasLevels,
  type ProductPrecision,
  product,
} from "./matmul.ts";
import { quantizedSwigluCpu } from "./swiglu.cpu.ts";
import { quantizedSwigluMetal } from "./swiglu.metal.ts";
import { quantizedSwigluReference } from "./swiglu.reference.ts";

/** Options of {@link quantizedSwiglu}. */
export interface QuantizedSwigluOptions {
  /** `"fast"`: x may be rounded to 8 bits. Default `"exact"`. */
  precision?: ProductPrecision | undefined;
  /** The activation of the gate: silu, gelu (by the error function), or its tanh approximation. Default `"silu"`. */
  activation?: GateActivation | undefined;
  /** Added to the product with the gate: [hidden]. It is converted to the dtype of x. Default null. */
  gateBias?: Tensor | null | undefined;
  /** Added to the product with up: [hidden]. It is converted to the dtype of x. Default null. */
  upBias?: Tensor | null | undefined;
}

const quantizedSwigluParameters = parameters("quantizedSwiglu", {
  x: operand(aTensor),
  gate: operand(aQuantizedTensor),
  up: operand(aQuantizedTensor),
  precision: named(aPrecision, "exact"),
  activation: named(choice(...gateActivations.names), "silu"),
  gateBias: named(either(aTensor, nothing), null),
  upBias: named(either(aTensor, nothing), null),
});

/** There is a primitive for each precision, as for {@link quantizedMatmul}. */
const primitiveNamed = (name: string) =>
  definePrimitive<SwigluAttributes>({
    name,
    family: "quant",
    implementations: { metal: quantizedSwigluMetal, cpu: quantizedSwigluCpu, reference: quantizedSwigluReference },
  });

const exactPrimitive = primitiveNamed("quantizedSwiglu");
const fastPrimitive = primitiveNamed("quantizedSwigluFast");

/**
 * Computes silu(x gateᵀ + gateBias) · (x upᵀ + upBias) with quantized weights, as the feed-forward layer of Llama does.
 * Rows of both matrices are read in one pass, and only tiles of the products are in memory. The result is bit-identical
 * to `swiglu` of two calls of {@link quantizedMatmul}; in 16 bits, a gate with gelu is rounded once less than by
 * separate calls. Weights are frozen. Gradients of every order flow to x and the biases; they recompute both products.
 *
 * Weights of different formats, or with scales of different dtypes, are multiplied by two calls; `codepaths()` reports
 * that.
 *
 * @param x […, in], of float32, float16 or bfloat16, with any number of rows
 * @param gate [hidden, in], of any format
 * @param up [hidden, in]
 * @param options `precision`: as in {@link quantizedMatmul}; `activation`: `"gelu"` or `"geluTanh"` instead of silu, as
 * in Gemma; `gateBias` and `upBias` [hidden]
 * @returns […, hidden], of the dtype of `x`
 *
 * @example
 * const [gate, up] = [quantizeGgml(randn([128, 64]), "q4_0"), quantizeGgml(randn([128, 64]), "q4_0")];
 * quantizedSwiglu(randn([3, 64]), gate, up); // float32[3, 128]
 *
 * @throws {ShapeError} `wrongRank`, if the weights are not matrices; `shapesDiffer`, if the last axis of x differs from
 * that of the weights, the shape of up from that of gate, or the size of a bias from their rows. @throws {DTypeError}
 * if x or a bias has an unsupported dtype. @throws {DisposedError}
 *
 * Source: N. Shazeer, "GLU variants improve transformer", 2020.
 */
export function quantizedSwiglu(
  x: Tensor,
  gate: QuantizedTensor,
  up: QuantizedTensor,
  options?: QuantizedSwigluOptions,
): Tensor;
export function quantizedSwiglu(...values: unknown[]): Tensor {
  const operation = "quantizedSwiglu";
  const { x, gate, up, precision, activation, ...given } = quantizedSwigluParameters(values);
  checkProduct(operation, x, gate, "gate");
  if (!sameShape(gate.shape, up.shape))
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected up to have the shape of gate, [${gate.shape.join(", ")}], got [${up.shape.join(", ")}]`,
    );
  const biasOf = (name: "gateBias" | "upBias") =>
    given[name] && biasFor(operation, name, given[name], x, gate.shape[0]);
  const biases = { gate: biasOf("gateBias"), up: biasOf("upBias") };
  const operands = { x, gate, up, biases, activation, isFast: precision === "fast" };
  const difference = differenceOf(gate, up);
  if (difference === undefined) return fused(operation, operands);
  countCodepath(operation, getBackend(), `two products: ${difference}`);
  return gatedProduct(activation, ...products(operation, operands));
}

interface GatedOperands {
  readonly x: Tensor;
  readonly gate: QuantizedTensor;
  readonly up: QuantizedTensor;
  readonly biases: { readonly gate: Tensor | null; readonly up: Tensor | null };
  readonly activation: GateActivation;
  readonly isFast: boolean;
}

/** @internal Returns why rows of both can't be read in one pass; undefined if they can. */
export function differenceOf(gate: QuantizedTensor, up: QuantizedTensor): string | undefined {
  const formats = [formatName(gate.format), formatName(up.format)];
  if (formats[0] !== formats[1]) return `gate is ${formats[0]}, up is ${formats[1]}`;
  const [first, second] = [gate.parts.scales?.dtype, up.parts.scales?.dtype];
  return first === second ? undefined : `scales of gate are ${first}, those of up ${second}`;
}

/** Computes both products as two operations. */
function products(operation: string, { x, gate, up, biases, isFast }: GatedOperands): [gate: Tensor, up: Tensor] {
  const of = (w: QuantizedTensor, bias: Tensor | null) =>
    product(operation, x, w, { isTransposed: false, isFast: isFast && hasLevels(w) }, bias);
  return [of(gate, biases.gate), of(up, biases.up)];
}

/** @internal Computes activation(gate) · up. */
export function gatedProduct(activation: GateActivation, gate: Tensor, up: Tensor): Tensor {
  if (activation === "silu") return swiglu(gate, up);
  return mul(gelu(gate, { approximate: activation === "geluTanh" ? "tanh" : "none" }), up);
}

function fused(operation: string, operands: GatedOperands): Tensor {
  const { x, gate, up, biases, activation } = operands;
  const lead = x.shape.slice(0, -1);
  const isFast = operands.isFast && hasLevels(gate);
  const attributes = {
    ...attributesOf(gate),
    rows: gate.shape[0],
    count: elementCount(lead),
    activation,
    isFast,
    hasGateBias: biases.gate !== null,
    hasUpBias: biases.up !== null,
  };
  const given = [biases.gate, biases.up].filter((bias) => bias !== null);
  const output = executeOnRows(x, given, (rows, dense) => {
    const inputs = [rows, ...weightInputs(gate), ...weightInputs(up), ...dense];
    const primitive = isFast ? fastPrimitive : exactPrimitive;
    return execute(primitive, inputs, [...lead, gate.shape[0]], x.dtype, attributes, operation);
  });
  record(operation, [x, ...given], [output], [x, ...given], ([g], [rows, ...dense], needs) => {
    const again = { gate: biases.gate && dense[0], up: biases.up && lastElement(dense) };
    return gradients(operation, { ...operands, x: rows, biases: again, isFast: false }, g, needs);
  });
  return output;
}

/** Computes the gradients of x and of the existing biases from the gradient of the result. */
function gradients(
  operation: string,
  operands: GatedOperands,
  g: Tensor,
  needs: readonly boolean[],
): (Tensor | null)[] {
  const { gate, up, biases, activation } = operands;
  const [ofGate, ofUp] = tupleOf(gatedGradients(activation, g, ...products(operation, operands)), 2);
  const kind = { isTransposed: true, isFast: false };
  const ofX = needs[0] ? add(product(operation, ofGate, gate, kind), product(operation, ofUp, up, kind)) : null;
  const pairs = [[biases.gate, ofGate] as const, [biases.up, ofUp] as const].filter(([bias]) => bias !== null);
  return [ofX, ...pairs.map(([bias, gradient], at) => (needs[at + 1] ? sumTo(gradient, bias!.shape) : null))];
}

function gatedGradients(activation: GateActivation, g: Tensor, gate: Tensor, up: Tensor): readonly Tensor[] {
  if (activation === "silu") return swigluGradient(g, gate, up);
  const ofGate = activation === "gelu" ? geluGradient : geluTanhGradient;
  return [ofGate(mul(g, up), gate), gatedProduct(activation, gate, g)];
}
