/** Records the nodes of a graph while a module computes. */
import { captured } from "../../backend/capture.ts";
import { contiguous } from "../../ops/copy/copy.ts";
import { bytesOf, type DType } from "../../tensor/dtype.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Storage } from "../../tensor/storage.ts";
import { Tensor } from "../../tensor/tensor.ts";
import type { WrittenAttribute, WrittenTensor } from "./encode.ts";
import { viewSteps } from "./views.ts";

/** Whole numbers, as an input of a node, that may depend on sizes of the model's inputs. */
export interface Sizes {
  readonly sizes: readonly number[];
}

export interface RecordedNode {
  readonly operator: string;
  readonly inputs: readonly (string | Sizes)[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, WrittenAttribute>>;
}

export interface Layout {
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  readonly offset: number;
}

/** A value of the graph: all elements of a storage. */
interface Recorded extends Layout {
  readonly name: string;
  readonly dtype: DType;
}

/** A storage into which parts are written, as `cat` does. */
interface Assembly {
  readonly dtype: DType;
  /** The value of elements that are in no part. */
  readonly filling: number | undefined;
  readonly parts: { readonly layout: Layout; readonly name: string }[];
}

/** An operation that can't be written. Without a message, it follows from another one. */
export class Unwritable extends Error {}

export class Recorder {
  readonly nodes: RecordedNode[] = [];
  readonly constants = new Map<string, WrittenTensor>();
  readonly #values = new Map<Storage, Recorded | Assembly>();
  readonly #views = new Map<string, string>();
  readonly #parameters = new Map<Storage, Recorded & { tensor: Tensor }>();
  readonly #fillings = new Map<Storage, number>();
  readonly #refused = new Map<Storage, string>();
  #count = 0;

  /** @param parameters tensors that become constants with their names */
  constructor(parameters: Readonly<Record<string, Tensor>>) {
    for (const [name, tensor] of Object.entries(parameters)) {
      const { shape, strides, offset, dtype } = tensor;
      this.#parameters.set(tensor.storage, { name, shape, strides, offset, dtype, tensor });
    }
  }

  /** Names an input, or the result of a node that has the tensor's shape. */
  set({ storage, shape, strides, offset, dtype }: Tensor, name: string): void {
    this.#values.set(storage, { name, shape, strides, offset, dtype });
  }

  /** Records that a tensor's value can't be written, and why, unless that is reported already. */
  refuse({ storage }: Tensor, reason: string): void {
    this.#refused.set(storage, reason);
  }

  /** Whether a tensor depends on the inputs. */
  isVariable({ storage }: Tensor): boolean {
    return this.#values.has(storage) || this.#refused.has(storage);
  }

  /** Returns the name of a tensor's value, with nodes for a view. */
  name(tensor: Tensor): string {
    const value = this.#valueOf(tensor);
    return value ? this.#viewOf(value, tensor, tensor.dtype) : this.#constant(tensor);
  }

  /** As {@link name}, but repeated axes have size 1: for operators that broadcast. */
  broadcastName(tensor: Tensor): string {
    const { storage, dtype, strides, offset } = tensor;
    if (strides.every((stride) => stride !== 0)) return this.name(tensor);
    const shape = tensor.shape.map((size, axis) => (strides[axis] === 0 ? 1 : size));
    return this.name(new Tensor(storage, dtype, shape, strides, offset));
  }

  /** Records that all elements of a storage are a number, until parts are written. */
  fill({ storage }: Tensor, value: number): void {
    this.#fillings.set(storage, value);
  }

  /** Names an output of the graph. */
  output(name: string, tensor: Tensor): void {
    this.nodes.push({ operator: "Identity", inputs: [this.name(tensor)], outputs: [name], attributes: {} });
  }

  /** Adds a node with one result, and returns the result's name. */
  node(operator: string, inputs: readonly (string | Sizes)[], attributes: RecordedNode["attributes"] = {}): string {
    return this.nodeOf(operator, inputs, attributes, 1)[0]!;
  }

  /** Adds a node with several results. */
  nodeOf(
    operator: string,
    inputs: readonly (string | Sizes)[],
    attributes: RecordedNode["attributes"],
    results: number,
  ): string[] {
    const outputs = Array.from({ length: results }, () => `${operator}_${this.#count++}`);
    this.nodes.push({ operator, inputs, outputs, attributes });
    return outputs;
  }

  /** Adds a constant of numbers. */
  numbers(list: readonly number[], shape: readonly number[], dtype: DType): string {
    const arrays = { float32: Float32Array, float64: Float64Array, int32: Int32Array } as const;
    const values = dtype === "int64" ? BigInt64Array.from(list, BigInt) : new (arrayFor(arrays, dtype))(list);
    return this.#addConstant(dtype, shape, new Uint8Array(values.buffer));
  }

  scalar(value: number, dtype: DType): string {
    return this.numbers([value], [], dtype);
  }

  /** Records that a part of a storage is written, from which a value is put together when it is read. */
  write(target: Tensor, name: string): void {
    const existing = this.#values.get(target.storage);
    if (existing && !("parts" in existing)) throw new Unwritable("an update of a part in place");
    const assembly = existing ?? { dtype: target.dtype, filling: this.#fillings.get(target.storage), parts: [] };
    const { shape, strides, offset } = target;
    assembly.parts.push({ layout: { shape, strides, offset }, name });
    this.#values.set(target.storage, assembly);
  }

  #valueOf(tensor: Tensor): Recorded | undefined {
    const reason = this.#refused.get(tensor.storage);
    if (reason !== undefined) throw new Unwritable(reason);
    const value = this.#values.get(tensor.storage);
    if (value && "parts" in value) {
      const whole = this.#assembled(value, tensor);
      this.#values.set(tensor.storage, whole);
      return whole;
    }
    return value ?? this.#parameter(tensor.storage);
  }

  #parameter(storage: Storage): Recorded | undefined {
    const found = this.#parameters.get(storage);
    if (found && !this.constants.has(found.name))
      this.#addConstant(found.dtype, found.shape, elementBytes(found.tensor), found.name);
    return found && { ...found, strides: rowMajor(found.shape), offset: found.offset };
  }

  #constant(tensor: Tensor): string {
    const filling = this.#fillings.get(tensor.storage);
    if (filling !== undefined && tensor.rank > 0) return this.#filled(filling, tensor.dtype, tensor.shape);
    return this.#addConstant(tensor.dtype, tensor.shape, elementBytes(tensor));
  }

  #filled(value: number, dtype: DType, sizes: readonly number[]): string {
    return this.node("Expand", [this.scalar(value, dtype), { sizes }]);
  }

  #addConstant(dtype: DType, shape: readonly number[], bytes: Uint8Array, name = `constant_${this.#count++}`): string {
    this.constants.set(name, { name, dtype, shape, bytes });
    return name;
  }

  #viewOf(value: Recorded, view: Layout, dtype: DType): string {
    if (value.dtype !== dtype) throw new Unwritable("a view of another dtype");
    const key = `${value.name} ${view.shape} ${view.strides} ${view.offset - value.offset}`;
    const existing = this.#views.get(key);
    if (existing !== undefined) return existing;
    const steps = elementCount(view.shape) === 0 ? undefined : viewSteps(value, view);
    if (!steps) throw new Unwritable("a view whose elements overlap, or that has none");
    const name = steps.reduce((from, step) => {
      if (step.operator === "Transpose") return this.node("Transpose", [from], { perm: step.permutation });
      if (step.operator !== "Slice") return this.node(step.operator, [from, { sizes: step.sizes }]);
      return this.node("Slice", [from, { sizes: step.starts }, { sizes: step.ends }, { sizes: step.axes }]);
    }, value.name);
    this.#views.set(key, name);
    return name;
  }

  /** Joins the parts of a storage along one axis after the other. */
  #assembled({ dtype, filling, parts }: Assembly, { storage }: Tensor): Recorded {
    const { strides } = parts[0]!.layout;
    const boxes = parts.map(({ layout, name }) => {
      let rest = layout.offset;
      const starts = strides.map((stride) => {
        const start = Math.floor(rest / stride);
        rest -= start * stride;
        return start;
      });
      return { starts, ends: starts.map((start, axis) => start + layout.shape[axis]!), name, strides: layout.strides };
    });
    const count = storage.memory.byteLength / bytesOf(dtype);
    const shape = strides.map((stride, axis) => (axis === 0 ? count : strides[axis - 1]!) / stride);
    const isSound = shape.every(Number.isInteger) && boxes.every((box) => `${box.strides}` === `${strides}`);
    if (!isSound) throw new Unwritable("an update of parts in place");
    const range = { starts: shape.map(() => 0), ends: shape };
    const fill = (sizes: readonly number[]) => {
      if (filling === undefined) throw new Unwritable("a tensor of which parts are not set");
      return this.#filled(filling, dtype, sizes);
    };
    return { name: this.#joined(boxes, range, 0, fill), dtype, shape, strides, offset: 0 };
  }

  #joined(boxes: readonly Box[], range: Range, axis: number, fill: (sizes: readonly number[]) => string): string {
    const { starts, ends } = range;
    if (boxes.length === 0) return fill(ends.map((end, at) => end - starts[at]!));
    if (axis === starts.length) {
      if (boxes.length === 1) return boxes[0]!.name;
      throw new Unwritable("an update of parts in place");
    }
    const edges = [starts[axis]!, ends[axis]!, ...boxes.flatMap((box) => [box.starts[axis]!, box.ends[axis]!])];
    const cuts = [...new Set(edges)].sort((a, b) => a - b);
    const names = cuts.slice(0, -1).map((start, at) => {
      const end = cuts[at + 1]!;
      const inside = boxes.filter((box) => box.starts[axis]! < end && box.ends[axis]! > start);
      if (inside.some((box) => box.starts[axis]! !== start || box.ends[axis]! !== end))
        throw new Unwritable("an update of parts in place");
      return this.#joined(inside, { starts: starts.with(axis, start), ends: ends.with(axis, end) }, axis + 1, fill);
    });
    return names.length === 1 ? names[0]! : this.node("Concat", names, { axis });
  }
}

interface Range {
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

interface Box extends Range {
  readonly name: string;
}

const rowMajor = (shape: readonly number[]): number[] =>
  shape.map((_, axis) => shape.slice(axis + 1).reduce((product, size) => product * size, 1));

function arrayFor<Arrays extends object>(arrays: Arrays, dtype: DType): Arrays[keyof Arrays] {
  if (!Object.hasOwn(arrays, dtype)) throw new Unwritable(`constants of ${dtype}`);
  return arrays[dtype as keyof Arrays];
}

/** The elements of a tensor in row-major order. */
function elementBytes(tensor: Tensor): Uint8Array {
  return captured(undefined, () => {
    const dense = contiguous(tensor);
    const size = bytesOf(tensor.dtype);
    return dense.storage.memory.hostBytes().slice(dense.offset * size, (dense.offset + dense.size) * size);
  });
}
