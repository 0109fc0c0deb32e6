/** A drawn case of the sweep: a call that both libraries make. pytorch.py reads cases as JSON. */
import type { DType } from "../../../src/tensor/dtype.ts";

/** The layout of an operand in memory. A sliced operand has every second element of an axis of a larger tensor. */
export type Layout =
  | { readonly kind: "contiguous" }
  | { readonly kind: "transposed"; readonly dims: readonly [number, number] }
  | { readonly kind: "sliced"; readonly dim: number }
  | { readonly kind: "expanded"; readonly dim: number };

/**
 * The distribution of elements: normal, uniform (whole numbers for integers), distinct indices below a bound, or
 * matrices that are well conditioned, or symmetric and positive definite.
 */
export type Values =
  | "normal"
  | { readonly low: number; readonly high: number }
  | { readonly distinct: number }
  | "wellConditioned"
  | "positiveDefinite";

export interface Operand {
  readonly shape: readonly number[];
  readonly dtype: DType;
  readonly layout: Layout;
  readonly values: Values;
}

/** An argument of a call: an operand by its position, a list, or a JSON value. */
export type Argument = number | boolean | string | null | { readonly operand: number } | readonly Argument[];
export type Options = Readonly<Record<string, Argument>>;

/** The arguments of a call. Options have PyTorch's names in camelCase. */
export interface Call {
  readonly name: string;
  readonly args: readonly Argument[];
  readonly options: Options;
}

export interface Case {
  readonly family: string;
  readonly operands: readonly Operand[];
  /** The operands with a gradient; none if only the forward is measured. */
  readonly gradients: readonly number[];
  readonly ours: Call;
  /** PyTorch's name with its module, such as `nn.functional.pad`. Omitted if it is Orchard's name. */
  readonly theirs: Call;
  /**
   * The kind of call: an operation; a layer's `forward`; an optimizer step with the operands as parameters; a training
   * step with the layers in `args`.
   */
  readonly kind: "operation" | "layer" | "optimizer" | "training";
  /**
   * The index of the result to compare, if there are several; null if libraries may differ, such as in the order of
   * equal elements.
   */
  readonly compared: number | null;
  /** The factor by which the dtype's usual tolerance is multiplied. */
  readonly slack: number;
}

export const sizeOf = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1);

/** Returns the shape of the tensor in memory that the operand is a view of. */
export function baseShape({ shape, layout }: Operand): number[] {
  const base = [...shape];
  if (layout.kind === "transposed") {
    const [first, second] = layout.dims;
    [base[first], base[second]] = [base[second], base[first]];
  } else if (layout.kind === "sliced") base[layout.dim] *= 2;
  else if (layout.kind === "expanded") base[layout.dim] = 1;
  return base;
}

const brief: Partial<Record<DType, string>> = { float32: "", float64: "f64 ", float16: "f16 ", bfloat16: "bf16 " };

function describeOperand({ shape, dtype, layout }: Operand): string {
  const kind = layout.kind === "contiguous" ? "" : ` ${layout.kind}`;
  return `${brief[dtype] ?? `${dtype} `}${shape.length === 0 ? "scalar" : shape.join("x")}${kind}`;
}

/** @returns such as `softmax(512x37 transposed, -1) with backward` */
export function describeCase({ ours, operands, gradients, kind }: Case): string {
  const shown = (value: Argument): string => {
    if (typeof value !== "object" || value === null) return `${value}`;
    if ("operand" in value) return describeOperand(operands[value.operand]);
    return `[${value.map(shown).join(", ")}]`;
  };
  const options = Object.entries(ours.options).map(([name, value]) => `${name} ${shown(value)}`);
  const inputs = kind === "operation" ? "" : ` of ${operands.map(describeOperand).join(", ")}`;
  const call = `${ours.name}(${[...ours.args.map(shown), ...options].join(", ")})${inputs}`;
  return gradients.length > 0 && kind !== "training" ? `${call} with backward` : call;
}
