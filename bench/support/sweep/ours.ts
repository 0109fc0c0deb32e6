/** A drawn case in Orchard, which is prepared once and called often. */
import * as orchard from "../../../src/index.ts";
import { crossEntropy, fft, grad, linalg, nn, noGrad, ones, optim, signal, Tensor, tidy } from "../../../src/index.ts";
import type { Argument, Call, Case } from "./case.ts";

/** Runs the call once, returns the tensors to compare, and releases all others. */
export type Prepared = () => readonly Tensor[];

export interface Ready {
  readonly call: Prepared;
  /** The initial state of a layer or a model, by PyTorch's names. */
  readonly weights: ReadonlyMap<string, Tensor>;
}

type AnyFunction = (...values: unknown[]) => unknown;

/** Returns the export under a name such as `nn.LSTM` or `softmax`. */
export function exported(name: string): unknown {
  const [first, second] = name.split(".") as [string, string?];
  const spaces: Readonly<Record<string, unknown>> = { nn, fft, linalg, optim, signal };
  const found = second === undefined ? (orchard as Record<string, unknown>)[first] : undefined;
  return found ?? (spaces[first] as Record<string, unknown> | undefined)?.[second ?? ""];
}

/** Arguments of a call with operands in their positions, options last. */
export function argumentsOf({ args, options }: Call, operands: readonly Tensor[]): unknown[] {
  const filled = (value: Argument): unknown => {
    if (typeof value !== "object" || value === null) return value;
    return "operand" in value ? operands[value.operand] : value.map(filled);
  };
  const named = Object.entries(options).map(([name, value]) => [name, filled(value)] as const);
  return [...args.map(filled), ...(named.length > 0 ? [Object.fromEntries(named)] : [])];
}

/** Returns all tensors in a result, a list or an object. */
export function tensorsOf(value: unknown): Tensor[] {
  if (value instanceof Tensor) return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(tensorsOf);
}

const none: ReadonlyMap<string, Tensor> = new Map();

/** Calls forward and, if some inputs have gradients, backward. Gradients come after the results. */
function withGradients(forward: () => unknown, inputs: readonly Tensor[]): Prepared {
  if (inputs.length === 0) return () => tensorsOf(noGrad(forward));
  const results = tensorsOf(noGrad(forward));
  const cotangent = ones(results[0].shape, { dtype: results[0].dtype });
  for (const result of results) if (!inputs.includes(result)) result.dispose(); // nn.Identity returns its input
  return () =>
    tidy(() => {
      const output = tensorsOf(forward())[0];
      const gradients = grad([output], inputs, { gradOutputs: [cotangent] });
      // if an operation passes its gradient on unchanged, the result is the cotangent itself, which the next call needs
      return [output.detach(), ...gradients.map((each) => (each === cotangent ? each.detach() : each))];
    }) as Tensor[];
}

function operation(each: Case, operands: readonly Tensor[]): Ready {
  const found = exported(each.ours.name) as AnyFunction;
  const values = argumentsOf(each.ours, operands);
  const inputs = each.gradients.map((position) => operands[position]);
  for (const input of inputs) input.requiresGrad = true;
  const call = withGradients(() => found(...values), inputs);
  // If an operation works in place or needs no copy, its result is the operand itself, which the caller must not
  // dispose of.
  const isOperand = (result: Tensor): boolean => operands.includes(result);
  return { call: () => call().map((result) => (isOperand(result) ? result.detach() : result)), weights: none };
}

const weightsOf = (layer: nn.Module): ReadonlyMap<string, Tensor> => new Map(Object.entries(layer.stateDict()));

type LayerClass = new (...values: unknown[]) => nn.Module & { forward: AnyFunction };

function layer(each: Case, operands: readonly Tensor[]): Ready {
  const made = new (exported(each.ours.name) as LayerClass)(...argumentsOf(each.ours, operands));
  const inputs = each.gradients.map((position) => operands[position]);
  for (const input of inputs) input.requiresGrad = true;
  const differentiated = inputs.length === 0 ? [] : [...inputs, ...made.parameters()];
  return { call: withGradients(() => made.forward(...operands), differentiated), weights: weightsOf(made) };
}

type OptimizerClass = new (parameters: readonly Tensor[], options: object) => { step(): void; zeroGrad(): void };

function optimizer(each: Case, operands: readonly Tensor[]): Ready {
  for (const parameter of operands) {
    parameter.requiresGrad = true;
    parameter.grad = parameter.detach().clone();
  }
  const made = new (exported(each.ours.name) as OptimizerClass)(operands, each.ours.options);
  return {
    call: () => {
      made.step();
      return [operands[0].detach()];
    },
    weights: none,
  };
}

function training(each: Case, [x, classes]: readonly Tensor[]): Ready {
  const made = (each.ours.args as readonly (readonly [string, ...number[]])[]).map(
    ([name, ...sizes]) => new ((nn as Record<string, unknown>)[name] as LayerClass)(...sizes),
  );
  const model = new nn.Sequential(...(made as never[])) as unknown as InstanceType<LayerClass>;
  const stepper = new (exported(`optim.${each.ours.options["optimizer"]}`) as OptimizerClass)(model.parameters(), {
    lr: 1e-3,
  });
  const call = () =>
    tidy(() => {
      const loss = crossEntropy(model.forward(x) as Tensor, classes);
      stepper.zeroGrad();
      loss.backward();
      stepper.step();
      return [loss.detach()];
    }) as Tensor[];
  return { call, weights: weightsOf(model) };
}

const preparations = { operation, layer, optimizer, training } as const;

/** @param operands the operands of the case; a layer's weights are drawn */
export const prepare = (each: Case, operands: readonly Tensor[]): Ready => preparations[each.kind](each, operands);
