import { noGrad } from "../autograd/modes.ts";
import { ArgumentError } from "../core/errors.ts";
import { counted } from "../core/plural.ts";
import { nearestName } from "../core/suggestion.ts";
import { Module } from "../nn/layers/module.ts";
import type { QuantizedTensor } from "../quant/quantized_tensor.ts";
import { bytesOf, isFloat } from "../tensor/dtype.ts";
import { elementCount } from "../tensor/shape.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { Value } from "./call.ts";
import type { Graph, Step } from "./graph.ts";
import { kept } from "./kept_types.ts";
import { floats, type OnnxFloat } from "./one_dtype.ts";
import { Plans } from "./plan/plans.ts";
import { isStrings } from "./strings.ts";
import { keptTypeOfName } from "./tensors.ts";

/** An input or output of an ONNX model. */
export interface OnnxValue {
  readonly name: string;
  /** The element type's name in ONNX, such as `"float"`; undefined for sequences and optionals. */
  readonly type: string | undefined;
  /**
   * The sizes: a number, a name for a size that may vary, or null for an unknown size. Undefined if the rank is
   * unknown.
   */
  readonly shape: readonly (number | string | null)[] | undefined;
}

/**
 * A value that a model takes or returns: a tensor, strings, a sequence of values, a map from labels to numbers, or
 * undefined for an empty optional.
 */
export type OnnxTensorOrSequence = Value;

/** The parts of a model. */
interface Parts {
  readonly graph: Graph;
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  /** Names of the file's tensors that training changes. */
  readonly trainable: ReadonlySet<string>;
  readonly quantized: Map<string, QuantizedTensor>;
  readonly metadata: ReadonlyMap<string, string>;
  /** The dtype that the option `dtype` chose; undefined without the option. */
  readonly dtype: OnnxFloat | undefined;
}

/**
 * A model from an ONNX file, made by {@link loadOnnx}. It is a module: its weights are in `stateDict()` under their
 * names in the file, with the prefix `weights.`, and train like those of any other module.
 *
 * @example
 * const model = await io.loadOnnx("classifier.onnx");
 * const { logits } = await model.run({ image: tensor(pixels, { shape: [1, 3, 224, 224] }) });
 */
export class OnnxModel extends Module<[inputs: Readonly<Record<string, Value>>], Record<string, Value>> {
  /** The file's tensors by name: those that train require gradients. */
  readonly weights: Map<string, Tensor>;
  /** Weights that the option `quantize` converted, by their names in the file. They don't train. */
  readonly quantizedWeights: ReadonlyMap<string, QuantizedTensor>;
  readonly #parts: Parts;
  /** The element types of inputs whose type has no dtype, by the input's name. */
  readonly #keptTypes: ReadonlyMap<string, number>;
  readonly #plans = new Plans();

  /** @internal Use {@link loadOnnx}. */
  constructor(parts: Parts) {
    super();
    this.#parts = parts;
    const trains = (name: string, x: Tensor) => parts.trainable.has(name) && isFloat(x.dtype);
    this.weights = new Map(parts.graph.constants);
    this.quantizedWeights = parts.quantized;
    this.#keptTypes = new Map(
      parts.inputs.flatMap(({ name, type }) => {
        const number = type === undefined ? undefined : keptTypeOfName(type);
        return number === undefined ? [] : [[name, number] as const];
      }),
    );
    for (const [name, x] of this.weights) if (trains(name, x)) x.requiresGrad = true;
  }

  /** The inputs, with their names, element types and shapes. */
  get inputs(): readonly OnnxValue[] {
    return this.#parts.inputs;
  }

  /** The file's metadata: texts by key, such as the names of classes. */
  get metadata(): ReadonlyMap<string, string> {
    return this.#parts.metadata;
  }

  /** The outputs, with their names, element types and shapes. */
  get outputs(): readonly OnnxValue[] {
    return this.#parts.outputs;
  }

  /**
   * Computes the outputs by name, and records operations for gradients.
   *
   * @throws {ArgumentError} for a missing or unknown input. @throws {OnnxError} if a node can't be computed.
   */
  forward(inputs: Readonly<Record<string, Value>>): Record<string, Value> {
    this.#checkInputs(inputs);
    return this.#outputs(this.#parts.graph.run(this.#values(inputs), undefined, this.weights));
  }

  /**
   * Computes the outputs by name, without gradients. From the second call for inputs of the same shapes on, it runs a
   * plan for these shapes: sizes and conditions are computed once, nodes are fused, and each intermediate result is
   * freed after its last use.
   *
   * @throws as {@link forward}
   */
  async run(inputs: Readonly<Record<string, Value>>): Promise<Record<string, Value>> {
    this.#checkInputs(inputs);
    return noGrad(() => this.#outputs(this.#plans.run(this.#parts.graph, this.#values(inputs), this.weights)));
  }

  /** Returns the inputs in the graph's order. Converts floating-point tensors to the dtype of the option `dtype`. */
  #values(inputs: Readonly<Record<string, Value>>): Value[] {
    const { graph, dtype } = this.#parts;
    return graph.inputs.map((name) => {
      const value = inputs[name];
      const type = this.#keptTypes.get(name);
      if (type !== undefined && value instanceof Tensor) return kept(value, type);
      const isOther = dtype !== undefined && value instanceof Tensor && floats.has(value.dtype);
      return isOther ? value.to(dtype) : value;
    });
  }

  /** Returns the outputs by name. Converts half precision to the types that the file declares. */
  #outputs(results: readonly Value[]): Record<string, Value> {
    const { graph, dtype } = this.#parts;
    const declared = (value: Value, at: number): Value => {
      const type = graph.outputTypes[at]?.dtype;
      if (dtype === undefined || type === undefined || !(value instanceof Tensor)) return value;
      const isOther = floats.has(type) && floats.has(value.dtype) && bytesOf(type) > bytesOf(value.dtype);
      return isOther ? value.to(type) : value;
    };
    return Object.fromEntries(graph.outputs.map((name, at) => [name, declared(results[at], at)]));
  }

  /**
   * Describes the model in lines: inputs, outputs, the number of nodes of each operator, and the weights.
   *
   * @example
   * console.log(model.summary());
   */
  override summary(): string {
    const { graph, inputs, outputs } = this.#parts;
    const line = ({ name, type = "a sequence or optional", shape }: OnnxValue) =>
      `  ${name}: ${type}${shape ? `[${shape.map((size) => size ?? "?").join(", ")}]` : ""}`;
    const counts = [...Map.groupBy(allSteps(graph), ({ operator }) => operator)]
      .map(([operator, steps]) => [operator, steps.length] as const)
      .sort(([a, m], [b, n]) => n - m || a.localeCompare(b));
    const [sizes, quantized] = [[...this.weights.values()], [...this.quantizedWeights.values()]];
    const bytes =
      sizes.reduce((sum, x) => sum + x.size * bytesOf(x.dtype), 0) +
      quantized.reduce((sum, { byteLength }) => sum + byteLength, 0);
    return [
      "inputs",
      ...inputs.map(line),
      "outputs",
      ...outputs.map(line),
      `operators: ${counts.map(([operator, count]) => `${operator} ${count}`).join(", ")}`,
      `weights: ${counted(sizes.length + quantized.length, "tensor")}, ${(bytes / 1e6).toFixed(1)} MB`,
    ].join("\n");
  }

  /**
   * Draws the graph as an SVG document: a box for each node with the shapes of its weights, from the inputs down to the
   * outputs. Graphs inside nodes, such as the branches of `If`, are not drawn.
   *
   * @example
   * await Bun.write("model.svg", await model.toSvg());
   */
  async toSvg(): Promise<string> {
    const { drawGraph } = await import("./picture.ts");
    const { graph, inputs, outputs } = this.#parts;
    return drawGraph({ steps: graph.steps, inputs, outputs, constants: this.weights });
  }

  #checkInputs(inputs: Readonly<Record<string, Value>>): void {
    const names = this.#parts.graph.inputs;
    const list = names.map((name) => `"${name}"`).join(", ");
    for (const name of Object.keys(inputs)) {
      if (names.includes(name)) continue;
      const near = nearestName(name, names);
      const hint = near === undefined ? `the inputs are ${list}` : `did you mean "${near}"?`;
      throw new ArgumentError("OnnxModel", "unknownInput", `there is no input "${name}"; ${hint}`);
    }
    for (const [name, value] of Object.entries(inputs))
      if (isStrings(value) && value.strings.length !== elementCount(value.shape))
        throw new ArgumentError(
          "OnnxModel",
          "invalidStrings",
          `input "${name}": expected ${elementCount(value.shape)} strings for shape [${value.shape}], got ` +
            `${value.strings.length}`,
        );
    for (const name of names)
      if (!Object.hasOwn(inputs, name))
        throw new ArgumentError("OnnxModel", "missingInput", `the input "${name}" is missing; the inputs are ${list}`);
  }
}

/** The steps of a graph and of the graphs inside it. */
const allSteps = (graph: Graph): Step[] =>
  graph.steps.flatMap((step) => [step, ...step.attributes.graphs().flatMap(allSteps)]);
