/** Replaces functions that exporters write as several nodes by one node. */
import { numbersOf } from "../call.ts";
import { type Edit, standardStep } from "./edit.ts";
import { constant, type Match, match, node, type Pattern, scalarOf, variable } from "./pattern.ts";
import type { PlannedStep } from "./plan.ts";

/** Patterns of expressions, and the node that replaces them. */
interface Rule {
  readonly patterns: readonly ReturnType<typeof node>[];
  /** Returns undefined if the expression has to stay. */
  readonly replacement: (last: PlannedStep, found: Match, edit: Edit) => PlannedStep | undefined;
}

const x = variable("x");
const [add, mul, div] = ["Add", "Mul", "Div"].map((operator) => (a: Pattern, b: Pattern) => node(operator, [a, b])) as [
  Binary,
  Binary,
  Binary,
];
type Binary = (a: Pattern, b: Pattern) => ReturnType<typeof node>;
const c = constant;

/** Replaces an expression by a unary operator of x. */
const ofX =
  (operator: string, attributes: Readonly<Record<string, string>> = {}): Rule["replacement"] =>
  (last, { variables }) =>
    standardStep(last, operator, [variables.get("x")!], attributes);

const bounded = node("Clip", [add(x, c(3)), c(0), c(6)]);
const isHardswishSlope = ({ attributes }: PlannedStep): boolean =>
  Math.abs(attributes.number("alpha", 0.2) - 1 / 6) < 1e-6 && attributes.number("beta", 0.5) === 0.5;

/** 1 + erf(x / √2) = 2 Φ(x) */
const twicePhi = [div(x, c(Math.SQRT2)), mul(x, c(Math.SQRT1_2))].map((scaled) => add(node("Erf", [scaled]), c(1)));
const cubes = [node("Pow", [x, c(3)]), mul(mul(x, x), x)];
/** 1 + tanh(√(2/π) (x + 0.044715 x³)) */
const twicePhiByTanh = cubes.map((cube) =>
  add(node("Tanh", [mul(add(x, mul(cube, c(0.044715))), c(Math.sqrt(2 / Math.PI)))]), c(1)),
);
/** The forms in which exporters write x · p / 2. */
const halved = (p: Pattern) => [mul(mul(x, p), c(0.5)), mul(mul(x, c(0.5)), p), mul(x, mul(p, c(0.5)))];

/** Whether a node reduces the last axis, with `keepdims`. */
function isMeanOfLastAxis(step: PlannedStep, edit: Edit): boolean {
  const axes = step.attributes.numbers("axes") ?? axesOf(step, edit);
  const rank = edit.slots[step.inputs[0]].shape?.length ?? 0;
  return step.attributes.flag("keepdims", true) && axes?.length === 1 && (axes[0] === -1 || axes[0] === rank - 1);
}

function axesOf(step: PlannedStep, edit: Edit): readonly number[] | undefined {
  const axes = edit.fixed(step.inputs[1]);
  return axes && numbersOf(axes);
}

const mean = (of: Pattern) => node("ReduceMean", [of], isMeanOfLastAxis);
const centered = node("Sub", [x, mean(x)]);
const squares = [node("Pow", [centered, c(2)]), mul(centered, centered)];
const normalized = squares.flatMap((square) => {
  const deviation = node("Sqrt", [add(mean(square), variable("epsilon"))]);
  return [div(centered, deviation), mul(centered, node("Reciprocal", [deviation]))];
});

/** γ and β must be vectors of the last axis's length. */
function layerNormalization(last: PlannedStep, { variables }: Match, edit: Edit): PlannedStep | undefined {
  const [at, scale, bias, epsilon] = ["x", "scale", "bias", "epsilon"].map((name) => variables.get(name));
  const length = edit.slots[at!].shape?.at(-1);
  const isVector = [scale, bias].every((slot) => {
    const { shape } = edit.slots[slot!];
    return shape?.length === 1 && shape[0] === length;
  });
  const value = scalarOf(edit, epsilon!);
  if (!isVector || value === undefined) return undefined;
  return standardStep(last, "LayerNormalization", [at!, scale!, bias!], { axis: -1, epsilon: value });
}

const rules: readonly Rule[] = [
  {
    patterns: [
      div(mul(x, bounded), c(6)),
      mul(mul(x, bounded), c(1 / 6)),
      mul(x, div(bounded, c(6))),
      mul(x, mul(bounded, c(1 / 6))),
      mul(x, node("HardSigmoid", [x], isHardswishSlope)),
    ],
    replacement: ofX("HardSwish"),
  },
  { patterns: [mul(x, node("Sigmoid", [x]))], replacement: ofX("Swish") },
  { patterns: twicePhi.flatMap(halved), replacement: ofX("Gelu") },
  { patterns: twicePhiByTanh.flatMap(halved), replacement: ofX("Gelu", { approximate: "tanh" }) },
  {
    patterns: normalized.map((value) => add(mul(value, variable("scale")), variable("bias"))),
    replacement: layerNormalization,
  },
];

/** Replaces the expressions of all rules. */
export function fuseFunctions(edit: Edit): void {
  for (const step of edit.steps())
    for (const { patterns, replacement } of rules) {
      const found = patterns.map((pattern) => match(edit, step, pattern)).find((each) => each !== undefined);
      const made = found && replacement(step, found, edit);
      if (!made) continue;
      edit.replace(
        step,
        found.steps.filter((each) => each !== step),
        made,
      );
      break;
    }
}
