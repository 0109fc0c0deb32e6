/** Layers compared with PyTorch's (`scripts/fixtures/modules.py`), whose states load by their names. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type BackendName, grad, nn, type Tensor, tensor, withBackend } from "../../../src/index.ts";

interface FixtureTensor {
  readonly dtype: "float64" | "int64";
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

interface Layer {
  readonly name: string;
  readonly module: keyof typeof nn;
  readonly arguments: readonly unknown[];
  readonly options: object;
  readonly inputs: readonly FixtureTensor[];
  readonly forward: Readonly<Record<string, unknown>>;
  readonly state: Readonly<Record<string, FixtureTensor>>;
  readonly outputs: readonly FixtureTensor[];
  readonly cotangents: readonly FixtureTensor[];
  readonly gradients: readonly FixtureTensor[];
  readonly stateGradients: Readonly<Record<string, FixtureTensor>>;
  /** Buffers after the call, and whether the layer was in training mode. */
  readonly buffers?: Readonly<Record<string, FixtureTensor>>;
  readonly training?: boolean;
}

const path = join(import.meta.dir, "..", "..", "fixtures", "modules", "pytorch.json");
const { cases } = JSON.parse(readFileSync(path, "utf8")) as { readonly cases: readonly Layer[] };

type AnyModule = nn.Module<unknown[], unknown>;
const backends = ["cpu", "reference"] as const satisfies readonly BackendName[];

const tensorOf = ({ dtype, shape, data }: FixtureTensor, requiresGrad = false): Tensor =>
  dtype === "int64"
    ? tensor(BigInt64Array.from(data.map(BigInt)), { shape: [...shape] })
    : tensor(Float64Array.from(data), { shape: [...shape], requiresGrad });

/** Masks are lists in the fixtures: of booleans, or of numbers. */
const inputsOf = (forward: Layer["forward"], dtype: "float64") =>
  Object.fromEntries(
    Object.entries(forward).map(([name, value]) => {
      if (!Array.isArray(value)) return [name, value];
      const isBool = /true|false/.test(JSON.stringify(value));
      return [name, isBool ? tensor(value as boolean[]) : tensor(value as number[], { dtype })];
    }),
  );

const layer = { dtype: "float64" } as const;

/** A layer of a case; encoders and decoders are built from a layer, and weight norms are applied to one. */
function make({ module, arguments: own, options, forward, state }: Layer): AnyModule {
  const given = { ...options, ...layer };
  const [dModel, nhead] = own as [number, number];
  const last = () => new nn.LayerNorm(dModel, layer);
  if (module === "TransformerEncoder")
    return new nn.TransformerEncoder(new nn.TransformerEncoderLayer(dModel, nhead, given), 2, last()) as AnyModule;
  if (module === "TransformerDecoder")
    return new nn.TransformerDecoder(new nn.TransformerDecoderLayer(dModel, nhead, given), 2, last()) as AnyModule;
  const Class = nn[module] as unknown as new (...values: unknown[]) => AnyModule;
  const hasState = Object.keys(state).length > 0;
  const made = new Class(...own, ...(hasState ? [given] : Object.keys(options).length > 0 ? [options] : []));
  const norm = forward["norm"] as "weightNorm" | "spectralNorm" | undefined;
  return norm ? nn[norm](made, forward["options"] as object) : made;
}

/** Calls a layer with the library's signature: states of recurrent layers are passed by name. */
function call(module: AnyModule, { module: name, forward }: Layer, [x, ...others]: readonly Tensor[]): Tensor[] {
  if (/^(?:RNN|GRU)Cell$/.test(name)) return [module.forward(x, ...others) as Tensor];
  if (/^(?:RNN|GRU|LSTM)/.test(name)) {
    const [hidden, cell] = others;
    const given = { ...forward, ...(hidden && { hidden }), ...(cell && { cell }) };
    const result = module.forward(x, given) as Partial<nn.LSTMResult>;
    return [result.output, result.hidden, result.cell].filter((each) => each !== undefined);
  }
  const masks = /^(?:Transformer|Multihead)/.test(name) ? [inputsOf(forward, "float64")] : [];
  const result = module.forward(x, ...others, ...masks);
  if (name !== "MultiheadAttention") return [result as Tensor];
  const { output, weights } = result as nn.MultiheadAttentionResult;
  return weights ? [output, weights] : [output];
}

/** Rounding errors of float64 accumulate along sums of products and steps: far below any mistake. */
function expectClose(what: string, got: Tensor, want: FixtureTensor): void {
  expect(got.shape).toEqual([...want.shape]);
  const values = Array.from(got.dataSync() as ArrayLike<number>);
  const scale = Math.max(...want.data.map(Math.abs), Number.MIN_VALUE);
  const worst = Math.max(0, ...values.map((value, at) => Math.abs(value - want.data[at])));
  expect({ what, isClose: worst <= 1e-13 * Math.max(scale, 1) }).toEqual({ what, isClose: true });
}

describe.each(backends)("layers equal PyTorch's on %s", (backend) => {
  test.each(cases.map((own) => [own.name, own] as const))("%s has PyTorch's results", (_, own) =>
    withBackend(backend, () => {
      const module = make(own).train(own.training ?? true);
      const state = Object.entries(own.state).map(([name, values]) => [name, tensorOf(values)]);
      module.loadStateDict(Object.fromEntries(state));
      expect(Object.keys(module.stateDict()).toSorted()).toEqual(Object.keys(own.state).toSorted());
      const inputs = own.inputs.map((input) => tensorOf(input, input.dtype === "float64"));
      const trained = inputs.filter((input) => input.requiresGrad);
      const outputs = call(module, own, inputs);
      for (const [name, want] of Object.entries(own.buffers ?? {}))
        expectClose(name, module.namedBuffers().get(name)!.to("float64"), want);
      expect(outputs).toHaveLength(own.outputs.length);
      for (const [at, output] of outputs.entries()) expectClose(`output ${at}`, output, own.outputs[at]);
      const named = module.namedParameters();
      const gradOutputs = own.cotangents.map((each) => tensorOf(each));
      const gradients = grad(outputs, [...trained, ...named.values()], { gradOutputs });
      for (const [at, name] of [...trained.keys(), ...named.keys()].entries())
        expectClose(`gradient of ${name}`, gradients[at], own.gradients[at] ?? own.stateGradients[name]);
    }),
  );
});
