/** Runs a case on a backend and compares it, forward and backward, with the oracle. */
import { test } from "bun:test";
import { metalContext } from "../../../src/backend/metal/context.ts";
import type { BackendName } from "../../../src/backend/names.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { whyUnavailable } from "../../../src/backend/registry.ts";
import { flashAttention } from "../../../src/ops/attention/flash_attention.ts";
import { attentionBackward, attentionDropoutMask, attentionForward } from "../../../src/ops/attention/passes.ts";
import type { AttentionAttributes } from "../../../src/ops/attention/problem.ts";
import { zeros } from "../../../src/ops/creation/full.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { usually } from "../../support/repeats.ts";
import { checkFindings, gaps, tested } from "../run.ts";
import { hash, Random, rounder } from "../samples.ts";
import { compare, epsilon } from "../tolerance.ts";
import type { AttentionCase } from "./cases.ts";
import { type Call, drawCall, statistics } from "./draw.ts";
import { type Arithmetic, type Attention, exact, magnitudes, type Setup } from "./oracle.ts";

/** A way to compute attention: a backend's kernels, or the composition of other operations. */
export interface Way {
  readonly name: string;
  readonly backend: BackendName;
  readonly path: "fused" | "unfused";
}

const all: readonly Way[] = [
  ...tested.map((backend): Way => ({ name: backend, backend, path: "fused" })),
  { name: "cpu unfused", backend: "cpu", path: "unfused" },
];

/** Why a backend has no fused attention, if it has none. */
export function whyMissing(backend: BackendName): string | undefined {
  const own = [attentionForward, attentionBackward].map(({ implementations }) => implementations[backend]);
  return own.find((implementation) => "missing" in implementation)?.missing;
}

/** The available ways. The unavailable ones are listed at the end of the run. */
export const ways: readonly Way[] = all.filter((way) => {
  const why = way.path === "fused" ? whyMissing(way.backend) : undefined;
  if (why) gaps.push(`attention on ${way.name}: ${why}`);
  return !why;
});

export const dtypes: readonly DType[] = ["float64", "float32", "float16", "bfloat16"];

/** Why a way does not support a dtype. */
function whyNotOf(dtype: DType, { backend, path }: Way): string | undefined {
  const forward = attentionForward.implementations[backend];
  if (path === "unfused" || "missing" in forward) return undefined;
  const inputs = withBackend("reference", () => [0, 1, 2].map(() => zeros([1, 1, 1, 1], { dtype })));
  return forward.unsupported?.({ operation: attentionForward.name, inputs, attributes: plainAttributes });
}

const plainAttributes: AttentionAttributes = {
  ...({ inputs: ["q", "k", "v"], outputs: ["out", "logSumExp", "logSumExpLow"], alignment: "bottom-right" } as const),
  scale: 1,
  softcap: undefined,
  band: undefined,
  dropout: undefined,
  packed: undefined,
};

const ofMetal: readonly DType[] = ["float32", "float16", "bfloat16"];

/**
 * On metal, whose software device is slow, each case usually runs in float32 or in one of the narrow dtypes, in
 * rotation.
 */
const casesOf = (cases: readonly AttentionCase[], dtype: DType, { backend }: Way): readonly AttentionCase[] =>
  backend === "metal" ? usually(cases, (_, at) => at % 3 === ofMetal.indexOf(dtype)) : cases;

/** One test of several cases for each way and each dtype of its backend. */
export function testCases(title: string, cases: readonly AttentionCase[], only: readonly DType[] = dtypes): void {
  for (const dtype of only) {
    const shared = new Map<AttentionCase, Wanted>();
    for (const way of ways) {
      const why = whyNotOf(dtype, way);
      if (why) gaps.push(`attention ${dtype} on ${way.name}: ${why}`);
      else
        test(`${title} ${dtype} on ${way.name}`, () => {
          for (const each of casesOf(cases, dtype, way)) checkCase(each, dtype, way, shared);
          if (way === ways.at(-1)) shared.clear();
        });
    }
  }
}

/**
 * Runs on one backend and no other, except for unsupported features; on metal under the checker, which must find
 * nothing.
 */
export function on<Result>({ name, backend, path }: Way, body: () => Result): Result {
  const unavailable = whyUnavailable(backend);
  if (unavailable) throw new Error(`${backend} can't be tested: ${unavailable}`);
  if (backend === "metal") metalContext().configure("check", true);
  const lacksMask = path === "unfused" && "missing" in attentionDropoutMask.implementations[backend];
  const result = withStrict(!lacksMask, () => withBackend(backend, body));
  if (backend === "metal") checkFindings({ name: `attention on ${name}` });
  return result;
}

/** The oracle's results for a call: exact, with roundings, and of magnitudes. */
interface Wanted {
  readonly want: Attention;
  readonly plain: Attention;
  readonly sums: Attention;
}

/**
 * An instance of the oracle's module for each arithmetic. The engine inlines roundings only into functions that call
 * few different ones; with one instance for all, the oracle takes several times as long.
 */
const oracles = Object.fromEntries(
  await Promise.all(
    (["exact", "magnitudes", "float32", "float16", "bfloat16"] as const).map(async (arithmetic) => {
      const { attention } = (await import(`./oracle.ts?${arithmetic}`)) as typeof import("./oracle.ts");
      return [arithmetic, attention] as const;
    }),
  ),
);

function computeWanted({ setup, cotangents }: Call, dtype: DType): Wanted {
  const rounded: Arithmetic = { store: rounder(dtype), sum: rounder(statistics(dtype)) };
  const want = oracles["exact"](setup, cotangents, exact);
  return {
    want,
    plain: dtype === "float64" ? want : oracles[dtype](setup, cotangents, rounded), // no rounding in float64
    sums: oracles["magnitudes"](setup, cotangents, magnitudes),
  };
}

/**
 * Compares results and gradients of a case with those of the oracle. The operands are the same for every way, so tests
 * of the same cases and dtype share the oracle's results.
 */
export function checkCase(of: AttentionCase, dtype: DType, way: Way, shared?: Map<AttentionCase, Wanted>): void {
  const seed = `attention ${of.name} ${dtype}`;
  const label = `${seed} on ${way.name}`;
  const drawn = drawCall(of, dtype, way.backend, new Random(hash(seed)));
  const { setup } = drawn;
  const got = on(way, () => runCall(drawn, way, !of.isForward));
  const count = roundingsOf(setup, dtype);
  const known = shared?.get(of) ?? computeWanted(drawn, dtype);
  shared?.set(of, known);
  const { want, plain, sums } = known;
  const compareWith = (name: keyof Attention, values: readonly number[], factor: number, own = dtype) => {
    const roundings = sums[name].map((sum) => (count + storedRoundings(name, dtype, setup)) * Math.abs(sum));
    check(`${label}: ${nameOf(name)}`, own, values, want[name], plain[name], factor, roundings);
  };
  compareWith("out", got.out, 2);
  compareWith("logSumExp", got.logSumExp, 2, statistics(dtype));
  for (const [name, gradient] of got.gradients) compareWith(name, gradient, 3);
}

const nameOf = (name: keyof Attention): string =>
  name === "out" || name === "logSumExp" ? name : `gradient of ${name}`;

/** Results and gradients as the library computes them. */
export function runCall(
  { leaves, options, gradOut, gradLogSumExp }: Omit<Call, "setup" | "cotangents">,
  way: Way,
  hasGradients = true,
) {
  const [q, k, v] = [leaves.get("q")!, leaves.get("k")!, leaves.get("v")!];
  const { out, logSumExp } = flashAttention(q, k, v, { ...options, path: way.path, returnLogSumExp: true });
  const outputs = gradLogSumExp ? [out, logSumExp] : [out];
  const gradOutputs = gradLogSumExp ? [gradOut, gradLogSumExp] : [gradOut];
  const gradients = hasGradients ? grad(outputs, [...leaves.values()], { gradOutputs }) : [];
  const names = [...leaves.keys()].slice(0, gradients.length);
  return {
    out: numbersOf(out),
    logSumExp: numbersOf(logSumExp),
    gradients: new Map(names.map((name, at) => [name, numbersOf(gradients[at])])),
  };
}

const numbersOf = (x: Tensor): number[] => Array.from(x.dataSync(), Number);

/**
 * The permitted error of a result's term, relative to the term, in roundings of the computation's dtype. It adds the
 * roundings of the score, whose absolute error becomes a relative one by exp, those of exp and similar functions, and
 * those of the sums (Higham and Mary, as in `../run.ts`). By chance, a plain computation with few results can be more
 * accurate than that. For float64, the oracle has the same errors too, which doubles them.
 */
function roundingsOf({ q, k, scale, dim, queries, keys }: Setup, dtype: DType): number {
  const most = (values: readonly number[]) => values.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0);
  const own = 8 + 2 * Math.sqrt(Math.max(queries, keys)) + 2 * Math.sqrt(dim) * scale * most(q) * most(k);
  return dtype === "float64" ? 2 * own : own;
}

/**
 * Backward computes rowsum(P ∘ dP) as rowsum(dO ∘ out), from the output as stored: the roundings of its elements, which
 * are independent, affect every gradient except that of v. Three standard deviations, relative to the sum of a result's
 * terms, in the roundings of float32.
 */
function storedRoundings(name: keyof Attention, dtype: DType, { batch, queries, valueDim }: Setup): number {
  const independent = { q: 1, bias: 1, k: queries, sinks: batch * queries };
  if (dtype === "float64" || !(name in independent)) return 0;
  const terms = valueDim * independent[name as keyof typeof independent];
  return (3 / Math.sqrt(terms)) * (epsilon[dtype]! / epsilon.float32!);
}

function check(
  what: string,
  dtype: DType,
  got: readonly number[],
  want: readonly number[],
  plain: readonly number[],
  factor: number,
  roundings: readonly number[],
): void {
  if (got.length !== want.length) throw new Error(`${what}: expected ${want.length} elements, got ${got.length}`);
  const mismatch = compare(dtype, got, want, plain, { flash: true }, factor, roundings);
  if (!mismatch) return;
  const { index, got: value, expected, allowed, largestAbsolute } = mismatch;
  throw new Error(
    `${what}, element ${index}: got ${value}, expected ${expected} ` +
      `(allowed difference ${allowed}; largest absolute error ${largestAbsolute})`,
  );
}
