/** Records the nodes of a graph while a module computes. */
import { captured } from "../../backend/capture.ts";
import { contiguous } from "../../ops/copy/copy.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { bytesOf, type DType, isComplex } from "../../tensor/dtype.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Storage } from "../../tensor/storage.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { type Assembly, assembled } from "./assembly.ts";
import type { WrittenAttribute, WrittenTensor } from "./encode.ts";
import { Unwritable } from "./unwritable.ts";
import { gatheredView, viewSteps } from "./views.ts";

/** Integers that are an input of a node, and may depend on sizes of the model's inputs. */
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
export interface Recorded extends Layout {
  readonly name: string;
  readonly dtype: DType;
}

export class Recorder {
  readonly nodes: RecordedNode[] = [];
  readonly constants = new Map<string, WrittenTensor>();
  readonly #values = new Map<Storage, Recorded | Assembly>();
  readonly #views = new Map<string, string>();
  readonly #parameters = new Map<Storage, Recorded & { tensor: Tensor }>();
  readonly #fillings = new Map<Storage, number>();
  readonly #refused = new Map<Storage, string>();
  /** Storages with elements that do not depend on the inputs. */
  readonly #computed = new Set<Storage>();
  readonly #unsized = new Set<Storage>();
  /** The serial number of the first storage that is made during the recording. */
  readonly #start = captured(undefined, () => tensor([0]).storage.serial);
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
    this.#fillings.delete(storage);
    this.#refused.delete(storage);
    this.#values.set(storage, { name, shape, strides, offset, dtype });
  }

  /** Names a result whose size depends on values. It can only be an output of the graph. */
  setUnsized(tensor: Tensor, name: string): void {
    this.set(tensor, name);
    this.#unsized.add(tensor.storage);
  }

  isUnsized({ storage }: Tensor): boolean {
    return this.#unsized.has(storage);
  }

  /** Records that a tensor's value can't be written, and why, unless this was already reported. */
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
    return value ? this.view(value, tensor, tensor.dtype) : this.#constant(tensor);
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
    this.#values.delete(storage);
    this.#refused.delete(storage);
    this.#fillings.set(storage, value);
  }

  /** Records that the elements of a tensor do not depend on the inputs. */
  compute({ storage }: Tensor): void {
    this.#computed.add(storage);
  }

  /** Names an output of the graph. */
  output(name: string, tensor: Tensor): void {
    if (isComplex(tensor.dtype)) throw new Unwritable("complex results");
    const from = this.unsizedName(tensor) ?? this.name(tensor);
    this.nodes.push({ operator: "Identity", inputs: [from], outputs: [name], attributes: {} });
  }

  /** Returns the name of a result whose size depends on values, if the tensor is the whole result. */
  unsizedName({ storage, shape, strides, offset }: Tensor): string | undefined {
    const value = this.#unsized.has(storage) ? this.#values.get(storage) : undefined;
    if (!value || "parts" in value) return undefined;
    const isWhole = `${value.shape.slice(1)}` === `${shape.slice(1)}` && `${value.strides}` === `${strides}`;
    return isWhole && offset === value.offset ? value.name : undefined;
  }

  /** Adds a node with one result, and returns the result's name. */
  node(operator: string, inputs: readonly (string | Sizes)[], attributes: RecordedNode["attributes"] = {}): string {
    return this.nodeOf(operator, inputs, attributes, 1)[0];
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
    const values = dtype === "int64" || dtype === "float64" ? list : Float32Array.from(list);
    const given = captured(undefined, () => tensor(values as number[], { dtype }));
    return this.#addConstant(dtype, shape, elementBytes(given));
  }

  scalar(value: number, dtype: DType): string {
    return this.numbers([value], [], dtype);
  }

  /** Records that a part of a storage is written. The value is assembled from its parts when it is read. */
  write(target: Tensor, name: string): void {
    const { storage, dtype, shape, strides, offset } = target;
    const existing = this.#values.get(storage);
    const isAssembly = existing !== undefined && "parts" in existing;
    const assembly = isAssembly ? existing : { dtype, filling: existing ?? this.#fillingOf(storage, dtype), parts: [] };
    assembly.parts.push({ layout: { shape, strides, offset }, name });
    this.#values.set(storage, assembly);
  }

  /**
   * The elements of a storage before a part is written. A new storage may start with any elements, because they are
   * overwritten.
   */
  #fillingOf(storage: Storage, dtype: DType): number | Recorded {
    if (this.#parameters.has(storage)) throw new Unwritable("an update of a parameter or buffer in place");
    const filling = this.#fillings.get(storage);
    const isNew = storage.serial >= this.#start && !this.#computed.has(storage) && !storage.isBorrowed;
    if (filling !== undefined || isNew) return filling ?? 0;
    const shape = [storage.memory.byteLength / bytesOf(dtype)];
    const layout = { shape, strides: [1], offset: 0 };
    const whole = new Tensor(storage, dtype, shape, layout.strides, 0);
    return { ...layout, name: this.#addConstant(dtype, shape, elementBytes(whole)), dtype };
  }

  #valueOf(tensor: Tensor): Recorded | undefined {
    if (this.isUnsized(tensor)) throw new Unwritable("a size that depends on values, other than a result's");
    const reason = this.#refused.get(tensor.storage);
    if (reason !== undefined) throw new Unwritable(reason);
    const value = this.#values.get(tensor.storage);
    if (value && "parts" in value) {
      const whole = assembled(this, value, tensor.storage.memory.byteLength / bytesOf(value.dtype));
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
    if (filling !== undefined && tensor.rank > 0) return this.filled(filling, tensor.dtype, tensor.shape);
    const { storage, dtype, shape, strides, offset } = tensor;
    const sizes = shape.map((size, axis) => (strides[axis] === 0 ? 1 : size));
    const name = this.#addConstant(dtype, sizes, elementBytes(new Tensor(storage, dtype, sizes, strides, offset)));
    return `${sizes}` === `${shape}` ? name : this.node("Expand", [name, { sizes: shape }]);
  }

  /** A value whose elements are all the same. */
  filled(value: number, dtype: DType, sizes: readonly number[]): string {
    return this.node("Expand", [this.scalar(value, dtype), { sizes }]);
  }

  #addConstant(dtype: DType, shape: readonly number[], bytes: Uint8Array, name = `constant_${this.#count++}`): string {
    this.constants.set(name, { name, dtype, shape, bytes });
    return name;
  }

  /** Returns the name of a view of a value. */
  view(value: Recorded, view: Layout, dtype: DType): string {
    if (value.dtype !== dtype) throw new Unwritable("a view of another dtype");
    const key = `${value.name} ${view.shape} ${view.strides} ${view.offset - value.offset}`;
    const existing = this.#views.get(key);
    if (existing !== undefined) return existing;
    if (elementCount(view.shape) === 0) return this.filled(0, dtype, view.shape);
    const steps = viewSteps(value, view) ?? gatheredView(value, view);
    const name = steps.reduce((from, step) => {
      if (step.operator === "Transpose") return this.node("Transpose", [from], { perm: step.permutation });
      if (step.operator === "Gather") {
        const { places, shape, axis } = step;
        return this.node("Gather", [from, this.numbers(places, shape, "int64")], { axis });
      }
      if (step.operator !== "Slice") return this.node(step.operator, [from, { sizes: step.sizes }]);
      const range = [{ sizes: step.starts }, { sizes: step.ends }, { sizes: step.axes }];
      return this.node("Slice", [from, ...range, ...(step.steps ? [{ sizes: step.steps }] : [])]);
    }, value.name);
    this.#views.set(key, name);
    return name;
  }
}

const rowMajor = (shape: readonly number[]): number[] =>
  shape.map((_, axis) => shape.slice(axis + 1).reduce((product, size) => product * size, 1));

/** The elements of a tensor in row-major order. */
function elementBytes(tensor: Tensor): Uint8Array {
  return captured(undefined, () => {
    const dense = contiguous(tensor);
    const size = bytesOf(tensor.dtype);
    return dense.storage.memory.hostBytes().slice(dense.offset * size, (dense.offset + dense.size) * size);
  });
}
