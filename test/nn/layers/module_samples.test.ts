/**
 * The layers and inputs that PyTorch tests its modules with (`scripts/fixtures/module_samples.py`): outputs, gradients
 * and buffers equal PyTorch's in float64.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as orchard from "../../../src/index.ts";
import { type BackendName, grad, nn, type Tensor, tensor, withBackend } from "../../../src/index.ts";

interface FixtureTensor {
  readonly dtype: "float64" | "int64" | "bool";
  readonly shape: readonly number[];
  readonly data: readonly (number | string)[];
}

type State = Readonly<Record<string, FixtureTensor>>;

interface Sample {
  readonly module: string;
  readonly training: boolean;
  /** Names of the arguments without defaults. */
  readonly required: readonly string[];
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly requiredInputs: readonly string[];
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly state: State;
  readonly outputs: readonly (FixtureTensor & { readonly requiresGrad: boolean })[];
  readonly cotangents: readonly FixtureTensor[];
  /** Of the inputs that require gradients, in order; null where PyTorch has none. */
  readonly gradients: readonly (FixtureTensor | null)[];
  readonly stateGradients: Readonly<Record<string, FixtureTensor | null>>;
  readonly buffers: State;
}

const path = join(import.meta.dir, "..", "..", "fixtures", "module_samples", "pytorch.json");
const { samples } = JSON.parse(readFileSync(path, "utf8")) as { readonly samples: readonly Sample[] };

const numberOf = (value: number | string): number =>
  typeof value === "number" ? value : { nan: Number.NaN, inf: Infinity, "-inf": -Infinity, "-0": -0 }[value]!;

function tensorOf({ dtype, shape, data }: FixtureTensor, requiresGrad = false): Tensor {
  const numbers = data.map(numberOf);
  if (dtype === "int64") return tensor(BigInt64Array.from(numbers.map(BigInt)), { shape: [...shape] });
  if (dtype === "bool") return tensor(Uint8Array.from(numbers), { shape: [...shape] }).to("bool");
  return tensor(Float64Array.from(numbers), { shape: [...shape], requiresGrad });
}

const camelCase = (name: string): string => name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

interface StoredTensor {
  readonly tensor: FixtureTensor;
  readonly requiresGrad: boolean;
}

/** Decodes a value; inputs that require gradients are added to `variables`. */
function decoded(value: unknown, variables: Tensor[] = []): unknown {
  if (Array.isArray(value)) return value.map((item) => decoded(item, variables));
  if (typeof value !== "object" || value === null) return value;
  const { tensor: stored, requiresGrad } = value as StoredTensor;
  const result = tensorOf(stored, requiresGrad);
  if (requiresGrad) variables.push(result);
  return result;
}

/** Names that differ from PyTorch's, and options that only PyTorch has. */
const renamed: Readonly<Record<string, string>> = { lambd: "lambda" };
const isLeftOut = (name: string, value: unknown): boolean => value === null && name !== "momentum" && name !== "dim";

type AnyModule = nn.Module<unknown[], unknown>;

function make({ module, required, arguments: given, state }: Sample): AnyModule {
  const isRecurrent = /^(?:RNN|GRU|LSTM)$/.test(module);
  const positional = isRecurrent ? ["input_size", "hidden_size"] : required;
  const options: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given))
    if (!positional.includes(name) && !isLeftOut(name, value))
      options[renamed[name] ?? camelCase(name)] = decoded(value);
  if (options["projSize"] === 0) delete options["projSize"];
  if (Object.values(state).some(({ dtype }) => dtype === "float64") && !module.endsWith("Loss"))
    options["dtype"] = "float64";
  const Class = nn[module as keyof typeof nn] as unknown as new (...values: unknown[]) => AnyModule;
  const values = positional.map((name) => decoded(given[name]));
  return new Class(...values, ...(Object.keys(options).length > 0 ? [options] : []));
}

/** The tensors of a result, in PyTorch's order. */
function tensorsIn(result: unknown): Tensor[] {
  if (result === undefined || result === null) return [];
  if (Array.isArray(result)) return result.flatMap(tensorsIn);
  return "dataSync" in (result as object) ? [result as Tensor] : Object.values(result).flatMap(tensorsIn);
}

/** Calls a layer with the library's signature: states of recurrent layers are passed by name. */
function call(module: AnyModule, { module: name, requiredInputs, inputs }: Sample, variables: Tensor[]): Tensor[] {
  const given = Object.entries(inputs).map(([key, value]) => [key, decoded(value, variables)] as const);
  const { hx } = Object.fromEntries(given);
  if (hx !== undefined) {
    const { input: x } = Object.fromEntries(given);
    if (/Cell$/.test(name) && !Array.isArray(hx)) return tensorsIn(module.forward(x, hx));
    return tensorsIn(module.forward(x, Array.isArray(hx) ? { hidden: hx[0], cell: hx[1] } : { hidden: hx }));
  }
  // layers without named inputs take all of them by position
  const takesOptions = /^(?:Multihead|Transformer)/.test(name);
  const isPositional = (key: string) => !takesOptions || requiredInputs.includes(key);
  const positional = given.filter(([key]) => isPositional(key)).map(([, value]) => value);
  const named = given.filter(([key, value]) => !isPositional(key) && value !== null);
  const options = Object.fromEntries(named.map(([key, value]) => [camelCase(key), value]));
  if (name === "MultiheadAttention") options["needWeights"] ??= true; // PyTorch's default
  return tensorsIn(module.forward(...positional, ...(Object.keys(options).length > 0 ? [options] : [])));
}

/** Rounding errors of float64 accumulate along sums of products and steps: far below any mistake. */
function expectClose(what: string, got: Tensor, want: FixtureTensor): void {
  expect({ what, shape: got.shape, dtype: got.dtype }).toEqual({ what, shape: [...want.shape], dtype: want.dtype });
  const values = Array.from(got.to("float64").dataSync(), Number);
  const wanted = want.data.map(numberOf);
  const scale = Math.max(1, ...wanted.filter(Number.isFinite).map(Math.abs));
  const isFar = (value: number, at: number) =>
    !Object.is(value, wanted[at]) && !(Math.abs(value - wanted[at]) <= 1e-12 * scale);
  expect({ what, differs: values.filter(isFar) }).toEqual({ what, differs: [] });
}

/** PyTorch's gradient of `ctc_loss` assumes that it passes on through `log_softmax`; the library's does not. */
const gradientDiffers = ({ module }: Sample): boolean => module === "CTCLoss";

/** Calls fractional max pooling with PyTorch's random samples, which are an option of the function alone. */
function pooled({ module, arguments: given, inputs }: Sample, variables: Tensor[]): Tensor[] {
  const { kernel_size: kernelSize, output_size: outputSize, output_ratio: outputRatio } = given;
  const operation = module.endsWith("2d") ? orchard.fractionalMaxPool2d : orchard.fractionalMaxPool3d;
  const randomSamples = decoded(given["_random_samples"]) as Tensor;
  const returnIndices = given["return_indices"];
  const options = { outputSize, outputRatio, returnIndices, randomSamples } as orchard.FractionalMaxPoolOptions;
  return tensorsIn(operation(decoded(inputs["input"], variables) as Tensor, kernelSize as number, options));
}

function replay(sample: Sample): void {
  const variables: Tensor[] = [];
  const isPool = sample.module.startsWith("FractionalMaxPool");
  const module = isPool ? new nn.Identity() : make(sample).train(sample.training);
  const state = Object.entries(isPool ? {} : sample.state).map(([name, values]) => [name, tensorOf(values)]);
  module.loadStateDict(Object.fromEntries(state));
  const outputs = isPool ? pooled(sample, variables) : call(module as AnyModule, sample, variables);
  expect(outputs).toHaveLength(sample.outputs.length);
  for (const [at, output] of outputs.entries()) expectClose(`output ${at}`, output, sample.outputs[at]);
  const buffers = module.namedBuffers();
  for (const [name, want] of Object.entries(sample.buffers))
    if (buffers.has(name)) expectClose(name, buffers.get(name)!, want);
  if (gradientDiffers(sample)) return;
  const differentiable = outputs.filter((_, at) => sample.outputs[at].requiresGrad);
  const parameters = module.namedParameters();
  expect([...parameters.keys()]).toEqual(Object.keys(sample.stateGradients));
  const wanted = [...sample.gradients, ...Object.values(sample.stateGradients)];
  if (wanted.every((each) => each === null)) return;
  const gradOutputs = sample.cotangents.map((each) => tensorOf(each));
  const found = grad(differentiable, [...variables, ...parameters.values()], { gradOutputs, allowUnused: true });
  for (const [at, want] of wanted.entries()) if (want) expectClose(`gradient ${at}`, found[at]!, want);
}

const titles = samples.map(({ module, training, arguments: given, inputs }, at) => {
  const short = JSON.stringify([given, inputs]).replaceAll(/"data":\[[^\]]*\],?/g, "");
  return `${at} ${module}${training ? "" : ", evaluated"} ${short.slice(0, 120)}`;
});

test("the samples are of nearly all modules of PyTorch", () => {
  expect(new Set(samples.map(({ module }) => module)).size).toBeGreaterThanOrEqual(90);
});

describe.each(["cpu", "reference"] as const satisfies readonly BackendName[])("PyTorch's modules on %s", (backend) => {
  test.each(samples.map((sample, at) => [titles[at], sample] as const))("%s has PyTorch's results", (_, sample) =>
    withBackend(backend, () => replay(sample)),
  );
});
