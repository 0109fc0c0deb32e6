/** Builds graphs from the messages of a file. */
import { FileFormatError } from "../core/errors.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { AttributeValue } from "./attributes.ts";
import { type Operator, Results } from "./call.ts";
import { attributesOf, Graph, inOrder, type OutputType, type Step } from "./graph.ts";
import { operatorNamed } from "./operators/index.ts";
import type {
  AttributeProto,
  FunctionProto,
  GraphProto,
  ModelProto,
  NodeProto,
  TensorProto,
  ValueProto,
} from "./schema.ts";
import { type Storing, storeWeights } from "./storing.ts";
import { isStrings, type OnnxStrings } from "./strings.ts";
import { elementType, type FilePlace, toValue } from "./tensors.ts";

/** The enclosing scope that the nodes of a graph or function refer to. */
interface Context {
  readonly place: FilePlace;
  readonly opsets: ReadonlyMap<string, number>;
  readonly functions: ReadonlyMap<string, FunctionProto>;
  /** The attributes of the call, inside a function. */
  readonly attributes: ReadonlyMap<string, AttributeValue>;
  /** The enclosing functions, since a function must not call itself. */
  readonly within: readonly string[];
  readonly storing: Storing;
}

const unchanged = (): Storing => ({ dtype: undefined, format: undefined, precision: "exact", quantized: new Map() });

/** The standard's domain has two names. */
const domainOf = (name: string): string => (name === "ai.onnx" ? "" : name);
const keyOf = (domain: string, name: string, overload: string): string => `${domainOf(domain)}:${name}:${overload}`;

/**
 * Builds a model's graph.
 *
 * @throws {FileFormatError} for a damaged graph, or unsupported operators
 */
export function buildModel(model: ModelProto, place: FilePlace, storing: Storing = unchanged()): Graph {
  if (!model.graph) throw damaged(place, "it has no graph");
  const opsets = new Map(model.opsets.map(({ domain, version }) => [domainOf(domain), version]));
  const functions = new Map(model.functions.map((each) => [keyOf(each.domain, each.name, each.overload), each]));
  const context = { place, opsets, functions, attributes: new Map(), within: [], storing };
  checkSupported(model, context);
  return buildGraph(model.graph, context);
}

const damaged = ({ path }: FilePlace, message: string): FileFormatError =>
  new FileFormatError("loadOnnx", "damaged", path, message);

/** Lists everything that is missing at once, before any weight is read. */
function checkSupported(model: ModelProto, { place, functions }: Context): void {
  const missing = new Set<string>();
  const visit = (nodes: readonly NodeProto[]): void => {
    for (const { domain, operator, overload, attributes } of nodes) {
      const isKnown = functions.has(keyOf(domain, operator, overload)) || operatorNamed(domainOf(domain), operator);
      if (!isKnown) missing.add(domainOf(domain) === "" ? operator : `${domain}.${operator}`);
      for (const { graph, graphs } of attributes)
        for (const each of graph ? [graph, ...graphs] : graphs) visit(each.nodes);
    }
  };
  visit(model.graph!.nodes);
  for (const { nodes } of model.functions) visit(nodes);
  if (missing.size === 0) return;
  const list = [...missing].sort().join(", ");
  const [what, verb] = missing.size === 1 ? ["operator", "is"] : ["operators", "are"];
  const message = `its ${what} ${list} ${verb} not supported; docs/onnx.md lists those that are`;
  throw new FileFormatError("loadOnnx", "unsupported", place.path, message);
}

function buildGraph(graph: GraphProto, context: Context, outer: (name: string) => boolean = () => false): Graph {
  const { place } = context;
  const constants = new Map<string, Tensor>();
  const texts = new Map<string, OnnxStrings>();
  const add = (name: string, proto: TensorProto): void => {
    const value = toValue(proto, place);
    if (isStrings(value)) texts.set(name, value);
    else constants.set(name, value);
  };
  for (const proto of graph.initializers) add(proto.name, proto);
  // Some exporters write weights as nodes.
  const nodes = graph.nodes.filter((node) => {
    const value = constantOf(node);
    if (value) add(node.outputs[0], { ...value, name: node.outputs[0] });
    return value === undefined;
  });
  if (graph.sparse.length > 0) throw damaged(place, "it has sparse initializers, which are not supported");
  const isFixed = (name: string) => constants.has(name) || texts.has(name);
  const inputs = graph.inputs.map(({ name }) => name).filter((name) => !isFixed(name));
  const outputs = graph.outputs.map(({ name }) => name);
  const known = (name: string) => isFixed(name) || inputs.includes(name) || outer(name);
  const steps = storeWeights(constants, buildSteps(nodes, outputs, known, context), outputs, context.storing);
  return new Graph(inputs, outputs, steps, constants, { types: graph.outputs.map(outputType), texts });
}

function outputType({ type }: ValueProto): OutputType | undefined {
  const dtype = type?.tensor && elementType(type.tensor.elementType)?.dtype;
  return dtype && { dtype, shape: type?.tensor?.shape?.dims.map(({ value }) => value ?? 0) ?? [] };
}

/**
 * Returns the tensor of a constant node. If it were read as an attribute, large integers would lose their last bits.
 */
function constantOf({ operator, domain, outputs, attributes: [first] }: NodeProto): TensorProto | undefined {
  const isConstant = operator === "Constant" && domainOf(domain) === "" && outputs.length === 1;
  if (!isConstant || !first || first.reference) return undefined;
  if (first.name === "value_int") return int64Proto([first.int], []);
  if (first.name === "value_ints") return int64Proto(first.ints, [first.ints.length]);
  return first.name === "value" ? first.tensor : undefined;
}

const int64Proto = (ints: bigint[], dims: number[]): TensorProto => ({
  dims,
  dataType: 7,
  name: "",
  ints,
  floats: [],
  doubles: [],
  strings: [],
  raw: undefined,
  range: undefined,
  external: [],
  isExternal: false,
});

function buildSteps(
  nodes: readonly NodeProto[],
  outputs: readonly string[],
  known: (name: string) => boolean,
  context: Context,
): Omit<Step, "last">[] {
  const made = new Set(nodes.flatMap((node) => node.outputs));
  const ordered = inOrder(nodes, known, capturedBy, context.place.path);
  const absent = outputs.find((name) => !made.has(name) && !known(name));
  if (absent !== undefined) throw damaged(context.place, `no node computes the output "${absent}"`);
  return ordered.map((node) => buildStep(node, (name) => made.has(name) || known(name), context));
}

/** The names of outer values that the graphs inside a node use. */
const capturedBy = (node: NodeProto): string[] =>
  node.attributes.flatMap(({ graph, graphs }) =>
    (graph ? [graph, ...graphs] : graphs).flatMap((inner) => [
      ...inner.outputs.map(({ name }) => name),
      ...inner.nodes.flatMap((each) => [...each.inputs, ...capturedBy(each)]),
    ]),
  );

function buildStep(node: NodeProto, known: (name: string) => boolean, context: Context): Omit<Step, "last"> {
  const values = node.attributes.flatMap((attribute) => {
    const value = attributeValue(attribute, known, context);
    return value === undefined ? [] : [[attribute.name, value] as const];
  });
  const domain = domainOf(node.domain);
  return {
    operator: node.operator,
    name: node.name || node.outputs[0] || node.operator,
    compute: operatorOf(node, new Map(values), context),
    attributes: attributesOf(values),
    opset: context.opsets.get(domain) ?? 1,
    inputs: node.inputs,
    outputs: node.outputs,
    isFunction: context.functions.has(keyOf(node.domain, node.operator, node.overload)),
  };
}

/** A function of the model takes precedence over an operator of the same name. */
function operatorOf(node: NodeProto, attributes: ReadonlyMap<string, AttributeValue>, context: Context): Operator {
  const key = keyOf(node.domain, node.operator, node.overload);
  const body = context.functions.get(key);
  if (!body) return operatorNamed(domainOf(node.domain), node.operator)!;
  if (context.within.includes(key)) throw damaged(context.place, `the function ${node.operator} calls itself`);
  const inside = { ...context, opsets: new Map(body.opsets.map(({ domain, version }) => [domainOf(domain), version])) };
  const defaults = body.defaults.map((each) => [each.name, attributeValue(each, () => false, inside)] as const);
  const bodyContext = {
    ...inside,
    attributes: new Map([...defaults, ...attributes]),
    within: [...context.within, key],
  };
  const built = buildSteps(body.nodes, body.outputs, (name) => body.inputs.includes(name), bodyContext);
  const steps = storeWeights(new Map(), built, body.outputs, context.storing);
  const graph = new Graph(body.inputs, body.outputs, steps, new Map());
  return ({ inputs, run }) => new Results(...run(graph, inputs));
}

function attributeValue(proto: AttributeProto, known: (name: string) => boolean, context: Context): AttributeValue {
  if (proto.reference) return context.attributes.get(proto.reference);
  const make = readers[proto.type];
  if (!make) throw damaged(context.place, `attribute "${proto.name}" has type ${proto.type}, which is not supported`);
  return make(proto, known, context);
}

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** The kinds of attributes, indexed by the number in AttributeProto.AttributeType. */
const readers: Readonly<
  Record<number, (proto: AttributeProto, known: (name: string) => boolean, context: Context) => AttributeValue>
> = {
  1: ({ float }) => float,
  2: ({ int }) => Number(int),
  3: ({ bytes }) => text(bytes),
  4: ({ tensor, name }, _, { place }) => {
    if (!tensor) throw damaged(place, `attribute "${name}" has no tensor`);
    return toValue(tensor, place);
  },
  5: ({ graph, name }, known, context) => {
    if (!graph) throw damaged(context.place, `attribute "${name}" has no graph`);
    return buildGraph(graph, context, known);
  },
  6: ({ floats }) => floats,
  7: ({ ints }) => ints.map(Number),
  8: ({ strings }) => strings.map(text),
  // The type of an empty optional or sequence; no supported operator reads it.
  13: ({ typeProto }) => typeProto?.tensor?.elementType ?? 0,
};
