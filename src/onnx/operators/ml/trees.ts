/** Ensembles of decision trees: forests and gradient boosting of scikit-learn, XGBoost and LightGBM. */
import { lastElement } from "../../../core/collections.ts";
import { tupleOf } from "../../../core/tuples.ts";
import { tensor as tensorOf } from "../../../ops/creation/tensor.ts";
import * as ops from "../../../ops/index.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { Attributes } from "../../attributes.ts";
import { type Call, numbersOf, type Operators, Results } from "../../call.ts";
import { NodeProblem } from "../../errors.ts";
import { isStrings } from "../../strings.ts";
import { labelsOf } from "./labels.ts";
import { rowsAt } from "./linear.ts";
import { classLabels, ofBoth, transformed, transformNames } from "./scores.ts";

const MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"] as const;
const LEAF = -1;
const MEMBER = 6;

/** A leaf's contribution to a target. */
interface Weight {
  readonly target: number;
  readonly weight: number;
}

/** The nodes of all trees, by index. */
interface Forest {
  readonly roots: readonly number[];
  readonly features: readonly number[];
  /** Indices into {@link MODES}, or {@link MEMBER} or {@link LEAF}. */
  readonly modes: readonly number[];
  readonly splits: readonly number[];
  readonly members: ReadonlyMap<number, ReadonlySet<number>>;
  /** The next node if the condition holds, and if it does not. */
  readonly yes: readonly number[];
  readonly no: readonly number[];
  /** Whether the condition holds for NaN. */
  readonly missing: readonly boolean[];
  readonly leaves: readonly (readonly Weight[])[];
}

/** Reads a list of numbers. Later versions may store it as a tensor. */
function numbers(attributes: Attributes, name: string): readonly number[] | undefined {
  const value = attributes.value(`${name}_as_tensor`);
  return value && !isStrings(value) ? numbersOf(value) : attributes.numbers(name);
}

function required(attributes: Attributes, name: string): readonly number[] {
  const list = numbers(attributes, name);
  if (!list) throw new NodeProblem(`attribute ${name} is missing`);
  return list;
}

/** Reads the forest of a classifier or regressor. Its node ids are unique only within a tree. */
function forestOf(attributes: Attributes, weightsName: "class" | "target"): Forest {
  const [trees, ids] = [required(attributes, "nodes_treeids"), required(attributes, "nodes_nodeids")];
  const names = attributes.texts("nodes_modes") ?? [];
  const places = new Map(ids.map((id, at) => [`${trees[at]} ${id}`, at]));
  const roots = [...new Map(trees.map((tree, at) => [tree, at] as const).reverse()).values()].sort((a, b) => a - b);
  const modes = names.map((name) => (name === "LEAF" ? LEAF : MODES.indexOf(name as (typeof MODES)[number])));
  const unknown = modes.findIndex((mode, at) => mode < 0 && names[at] !== "LEAF");
  if (unknown >= 0) throw new NodeProblem(`attribute nodes_modes: ${names[unknown]} is not supported`);
  const next = (name: string) => {
    const list = required(attributes, name);
    return ids.map((_, at) => (modes[at] === LEAF ? LEAF : (places.get(`${trees[at]} ${list[at]}`) ?? LEAF)));
  };
  const leaves: Weight[][] = ids.map(() => []);
  const [weightTrees, weightNodes] = tupleOf(
    ["treeids", "nodeids"].map((name) => required(attributes, `${weightsName}_${name}`)),
    2,
  );
  const [targets, weights] = [
    required(attributes, `${weightsName}_ids`),
    required(attributes, `${weightsName}_weights`),
  ];
  for (const [at, target] of targets.entries()) {
    const leaf = places.get(`${weightTrees[at]} ${weightNodes[at]}`);
    if (leaf !== undefined) leaves[leaf].push({ target, weight: weights[at] ?? 0 });
  }
  const missing = attributes.numbers("nodes_missing_value_tracks_true") ?? [];
  return {
    roots,
    modes,
    leaves,
    features: required(attributes, "nodes_featureids"),
    splits: required(attributes, "nodes_values"),
    members: new Map(),
    yes: next("nodes_truenodeids"),
    no: next("nodes_falsenodeids"),
    missing: ids.map((_, at) => missing[at] === 1),
  };
}

/** Reads the forest of a TreeEnsemble. Leaves follow the nodes; member sets are one list, separated by NaN. */
function forestOfEnsemble(attributes: Attributes): Forest {
  const modesTensor = attributes.value("nodes_modes");
  const splitsTensor = attributes.value("nodes_splits");
  const weightsTensor = attributes.value("leaf_weights");
  if (!modesTensor || isStrings(modesTensor) || !splitsTensor || isStrings(splitsTensor))
    throw new NodeProblem("attribute nodes_modes or nodes_splits is missing");
  if (!weightsTensor || isStrings(weightsTensor)) throw new NodeProblem("attribute leaf_weights is missing");
  const modes = [...numbersOf(modesTensor)];
  const count = modes.length;
  const next = (name: string): number[] => {
    const [ids, isLeaf] = [required(attributes, `nodes_${name}nodeids`), required(attributes, `nodes_${name}leafs`)];
    return ids.map((id, at) => (isLeaf[at] === 1 ? count + id : id));
  };
  const targets = required(attributes, "leaf_targetids");
  const weights = numbersOf(weightsTensor);
  const lists = membersOf(attributes);
  const members = new Map<number, ReadonlySet<number>>();
  for (const [at, mode] of modes.entries()) if (mode === MEMBER) members.set(at, lists[members.size] ?? new Set());
  const missing = attributes.numbers("nodes_missing_value_tracks_true") ?? [];
  return {
    roots: required(attributes, "tree_roots"),
    features: required(attributes, "nodes_featureids"),
    members,
    modes: [...modes, ...weights.map(() => LEAF)],
    splits: numbersOf(splitsTensor),
    yes: next("true"),
    no: next("false"),
    missing: modes.map((_, at) => missing[at] === 1),
    leaves: [...modes.map(() => []), ...weights.map((weight, at) => [{ target: targets[at] ?? 0, weight }])],
  };
}

function membersOf(attributes: Attributes): Set<number>[] {
  const value = attributes.value("membership_values");
  const lists: Set<number>[] = [new Set()];
  for (const each of value && !isStrings(value) ? numbersOf(value) : [])
    if (Number.isNaN(each)) lists.push(new Set());
    else lastElement(lists).add(each);
  return lists;
}

function holds(mode: number, value: number, split: number): boolean {
  if (mode === 0) return value <= split;
  if (mode === 1) return value < split;
  if (mode === 2) return value >= split;
  if (mode === 3) return value > split;
  return mode === 4 ? value === split : value !== split;
}

/** Returns the leaf for a row. @throws {NodeProblem} for a cycle or a missing node, as in a damaged file */
function leafOf(forest: Forest, root: number, row: readonly number[]): readonly Weight[] {
  const { modes, features, splits, members, yes, no, missing, leaves } = forest;
  let at = root;
  for (let steps = 0; steps <= modes.length; steps++) {
    const mode = modes[at];
    if (mode === LEAF) return leaves[at] ?? [];
    const value = row[features[at]];
    if (mode === undefined || value === undefined)
      throw new NodeProblem(`node ${at} of the trees, or its feature, does not exist`);
    const isMember = mode === MEMBER ? members.get(at)!.has(value) : holds(mode, value, splits[at]);
    at = (Number.isNaN(value) && missing[at]) || isMember ? yes[at] : no[at];
  }
  throw new NodeProblem("the nodes of a tree form a cycle");
}

type Aggregate = "SUM" | "AVERAGE" | "MIN" | "MAX";

/** Sums are rounded to float32 as in onnxruntime, because ties are common and must break the same way. */
const joins: Readonly<Record<Aggregate, (a: number, b: number) => number>> = {
  AVERAGE: (a, b) => Math.fround(a + b),
  MAX: Math.max,
  MIN: Math.min,
  SUM: (a, b) => Math.fround(a + b),
};

/** Aggregates the leaves' contributions for each row, [rows, targets]; undefined for a target without any. */
function totals(forest: Forest, x: Tensor, targets: number, aggregate: Aggregate): (number | undefined)[][] {
  const [rows, width] = tupleOf(x.shape, 2);
  const all = Array.from(x.dataSync(), Number);
  const join = joins[aggregate];
  return Array.from({ length: rows }, (_, row) => {
    const features = all.slice(row * width, (row + 1) * width);
    const result = new Array<number | undefined>(targets).fill(undefined);
    for (const root of forest.roots)
      for (const { target, weight } of leafOf(forest, root, features)) {
        if (!(target >= 0 && target < targets)) throw new NodeProblem(`target ${target} of ${targets} does not exist`);
        const before = result[target];
        result[target] = before === undefined ? weight : join(before, weight);
      }
    if (aggregate !== "AVERAGE") return result;
    return result.map((value) => value && value / forest.roots.length);
  });
}

const matrix = (rows: readonly (readonly number[])[], width: number): Tensor =>
  tensorOf(Float32Array.from(rows.flat()), { shape: [rows.length, width], dtype: "float32" });

/** The forest of each node, so that it is read only once. */
const known = new WeakMap<Attributes, Forest>();

function remembered(attributes: Attributes, make: () => Forest): Forest {
  const forest = known.get(attributes) ?? make();
  known.set(attributes, forest);
  return forest;
}

function isAggregate(name: string): name is Aggregate {
  return Object.hasOwn(joins, name);
}

function regressor(call: Call): Tensor {
  const { attributes } = call;
  const targets = attributes.number("n_targets", 1);
  const aggregate = attributes.text("aggregate_function", "SUM");
  if (!isAggregate(aggregate)) throw new NodeProblem(`attribute aggregate_function: ${aggregate} is not supported`);
  const base = numbers(attributes, "base_values") ?? [];
  const forest = remembered(attributes, () => forestOf(attributes, "target"));
  const sums = totals(forest, rowsAt(call), targets, aggregate);
  const scores = sums.map((row) => row.map((value = 0, at) => value + (base[at] ?? 0)));
  return transformed(matrix(scores, targets), attributes.text("post_transform", "NONE"));
}

function ensemble(call: Call): Tensor {
  const { attributes } = call;
  const targets = attributes.number("n_targets", 1);
  const aggregate = (["AVERAGE", "SUM", "MIN", "MAX"] as const)[attributes.number("aggregate_function", 1)];
  const transform = transformNames[attributes.number("post_transform", 0)];
  if (!aggregate || !transform) throw new NodeProblem("attribute aggregate_function or post_transform is not known");
  const x = rowsAt(call);
  const sums = totals(
    remembered(attributes, () => forestOfEnsemble(attributes)),
    x,
    targets,
    aggregate,
  );
  const scores = matrix(
    sums.map((row) => row.map((value = 0) => value)),
    targets,
  );
  return transformed(scores, transform).to(x.dtype);
}

/**
 * Classifies by the largest sum. Two classes may have one sum: a probability if all weights are positive; otherwise a
 * score with the threshold 0.
 */
function classifier(call: Call): Results {
  const { attributes } = call;
  const labels = classLabels(attributes);
  if (!labels) throw new NodeProblem("attributes classlabels_strings and classlabels_int64s are missing");
  const base = numbers(attributes, "base_values") ?? [];
  const transform = attributes.text("post_transform", "NONE");
  const forest = remembered(attributes, () => forestOf(attributes, "class"));
  const used = new Set(required(attributes, "class_ids"));
  const sums = totals(forest, rowsAt(call), labels.length, "SUM");
  if (labels.length === 2 && used.size === 1) {
    const [only] = used;
    const positive = required(attributes, "class_weights").every((weight) => weight >= 0);
    const scores = sums.map((row) => [(row[only] ?? 0) + (base.length === 2 ? base[1] : (base[0] ?? 0))]);
    const named = scores.map(([score = 0]) => labels[score > (positive ? 0.5 : 0) ? 1 : 0]);
    return new Results(labelsOf(named, [named.length]), binary(matrix(scores, 1), positive, transform));
  }
  const scores = sums.map((row) => row.map((value, at) => (value ?? 0) + (base[at] ?? 0)));
  const named = scores.map((row) => labels[row.indexOf(row.reduce((a, b) => Math.max(a, b)))] ?? labels[0]);
  return new Results(labelsOf(named, [named.length]), transformed(matrix(scores, labels.length), transform));
}

function binary(score: Tensor, isProbability: boolean, transform: string): Tensor {
  if (transform === "PROBIT") return transformed(score, transform);
  if (isProbability) return ofBoth(score, (x) => ops.sub(1, x));
  const both = ofBoth(score, (x) => ops.neg(x));
  return transform === "LOGISTIC" ? transformed(both, transform) : both;
}

export const treeOperators: Operators = {
  TreeEnsemble: ensemble,
  TreeEnsembleClassifier: classifier,
  TreeEnsembleRegressor: regressor,
};
