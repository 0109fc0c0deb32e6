/** Layers against the same of PyTorch (`scripts/fixtures/modules.py`), whose states load by their names. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type BackendName, grad, nn, type Tensor, tensor, withBackend } from "../../src/index.ts";

interface FixtureTensor {
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

interface Layer {
  readonly name: string;
  readonly module: keyof typeof nn;
  readonly arguments: readonly unknown[];
  readonly options: object;
  readonly inputs: readonly FixtureTensor[];
  readonly forward: object;
  readonly state: Readonly<Record<string, FixtureTensor>>;
  readonly outputs: readonly FixtureTensor[];
  readonly cotangents: readonly FixtureTensor[];
  readonly gradients: readonly FixtureTensor[];
  readonly stateGradients: Readonly<Record<string, FixtureTensor>>;
}

const path = join(import.meta.dir, "..", "fixtures", "modules", "pytorch.json");
const { cases } = JSON.parse(readFileSync(path, "utf8")) as { readonly cases: readonly Layer[] };

type AnyModule = nn.Module<unknown[], unknown>;
const backends = ["cpu", "reference"] as const satisfies readonly BackendName[];

const tensorOf = ({ shape, data }: FixtureTensor, requiresGrad = false): Tensor =>
  tensor(Float64Array.from(data), { shape: [...shape], requiresGrad });

/** Calls a layer as the library has it: states of recurrent layers go by name. */
function call(module: AnyModule, { module: name, forward }: Layer, [x, ...others]: readonly Tensor[]): Tensor[] {
  if (/^(?:RNN|GRU)Cell$/.test(name)) return [module.forward(x, ...others) as Tensor];
  if (/^(?:RNN|GRU|LSTM)/.test(name)) {
    const [hidden, cell] = others;
    const given = { ...forward, ...(hidden && { hidden }), ...(cell && { cell }) };
    const result = module.forward(x, given) as Partial<nn.LSTMResult>;
    return [result.output, result.hidden, result.cell].filter((each) => each !== undefined);
  }
  return [module.forward(x, ...others) as Tensor];
}

/** Roundings of float64 add up along sums of products and steps: far below any mistake. */
function expectClose(what: string, got: Tensor, want: FixtureTensor): void {
  expect(got.shape).toEqual([...want.shape]);
  const values = Array.from(got.dataSync() as ArrayLike<number>);
  const scale = Math.max(...want.data.map(Math.abs), Number.MIN_VALUE);
  const worst = Math.max(0, ...values.map((value, at) => Math.abs(value - want.data[at]!)));
  expect({ what, isClose: worst <= 1e-13 * Math.max(scale, 1) }).toEqual({ what, isClose: true });
}

describe.each(backends)("PyTorch's layers on %s", (backend) => {
  test.each(cases.map((own) => [own.name, own] as const))("%s", (_, own) =>
    withBackend(backend, () => {
      const Class = nn[own.module] as unknown as new (...values: unknown[]) => AnyModule;
      const module = new Class(...own.arguments, { ...own.options, dtype: "float64" });
      const state = Object.entries(own.state).map(([name, values]) => [name, tensorOf(values)]);
      module.loadStateDict(Object.fromEntries(state));
      expect(Object.keys(module.stateDict())).toEqual(Object.keys(own.state));
      const inputs = own.inputs.map((input) => tensorOf(input, true));
      const outputs = call(module, own, inputs);
      expect(outputs).toHaveLength(own.outputs.length);
      for (const [at, output] of outputs.entries()) expectClose(`output ${at}`, output, own.outputs[at]!);
      const named = module.namedParameters();
      const gradOutputs = own.cotangents.map((each) => tensorOf(each));
      const gradients = grad(outputs, [...inputs, ...named.values()], { gradOutputs });
      for (const [at, name] of [...inputs.keys(), ...named.keys()].entries())
        expectClose(`gradient of ${name}`, gradients[at]!, own.gradients[at] ?? own.stateGradients[name]!);
    }),
  );
});
