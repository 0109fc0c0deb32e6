/** The call that a family of operations draws, and its conversion to a case. */
import type { Argument, Call, Case, Operand, Options } from "./case.ts";
import type { Draw } from "./draw.ts";

/** A drawn call. Omitted fields have the values of most operations. */
export interface Drawn {
  readonly operands: readonly Operand[];
  /** The arguments. Default: the operands, in order. */
  readonly args?: readonly Argument[];
  readonly options?: Options;
  /** The operands to differentiate; `true` for all float operands. Default: none. */
  readonly gradients?: boolean | readonly number[];
  readonly kind?: Case["kind"];
  readonly compared?: number | null;
  readonly slack?: number;
  /** Fields of the call that differ for Orchard. */
  readonly ours?: Partial<Call>;
  /** Fields of the call that differ for PyTorch. */
  readonly theirs?: Partial<Call>;
}

export type Drawing = (draw: Draw) => Drawn;

/** Operations by name, each with the function that draws its calls. */
export type Family = Readonly<Record<string, Drawing>>;

export const at = (position: number): { readonly operand: number } => ({ operand: position });

/** Several operations that are drawn in the same way. */
export function each(names: string, drawing: (draw: Draw, name: string) => Drawn): Family {
  return Object.fromEntries(names.split(/\s+/).map((name) => [name, (draw: Draw) => drawing(draw, name)]));
}

const isFloating = ({ dtype }: Operand): boolean => /float/.test(dtype);

export function caseOf(family: string, name: string, drawn: Drawn): Case {
  const { operands, options = {}, kind = "operation", compared = 0, slack = 1, gradients = false } = drawn;
  const args = drawn.args ?? operands.map((_, position) => at(position));
  const varied = operands.flatMap((operand, position) => (isFloating(operand) ? [position] : []));
  const call: Call = { name, args, options };
  return {
    family,
    operands,
    kind,
    compared,
    slack,
    gradients: typeof gradients === "boolean" ? (gradients ? varied : []) : gradients,
    ours: { ...call, ...drawn.ours },
    theirs: { ...call, ...drawn.theirs },
  };
}
