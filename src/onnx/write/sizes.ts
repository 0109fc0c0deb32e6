/**
 * Sizes that may vary. A module is recorded for several sizes of its inputs; the numbers in nodes that differ are
 * expressed as functions of the sizes, and verified with a further recording.
 */
import type { WrittenNode, WrittenTensor } from "./encode.ts";
import type { RecordedNode, Recorder } from "./recorder.ts";
import { Unwritable } from "./unwritable.ts";

/** A size that varies: an axis of an input. */
export interface VaryingSize {
  readonly name: string;
  readonly input: string;
  readonly axis: number;
}

/** A recording, and the varying sizes in it, in their order. */
export interface Recording {
  readonly recorder: Recorder;
  /** Shapes of the outputs. */
  readonly shapes: readonly (readonly number[])[];
  readonly sizes: readonly number[];
}

/** The recordings: with the first sizes, with each varying size changed alone, and with all of them changed. */
export interface Recordings {
  readonly first: Recording;
  /** A recording for each varying size, in the order of the sizes. */
  readonly others: readonly Recording[];
  /** A further recording, which verifies the expressions derived from the others. */
  readonly last: Recording | undefined;
}

/** constant + factor · Π sizes */
interface Expression {
  readonly constant: number;
  readonly factor: number;
  /** Indices of varying sizes. */
  readonly sizes: readonly number[];
}

interface Resolved {
  readonly nodes: WrittenNode[];
  readonly constants: WrittenTensor[];
  /** Shapes of the outputs. A size that varies is a name. */
  readonly shapes: readonly (readonly (number | string)[])[];
}

/** Returns a number as a function of the sizes. @throws {Unwritable} if a number is not a function of the sizes */
export function resolved({ first, others, last }: Recordings, varying: readonly VaryingSize[]): Resolved {
  const all = [first, ...others, ...(last ? [last] : [])];
  checkAlike(all);
  const result = new Resolving(varying);
  for (const [at, node] of first.recorder.nodes.entries()) {
    const inputs = node.inputs.map((input, index) => {
      if (typeof input === "string") return input;
      const lists = all.map(({ recorder }) => listOf(recorder.nodes[at], index));
      const expressions = input.sizes.map((_, place) =>
        expressionOf(
          all,
          lists.map((list) => list[place]),
        ),
      );
      return result.list(expressions, node.operator === "Reshape");
    });
    result.nodes.push({ operator: node.operator, inputs, outputs: node.outputs, attributes: node.attributes });
  }
  const constants = [...first.recorder.constants.values(), ...result.constants];
  const shapes = first.shapes.map((shape, output) =>
    shape.map((size, axis) => {
      const isSame = all.every(({ shapes: each }) => each[output]?.[axis] === size);
      return isSame ? size : sizeName(all, output, axis, varying);
    }),
  );
  return { nodes: result.nodes, constants, shapes };
}

/** Names a varying size after the input size that it equals, else after its output and axis. */
function sizeName(all: readonly Recording[], output: number, axis: number, varying: readonly VaryingSize[]): string {
  const equal = varying.findIndex((_, at) => all.every(({ shapes, sizes }) => shapes[output][axis] === sizes[at]));
  return varying[equal]?.name ?? `output_${output}_${axis}`;
}

function listOf({ inputs, operator }: RecordedNode, at: number): readonly number[] {
  const input = inputs[at];
  if (input === undefined || typeof input === "string") throw depends(operator);
  return input.sizes;
}

const depends = (what: string): Unwritable => new Unwritable(`${what}, which depends on a size that varies`);

/** All recordings must have the same nodes and constants. */
function checkAlike(all: readonly Recording[]): void {
  const [{ recorder: first }, ...others] = all as [Recording, ...Recording[]];
  for (const { recorder } of others) {
    for (const [at, node] of first.nodes.entries()) {
      const other = recorder.nodes[at];
      if (!other || shapeOf(node) !== shapeOf(other)) throw depends(`the operator ${node.operator}`);
    }
    if (recorder.nodes.length !== first.nodes.length) throw depends("the number of nodes");
    for (const [name, { shape, bytes }] of first.constants) {
      const other = recorder.constants.get(name);
      if (!other || `${other.shape}` !== `${shape}` || Buffer.compare(other.bytes, bytes) !== 0)
        throw depends(`a constant of shape [${shape.join(", ")}]`);
    }
  }
}

/** A node without the numbers that may vary. */
const shapeOf = ({ operator, inputs, outputs, attributes }: RecordedNode): string =>
  JSON.stringify([
    operator,
    outputs,
    attributes,
    inputs.map((each) => (typeof each === "string" ? each : each.sizes.length)),
  ]);

/** @param values the number in each recording */
function expressionOf([first, ...rest]: readonly Recording[], [value = 0, ...values]: readonly number[]): Expression {
  const { sizes } = first;
  const changed = sizes.map((_, at) => values[at] !== value);
  const used = sizes.flatMap((_, at) => (changed[at] ? [at] : []));
  const product = used.reduce((result, at) => result * sizes[at], 1);
  const candidates: Expression[] = [{ constant: 0, factor: value / product, sizes: used }];
  const [only] = used;
  if (used.length === 1 && only !== undefined) {
    const factor = (values[only] - value) / (rest[only].sizes[only] - sizes[only]);
    candidates.push({ constant: value - factor * sizes[only], factor, sizes: used });
  }
  const found = candidates.find(
    (each) =>
      Number.isInteger(each.factor) &&
      Number.isInteger(each.constant) &&
      rest.every((recording, at) => valueWith(each, recording.sizes) === values[at]),
  );
  if (!found) throw depends(`a size of ${value}`);
  return found;
}

const valueWith = ({ constant, factor, sizes }: Expression, given: readonly number[]): number =>
  constant + factor * sizes.reduce((product, at) => product * given[at], 1);

class Resolving {
  readonly nodes: WrittenNode[] = [];
  readonly constants: WrittenTensor[] = [];
  readonly #varying: readonly VaryingSize[];
  readonly #names = new Map<string, string>();

  constructor(varying: readonly VaryingSize[]) {
    this.#varying = varying;
  }

  /** Returns a list of numbers as int64. A shape may have one −1, which is inferred. */
  list(expressions: readonly Expression[], isShape: boolean): string {
    const varying = expressions.filter(({ sizes }) => sizes.length > 0);
    if (varying.length === 0) return this.#constant(expressions.map(valueWithoutSizes));
    const isZero = expressions.some((each) => each.sizes.length === 0 && each.constant + each.factor === 0);
    if (isShape && varying.length === 1 && !isZero)
      return this.#constant(expressions.map((each) => (each.sizes.length > 0 ? -1 : valueWithoutSizes(each))));
    return this.#made(
      `list ${JSON.stringify(expressions)}`,
      "Concat",
      expressions.map((each) => this.#value(each)),
      {
        axis: 0,
      },
    );
  }

  /** Returns a vector of one number. */
  #value({ constant, factor, sizes }: Expression): string {
    if (sizes.length === 0) return this.#constant([constant + factor]);
    const product = sizes.map((at) => this.#size(at)).reduce((a, b) => this.#made(`${a} * ${b}`, "Mul", [a, b]));
    const scaled =
      factor === 1 ? product : this.#made(`${product} * ${factor}`, "Mul", [product, this.#constant([factor])]);
    return constant === 0 ? scaled : this.#made(`${scaled} + ${constant}`, "Add", [scaled, this.#constant([constant])]);
  }

  #size(at: number): string {
    const { input, axis } = this.#varying[at];
    const shape = this.#made(`shape ${input}`, "Shape", [input]);
    return this.#made(`size ${input} ${axis}`, "Gather", [shape, this.#constant([axis])], { axis: 0 });
  }

  #made(key: string, operator: string, inputs: readonly string[], attributes: WrittenNode["attributes"] = {}): string {
    const existing = this.#names.get(key);
    if (existing !== undefined) return existing;
    const name = `size_${this.#names.size}`;
    this.#names.set(key, name);
    this.nodes.push({ operator, inputs, outputs: [name], attributes });
    return name;
  }

  #constant(list: readonly number[]): string {
    const key = `constant ${list}`;
    const existing = this.#names.get(key);
    if (existing !== undefined) return existing;
    const name = `sizes_${this.#names.size}`;
    this.#names.set(key, name);
    const bytes = new Uint8Array(BigInt64Array.from(list, BigInt).buffer);
    this.constants.push({ name, dtype: "int64", shape: [list.length], bytes });
    return name;
  }
}

const valueWithoutSizes = ({ constant, factor }: Expression): number => constant + factor;
