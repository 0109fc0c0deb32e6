/**
 * Chooses which of a row's samples run. Samples that differ only in their layouts form a group. Finite differences use
 * contiguous operands, so they need one sample of each group. A row's first dtype runs every group; of several groups,
 * each other dtype runs every second on metal and reference, and neighboring dtypes run different ones. Hence every
 * shape and option runs in several dtypes, and every dtype runs in every layout. Metal's software device is slow,
 * because the checker watches every access: there each dtype runs a third of a group. The reference backend has one
 * loop for all sizes, layouts and dtypes: there each dtype except the first runs a third of a group, without groups of
 * many elements. The cpu backend runs every sample, but compares gradients in half precision only for every second
 * group. An exhaustive run runs everything.
 */
import type { BackendName } from "../../src/backend/names.ts";
import type { DType } from "../../src/tensor/dtype.ts";
import { elementCount } from "../../src/tensor/shape.ts";
import { isExhaustive } from "../support/repeats.ts";
import type { OperationRow, Sample } from "./table.ts";

const TURNS = 3;

/** If a sample's operands have at least this many elements, the reference backend runs it in one dtype only. */
const MANY = 2000;

type Row = Pick<OperationRow<unknown>, "samples" | "dtypes">;

const takes = ({ dtypes: own }: Sample<unknown>, of: DType): boolean => !own || own.includes(of);

/** Returns the samples that run on a backend in a dtype. */
export function samplesOn(
  { samples, dtypes }: Row,
  backend: BackendName,
  dtype: DType,
  isEverything = isExhaustive,
): readonly Sample<unknown>[] {
  const fitting = samples.filter((sample) => takes(sample, dtype));
  if (isEverything || backend === "cpu") return fitting;
  return groupsOf(fitting).flatMap((group, at) => {
    const isFirst = dtype === dtypes.find((of) => takes(group[0], of));
    if (backend === "reference" && (isFirst || elementsOf(group[0]) >= MANY)) return isFirst ? group : [];
    const turns = turnsOf(dtypes, group[0]);
    if (!hasTurn(turns, dtype, at)) return [];
    if (group.length < TURNS) return group;
    const turn = turns.indexOf(dtype);
    const count = Math.min(TURNS, turns.length);
    const round = turn === 0 ? at : at >> 1; // the number of earlier groups that the dtype runs
    return group.filter((_, index) => (index + round + turn) % count === 0);
  });
}

/** The dtypes that take turns: those of a sample, except float64, which Metal does not support. */
const turnsOf = (dtypes: readonly DType[], sample: Sample<unknown>): readonly DType[] =>
  dtypes.filter((of) => of !== "float64" && takes(sample, of));

/** Whether a dtype runs a group: the first of several dtypes runs all, each other one every second. */
function hasTurn(turns: readonly DType[], dtype: DType, group: number): boolean {
  const turn = turns.indexOf(dtype);
  return turn <= 0 || turns.length === 1 || (group + turn) % 2 === 0;
}

const HALVES: readonly DType[] = ["float16", "bfloat16"];

/** Returns the samples whose gradients are compared in a dtype, of those that run. */
export function gradientsIn(
  { samples, dtypes }: Row,
  dtype: DType,
  isEverything = isExhaustive,
): ReadonlySet<Sample<unknown>> {
  const fitting = samples.filter((sample) => takes(sample, dtype));
  if (isEverything || !HALVES.includes(dtype)) return new Set(fitting);
  return new Set(
    groupsOf(fitting)
      .filter((group, at) => hasTurn(turnsOf(dtypes, group[0]), dtype, at))
      .flat(),
  );
}

const elementsOf = ({ inputs }: Sample<unknown>): number =>
  inputs.reduce((sum, { shape }) => sum + elementCount(shape), 0);

/** Returns one sample of each group, for tests that use contiguous operands. */
export const withoutLayouts = (samples: readonly Sample<unknown>[]): readonly Sample<unknown>[] =>
  groupsOf(samples).map(([first]) => first);

/** Groups samples that have the same shapes, values and options, with any layouts and dtypes of indices. */
function groupsOf(samples: readonly Sample<unknown>[]): readonly (readonly Sample<unknown>[])[] {
  return [...Map.groupBy(samples, keyOf).values()];
}

const keyOf = ({ inputs, options, dtypes, gradient }: Sample<unknown>): string =>
  JSON.stringify([inputs.map(({ shape, values }) => [shape, values]), options, dtypes, gradient], (_, value) =>
    isPlain(value) ? value : `${typeof value} ${identityOf(value)}`,
  );

/** Whether JSON distinguishes such values. */
function isPlain(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  if (typeof value === "bigint" || typeof value === "function") return false;
  if (typeof value !== "object" || value === null) return true;
  return Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
}

const identities = new Map<unknown, number>();

function identityOf(value: unknown): string {
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
  if (typeof value === "bigint") return String(value);
  if (!identities.has(value)) identities.set(value, identities.size);
  return String(identities.get(value));
}
