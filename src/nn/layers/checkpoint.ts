import { autocastDType, enableGrad, isGradEnabled, noGrad } from "../../autograd/modes.ts";
import { AutogradError, edgeOf, GraphNode } from "../../autograd/node.ts";
import { needsGradient, record } from "../../autograd/record.ts";
import { getBackend, withBackend } from "../../backend/policy.ts";
import { describeValue } from "../../core/describe.ts";
import { ArgumentError } from "../../core/errors.ts";
import { aFunction } from "../../core/kinds.ts";
import { type Kind, operand, parameters } from "../../core/parameters.ts";
import { detach, grad } from "../../ops/gradient/backward.ts";
import { aliasOf, gradientsToward } from "../../ops/gradient/toward.ts";
import { defaultGenerator, type GeneratorState } from "../../random/generator.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";

/** A function from tensors to one tensor, which the backward pass recomputes. */
export type CheckpointBody<Inputs extends readonly Tensor[]> = (...inputs: Inputs) => Tensor;

const bodyParameters = parameters("checkpoint", { body: operand(aFunction<CheckpointBody<Tensor[]>>()) });

/**
 * Computes `body(...inputs)`, but keeps only the inputs for the backward pass (gradient checkpointing, PyTorch's
 * `torch.utils.checkpoint`). The backward pass computes the body again, with the same random numbers. A model of n
 * blocks then keeps n inputs instead of all intermediate results: about a third more time for much less memory.
 *
 * Gradients reach the inputs and every parameter that the body uses. Other tensors with an autograd history must be
 * inputs. Gradients of gradients are not supported.
 *
 * @param body computes one tensor from tensors, without side effects such as running statistics
 *
 * @example
 * const y = nn.checkpoint((x) => block.forward(x), x);
 *
 * @throws {ArgumentError} for a body that does not return a tensor, or uses a tensor with a history that is not an
 * input.
 *
 * Source: T. Chen et al., "Training deep nets with sublinear memory cost", 2016.
 */
export function checkpoint<Inputs extends readonly Tensor[]>(body: CheckpointBody<Inputs>, ...inputs: Inputs): Tensor;
export function checkpoint(...values: unknown[]): Tensor {
  const { body } = bodyParameters(values.slice(0, 1));
  const inputs = values.slice(1).map((value, at) => inputOf(aTensor, value, at));
  if (!isGradEnabled()) return checkedResult(body(...inputs));
  const state = defaultGenerator.getState();
  const [backend, autocast] = [getBackend(), autocastDType.get()];
  const { output, leaves } = forward(body, inputs);
  const all = [...inputs, ...leaves];
  record("checkpoint", all, [output], inputs, ([gradient], saved, needs) => {
    // If the gradient is abstract, a graph is being recorded: record the recomputation of the body too.
    if (gradient.storage.isAbstract)
      return withBackend(backend, () => recorded(body, { saved, leaves, needs, state }, gradient));
    if (isGradEnabled())
      throw new AutogradError("checkpoint", "noSecondOrder", "gradients of gradients are not supported");
    const inAutocast = (...given: Tensor[]) => autocastDType.run(autocast, () => body(...given));
    return withBackend(backend, () => again(inAutocast, { saved, leaves, needs, state }, gradient));
  });
  return output;
}

function inputOf(kind: Kind<Tensor>, value: unknown, at: number): Tensor {
  const tensor = kind.parse(value, "checkpoint", `input ${at}`);
  if (tensor) return tensor;
  throw new ArgumentError(
    "checkpoint",
    "invalidOperand",
    `expected input ${at} to be ${kind.expected}, got ${describeValue(value)}`,
  );
}

function checkedResult(result: unknown): Tensor {
  if (Tensor.isTensor(result)) return result;
  throw new ArgumentError(
    "checkpoint",
    "notATensor",
    `expected body to return a tensor, got ${describeValue(result)}; return one, or call checkpoint for each`,
  );
}

/** Returns detached copies of the inputs, which require a gradient where `needs` says so. */
const detached = (inputs: readonly Tensor[], needs: (at: number) => boolean): Tensor[] =>
  inputs.map((input, at) => {
    const leaf = noGrad(() => detach(input));
    if (isFloat(leaf.dtype)) leaf.requiresGrad = needs(at);
    return leaf;
  });

/** Returns the result without its history, and the parameters that the body uses. */
function forward(body: CheckpointBody<Tensor[]>, inputs: readonly Tensor[]): { output: Tensor; leaves: Tensor[] } {
  const detachedInputs = detached(inputs, (at) => needsGradient(inputs[at]));
  const leaves = new Set<Tensor>();
  const first = nextNode();
  const output = tidy(() => {
    const result = checkedResult(body(...detachedInputs));
    for (const node of nodesOf(result)) {
      if (node.id < first) throw foreign(node);
      for (const target of node.targets) if (target instanceof Tensor) leaves.add(target);
      node.free();
    }
    return noGrad(() => detach(result));
  });
  for (const input of detachedInputs) leaves.delete(input);
  return { output, leaves: [...leaves] };
}

/** Returns the id of the next recorded operation. */
const nextNode = (): number => new GraphNode("checkpoint", [], [], [], () => []).id;

/** Returns the recorded operations that a result depends on. */
function nodesOf(result: Tensor): ReadonlySet<GraphNode> {
  const found = new Set<GraphNode>();
  const first = edgeOf(result);
  if (first) found.add(first.node);
  for (const node of found)
    for (const target of node.targets) if (target !== null && !(target instanceof Tensor)) found.add(target.node);
  return found;
}

const foreign = ({ operation }: GraphNode): ArgumentError =>
  new ArgumentError(
    "checkpoint",
    "notAnInput",
    `expected body to use tensors with a history only as inputs, got the result of an earlier ${operation}; ` +
      "pass it to checkpoint after body",
  );

interface Again {
  readonly saved: readonly Tensor[];
  readonly leaves: readonly Tensor[];
  readonly needs: readonly boolean[];
  readonly state: GeneratorState;
}

/** Runs the body again with the random numbers of the first run, and returns the gradients of inputs and leaves. */
const again = (body: CheckpointBody<Tensor[]>, { saved, leaves, needs, state }: Again, gradient: Tensor) =>
  withNumbersOf(state, () => {
    const detachedInputs = detached(saved, (at) => needs[at]);
    const all = [...detachedInputs, ...leaves];
    const wanted = all.filter((_, at) => needs[at]);
    const found = grad(body(...detachedInputs), wanted, { gradOutputs: [gradient], allowUnused: true });
    const gradients: (Tensor | null)[] = [...found];
    return all.map((_, at) => (needs[at] ? (gradients.shift() ?? null) : null));
  });

/** Like {@link again}, and also records the gradient, so that it can be differentiated. */
const recorded = (body: CheckpointBody<Tensor[]>, { saved, leaves, needs, state }: Again, gradient: Tensor) =>
  withNumbersOf(state, () => {
    const inputs = saved.map((input, at) => (needs[at] ? aliasOf(input) : input));
    const all = [...inputs, ...leaves];
    const wanted = all.filter((_, at) => needs[at]);
    const gradients = gradientsToward([{ root: body(...inputs), seed: gradient }], wanted, { createGraph: true });
    return all.map((_, at) => (needs[at] ? gradients.shift()! : null));
  });

function withNumbersOf<Result>(state: GeneratorState, body: () => Result): Result {
  const now = defaultGenerator.getState();
  defaultGenerator.setState(state);
  try {
    return enableGrad(body);
  } finally {
    defaultGenerator.setState(now);
  }
}
