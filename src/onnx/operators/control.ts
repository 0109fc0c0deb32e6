/** Operators for branches and loops, sequences and optionals. */

import { tensor } from "../../ops/creation/tensor.ts";
import * as ops from "../../ops/index.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { type Call, numbersOf, type Operators, Results, type Value } from "../call.ts";
import { NodeProblem } from "../errors.ts";
import type { OutputType } from "../graph.ts";
import { axisOf } from "./axes.ts";

const choose = (call: Call): Results => {
  const isTrue = call.number(0) !== 0;
  return new Results(...call.run(call.attributes.graph(isTrue ? "then_branch" : "else_branch"), []));
};

/** Maximum number of iterations of a loop without a count. */
const MOST_ITERATIONS = 1e9;

/**
 * The results are the values carried from one iteration to the next, followed by the stacked results of all iterations.
 */
function loop(call: Call): Results {
  const body = call.attributes.graph("body");
  const most = call.number(0) ?? MOST_ITERATIONS;
  let condition = call.optional(1) === undefined || call.number(1) !== 0;
  let carried = call.inputs.slice(2);
  const scans: Value[][] = Array.from({ length: body.outputs.length - 1 - carried.length }, () => []);
  for (let at = 0; at < most && condition; at++) {
    const counter = tensor(BigInt(at), { dtype: "int64" });
    const [again, ...results] = call.run(body, [counter, tensor(condition), ...carried]);
    condition = again instanceof Tensor ? numbersOf(again)[0] !== 0 : true;
    const count = carried.length;
    carried = results.slice(0, count);
    for (const [scan, list] of scans.entries()) list.push(results[count + scan]);
  }
  const types = body.outputTypes.slice(1 + carried.length);
  return new Results(...carried, ...scans.map((list, index) => stacked(list, 0, types[index])));
}

/** Stacks tensors along a new axis. If there are none, the declared type of the output gives the other axes. */
function stacked(list: readonly Value[], dim: number, type?: OutputType): Tensor {
  if (list.length > 0) return ops.stack(list as readonly Tensor[], { dim });
  return ops.zeros((type?.shape ?? []).toSpliced(dim, 0, 0), { dtype: type?.dtype ?? "float32" });
}

/** Runs a graph over slices of the inputs along an axis. The last `num_scan_inputs` inputs are cut into slices. */
function scan(call: Call): Results {
  if (call.opset < 9) return scanBatches(call);
  const body = call.attributes.graph("body");
  const cut = call.attributes.number("num_scan_inputs");
  return scanOnce(call, call.inputs.slice(0, -cut), call.inputs.slice(-cut) as Tensor[], {
    body,
    ...axesAndDirections(call, cut, body.outputs.length - (call.inputs.length - cut)),
  });
}

interface ScanPlan {
  readonly body: ReturnType<Call["attributes"]["graph"]>;
  readonly inputAxes: readonly number[];
  readonly outputAxes: readonly number[];
  readonly inputReversed: readonly boolean[];
  readonly outputReversed: readonly boolean[];
}

function axesAndDirections(call: Call, inputs: number, outputs: number): Omit<ScanPlan, "body"> {
  const list = (name: string, length: number) => call.attributes.numbers(name) ?? new Array<number>(length).fill(0);
  return {
    inputAxes: list("scan_input_axes", inputs),
    outputAxes: list("scan_output_axes", outputs),
    inputReversed: list("scan_input_directions", inputs).map((each) => each !== 0),
    outputReversed: list("scan_output_directions", outputs).map((each) => each !== 0),
  };
}

function scanOnce(call: Call, state: readonly Value[], sources: readonly Tensor[], plan: ScanPlan): Results {
  const axes = sources.map((source, at) => axisOf(plan.inputAxes[at], source.rank));
  const length = sources[0].shape[axes[0]];
  let carried = state;
  const lists: Tensor[][] = plan.outputAxes.map(() => []);
  for (let at = 0; at < length; at++) {
    const slices = sources.map((source, index) =>
      ops.select(source, axes[index], plan.inputReversed[index] ? length - 1 - at : at),
    );
    const results = call.run(plan.body, [...carried, ...slices]);
    carried = results.slice(0, state.length);
    for (const [index, list] of lists.entries()) list.push(results[state.length + index] as Tensor);
  }
  const scans = lists.map((list, index) => {
    const ordered = plan.outputReversed[index] ? list.toReversed() : list;
    const type = plan.body.outputTypes[state.length + index];
    return stacked(ordered, axisOf(plan.outputAxes[index], (ordered[0]?.rank ?? type?.shape.length ?? 0) + 1), type);
  });
  return new Results(...carried, ...scans);
}

/** In version 8, all values have a batch as their first axis, and an optional input gives the lengths of sequences. */
function scanBatches(call: Call): Results {
  if (call.optional(0)) throw new NodeProblem("lengths of sequences, of version 8, are not supported");
  const body = call.attributes.graph("body");
  const cut = call.attributes.number("num_scan_inputs");
  const given = call.inputs.slice(1) as Tensor[];
  const [state, sources] = [given.slice(0, -cut), given.slice(-cut)];
  const outputs = body.outputs.length - state.length;
  const zeros = (count: number) => new Array<number>(count).fill(0);
  const reversed = (call.attributes.numbers("directions") ?? zeros(cut)).map((each) => each !== 0);
  const plan = { body, inputAxes: zeros(cut), outputAxes: zeros(outputs), inputReversed: reversed };
  const batches = Array.from({ length: sources[0].shape[0] }, (_, at) => {
    const part = (x: Tensor) => ops.select(x, 0, at);
    return scanOnce(call, state.map(part), sources.map(part), {
      ...plan,
      outputReversed: zeros(outputs).map(() => false),
    });
  });
  return new Results(
    ...batches[0].values.map((_, index) =>
      stacked(
        batches.map(({ values }) => values[index]),
        0,
      ),
    ),
  );
}

/** Returns a position in a sequence. A negative one counts from the end. */
function placeIn(list: readonly Value[], at: number, most: number): number {
  const place = at < 0 ? at + list.length : at;
  if (place < 0 || place > most)
    throw new NodeProblem(`expected an index in a sequence of ${list.length} elements, got ${at}`);
  return place;
}

function splitToSequence(call: Call): readonly Tensor[] {
  const x = call.tensor(0);
  const dim = axisOf(call.attributes.number("axis", 0), x.rank);
  const size = x.shape[dim];
  const given = call.optional(1);
  if (!given) {
    const parts = ops.split(x, 1, { dim });
    return call.attributes.flag("keepdims", true) ? parts : parts.map((part) => ops.squeeze(part, dim));
  }
  const [first, ...others] = numbersOf(given);
  if (given.rank > 0) return ops.split(x, [first, ...others], { dim });
  const count = Math.ceil(size / first);
  const sizes = Array.from({ length: count }, (_, at) => Math.min(first, size - at * first));
  return ops.split(x, sizes, { dim });
}

function concatFromSequence(call: Call): Tensor {
  const list = call.sequence(0) as readonly Tensor[];
  const dim = call.attributes.number("axis");
  return call.attributes.flag("new_axis") ? ops.stack(list, { dim }) : ops.cat(list, { dim });
}

function sequenceMap(call: Call): Results {
  const body = call.attributes.graph("body");
  const list = call.sequence(0);
  const rows = list.map((_, at) =>
    call.run(
      body,
      call.inputs.map((input) => (Array.isArray(input) ? input[at] : input)),
    ),
  );
  return new Results(...body.outputs.map((_, index) => rows.map((row) => row[index])));
}

export const control: Operators = {
  ConcatFromSequence: concatFromSequence,
  If: choose,
  Loop: loop,
  Optional: (call) => call.inputs[0],
  OptionalGetElement: (call) => {
    if (call.inputs[0] === undefined) throw new NodeProblem("the optional is empty");
    return call.inputs[0];
  },
  OptionalHasElement: (call) => tensor(call.inputs[0] !== undefined),
  Scan: scan,
  SequenceAt: (call) => {
    const list = call.sequence(0);
    return list[placeIn(list, call.number(1)!, list.length - 1)];
  },
  SequenceConstruct: (call) => call.inputs,
  SequenceEmpty: () => [],
  SequenceErase: (call) => {
    const list = call.sequence(0);
    return list.toSpliced(placeIn(list, call.number(1) ?? -1, list.length - 1), 1);
  },
  SequenceInsert: (call) => {
    const list = call.sequence(0);
    return list.toSpliced(placeIn(list, call.number(2) ?? list.length, list.length), 0, call.inputs[1]);
  },
  SequenceLength: (call) => tensor(BigInt(call.sequence(0).length), { dtype: "int64" }),
  SequenceMap: sequenceMap,
  SplitToSequence: splitToSequence,
};
