/** Elementwise operations, operations on pairs with broadcasting, and in-place writes. */
import { definitions } from "../../../../src/ops/elementwise/define.ts";
import * as operations from "../../../../src/ops/index.ts";
import type { DType } from "../../../../src/tensor/dtype.ts";
import type { Operand, Values } from "../case.ts";
import { type Draw, operand } from "../draw.ts";
import { at, type Drawn, each, type Family } from "../family.ts";

/** The domain of a function that is not defined for all real numbers. */
const domains: Readonly<Record<string, Values>> = {
  ...named("log log2 log10 log1p sqrt rsqrt lgamma digamma mvlgamma", { low: 1.1, high: 9 }),
  ...named("asin acos atanh erfinv", { low: -0.95, high: 0.95 }),
  entr: { low: 0.05, high: 4 },
  logit: { low: 0.05, high: 0.95 },
  acosh: { low: 1.05, high: 9 },
  reciprocal: { low: 0.5, high: 4 },
};

/** Functions that PyTorch has in another module, or under another name. */
const elsewhere: Readonly<Record<string, string>> = {
  hardsigmoid: "nn.functional.hardsigmoid",
  sphericalBesselJ0: "special.spherical_bessel_j0",
};

/** Functions of floats without a gradient. */
const constant = ["nextafter", "heaviside", "sphericalBesselJ0"];

function named<T>(names: string, value: T): Record<string, T> {
  return Object.fromEntries(names.split(" ").map((name) => [name, value]));
}

const isPublic = (name: string): boolean => name in operations;

/** The dtype of an operand: a float, or for some calls another dtype that the operation accepts. */
function dtypeFor(draw: Draw, takes: string): DType {
  if (takes === "integers") return draw.pick(["int32", "int64", "uint8"]);
  if (takes === "bits") return draw.pick(["int32", "int64", "uint8", "bool"]);
  return takes === "floats" || draw.chance(0.8) ? draw.float() : draw.pick(["int32", "int64"]);
}

/** A Bessel function. Results are not compared: PyTorch's omit the leading coefficients of some denominators. */
const bessel = (draw: Draw, name: string): Drawn => ({
  operands: floats(draw, 1, { low: 0.1, high: 30 }),
  compared: null,
  theirs: { name: `special.${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}` },
});

const valuesFor = (dtype: DType, name = ""): Values =>
  dtype === "bool" ? { low: 0, high: 1 } : (domains[name] ?? (isWhole(dtype) ? { low: 1, high: 9 } : "normal"));
const isWhole = (dtype: DType): boolean => !dtype.includes("float");

function unary(draw: Draw, name: string, takes: string): Drawn {
  const dtype = dtypeFor(draw, takes);
  const x = operand(draw, draw.anyShape(), { dtype, values: valuesFor(dtype, name), anyLayout: true });
  return {
    operands: [x],
    gradients: takes === "floats" && draw.chance(0.25),
    theirs: name in elsewhere ? { name: elsewhere[name] } : {},
  };
}

/** Draws how the second operand of a pair broadcasts to the first, and in a few cases the first to the second. */
const patterns = {
  same: 0.45,
  row: 0.15,
  column: 0.12,
  scalar: 0.05,
  outer: 0.1,
  leading: 0.08,
  single: 0.05,
} as const;

/** The shapes of a pair. */
export function pairOfShapes(draw: Draw): [number[], number[]] {
  const pattern = draw.share(patterns);
  const shape = draw.anyShape(undefined, undefined, pattern === "outer" ? 2 : 1);
  const last = shape.length - 1;
  const keep = (kept: (axis: number) => boolean) => shape.map((size, axis) => (kept(axis) ? size : 1));
  if (pattern === "row") return [shape, [shape[last]]];
  if (pattern === "column") return [shape, keep((axis) => axis !== last)];
  if (pattern === "scalar") return [shape, []];
  if (pattern === "outer") return [keep((axis) => axis !== last), keep((axis) => axis === last)];
  if (pattern === "leading") return [shape, keep((axis) => axis === 0)];
  if (pattern === "single") {
    const axis = draw.integer(0, last);
    return [shape, keep((each) => each !== axis)];
  }
  return [shape, shape];
}

function binary(draw: Draw, takes: string): Drawn {
  const dtype = dtypeFor(draw, takes);
  const values = takes === "bits" || isWhole(dtype) ? valuesFor(dtype) : { low: 0.5, high: 4 };
  const [first, second] = pairOfShapes(draw);
  const operands = [first, second].map((shape) => operand(draw, shape, { dtype, values, anyLayout: true }));
  if (takes === "floats" || !draw.chance(0.1)) return { operands, gradients: !isWhole(dtype) && draw.chance(0.2) };
  return { operands: [operands[0]], args: [at(0), 2] };
}

const drawOf = (operands: number, takes: string, isPredicate: boolean) =>
  Object.fromEntries(
    [...definitions.values()]
      .filter((row) => row.operands === operands && row.takes === takes && row.isPredicate === isPredicate)
      .filter(({ name }) => isPublic(name))
      .map(({ name }) => [
        name,
        (draw: Draw) => {
          const drawn = operands === 1 ? unary(draw, name, takes) : binary(draw, takes);
          return isPredicate || constant.includes(name) ? { ...drawn, gradients: false } : drawn;
        },
      ]),
  );

const floats = (draw: Draw, count: number, values: Values = "normal") => {
  const [shape, dtype] = [draw.anyShape(), draw.float()];
  return Array.from({ length: count }, () => operand(draw, shape, { dtype, values, anyLayout: true }));
};

/** Functions of one tensor whose options are left at their defaults. */
const plain = each(
  `celu deg2rad elu hardshrink hardtanh isneginf isposinf leakyRelu logit nanToNum rad2deg relu6 selu softplus
  softshrink`,
  (draw, name) => ({
    operands: floats(draw, 1, domains[name]),
    gradients: !name.startsWith("is") && draw.chance(0.2),
  }),
);

const inPlace = each("add_ sub_ mul_ div_ copy_", (draw, name) => {
  const [shape, other] = pairOfShapes(draw).toSorted((one, two) => two.length - one.length) as [number[], number[]];
  const fits = other.every((size, axis) => size === 1 || size === shape[shape.length - other.length + axis]);
  const full = fits ? shape : shape.map((size, axis) => Math.max(size, other[axis] ?? 1));
  const dtype = draw.pick<DType>(["float32", "float32", "bfloat16"]);
  const values = name === "mul_" || name === "div_" ? { low: 1, high: 1 } : { low: -1e-3, high: 1e-3 };
  const target = operand(draw, full, { dtype, values: "normal" });
  return { operands: [target, operand(draw, other, { dtype, values })], theirs: { name: `Tensor.${name}` } };
});

const filling = each("fill_ zero_", (draw, name) => ({
  operands: floats(draw, 1).map((x) => ({ ...x, layout: { kind: "contiguous" } as const })),
  args: name === "fill_" ? [at(0), 2] : [at(0)],
  theirs: { name: `Tensor.${name}` },
}));

export const elementwise: Family = {
  ...drawOf(1, "numbers", false),
  ...drawOf(1, "everything", false),
  ...drawOf(1, "floats", false),
  ...drawOf(1, "everything", true),
  ...drawOf(1, "bits", false),
  ...drawOf(2, "everything", false),
  ...drawOf(2, "numbers", false),
  ...drawOf(2, "everything", true),
  ...drawOf(2, "floats", false),
  ...drawOf(2, "bits", false),
  ...each("gcd lcm bitwiseLeftShift bitwiseRightShift", (draw) => binary(draw, "integers")),
  ...each("fmax fmin floatPower", (draw) => binary(draw, "floats")),
  ...plain,
  ...inPlace,
  ...filling,
  ...each("i0e i1e erfcx", (draw, name) => ({
    operands: floats(draw, 1),
    gradients: draw.chance(0.2),
    theirs: { name: `special.${name}` },
  })),
  ...each("besselJ0 besselJ1 besselY0 besselY1 modifiedBesselK0 modifiedBesselK1", bessel),
  ...each("scaledModifiedBesselK0 scaledModifiedBesselK1", bessel),
  frexp: (draw) => ({ operands: floats(draw, 1), compared: 0 }),
  ldexp: (draw) => {
    const [x] = floats(draw, 1) as [Operand];
    return { operands: [x, operand(draw, x.shape, { dtype: "int32" })] };
  },
  ndtri: (draw) => ({ operands: floats(draw, 1, { low: 0.05, high: 0.95 }), theirs: { name: "special.ndtri" } }),
  logNdtr: (draw) => ({ operands: floats(draw, 1), theirs: { name: "special.log_ndtr" } }),
  ...each("gammainc gammaincc zeta", (draw, name) => ({
    operands: floats(draw, 2, { low: 1.5, high: 9 }),
    theirs: { name: `special.${name}` },
  })),
  polygamma: (draw) => ({ operands: floats(draw, 1, { low: 1.1, high: 9 }), args: [draw.integer(0, 3), at(0)] }),
  mvlgamma: (draw) => ({ operands: floats(draw, 1, { low: 3, high: 9 }), args: [at(0), 2], slack: 4 }),
  addcmul: (draw) => ({ operands: floats(draw, 3), gradients: draw.chance(0.2) }),
  addcdiv: (draw) => ({ operands: floats(draw, 3, { low: 0.5, high: 4 }), gradients: draw.chance(0.2) }),
  lerp: (draw) => ({ operands: floats(draw, 2), args: [at(0), at(1), 0.3], gradients: draw.chance(0.2) }),
  clamp: (draw) => ({ operands: floats(draw, 1), args: [at(0), -0.5, 0.8], gradients: draw.chance(0.2) }),
  threshold: (draw) => ({ operands: floats(draw, 1), args: [at(0), 0.1, 1], gradients: draw.chance(0.2) }),
  isClose: (draw) => ({ operands: floats(draw, 2), theirs: { name: "isclose" } }),
  allClose: (draw) => ({ operands: floats(draw, 2), compared: null, theirs: { name: "allclose" } }),
  equal: (draw) => {
    const [x] = floats(draw, 1);
    return { operands: [x], args: [at(0), at(0)], compared: null };
  },
  glu: (draw) => {
    const [rows, width] = draw.shape(2, draw.size(64, 2 ** 21)) as [number, number];
    return { operands: [operand(draw, [rows, 2 * width], { dtype: draw.float() })], gradients: draw.chance(0.3) };
  },
  where(draw) {
    const [shape, dtype] = [draw.anyShape(), draw.float()];
    const mask = operand(draw, shape, { dtype: "bool", values: { low: 0, high: 1 }, anyLayout: true });
    const [a, b] = [0, 1].map(() => operand(draw, shape, { dtype, anyLayout: true }));
    return { operands: [mask, a, b], gradients: draw.chance(0.2) };
  },
  swiglu(draw) {
    return { operands: floats(draw, 2), gradients: draw.chance(0.2), theirs: { name: "swiglu" } };
  },
  prelu(draw) {
    const shape = draw.anyShape(undefined, undefined, 2);
    const dtype = draw.pick<DType>(["float32", "float32", "bfloat16"]);
    return {
      operands: [operand(draw, shape, { dtype }), operand(draw, [shape[1]], { dtype })],
      gradients: draw.chance(0.3),
    };
  },
};
