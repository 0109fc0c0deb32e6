/** Passes that transformations run: gradients with respect to some tensors only, and tangents. */
import { enableGrad, isGradEnabled, noGrad } from "../../autograd/modes.ts";
import { AutogradError, edgeOf, GraphNode, type NodeOutput, outputOf } from "../../autograd/node.ts";
import { type InternalPassOptions, passBackward, type Root } from "../../autograd/pass.ts";
import { record } from "../../autograd/record.ts";
import { lookForLifted } from "../../backend/lifted.ts";
import { AbstractReadError, abstractTensor } from "../../tensor/abstract.ts";
import { batched } from "../../tensor/batched.ts";
import { type DType, hasGradients } from "../../tensor/dtype.ts";
import type { Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { ones, zeros } from "../creation/full.ts";
import { add } from "../elementwise/arithmetic.ts";
import { addExamples } from "./examples.ts";

/**
 * @internal Returns a view of the whole tensor as a new input of a graph: a pass with respect to the view does not
 * continue into the history of `x`, and a pass with respect to `x` includes the view.
 */
export function aliasOf(x: Tensor): Tensor {
  const alias = new Tensor(x.storage, x.dtype, x.shape, x.strides, x.offset);
  record("alias", [x], [alias], [], (gradients) => gradients);
  if (hasGradients(alias.dtype) && !alias.requiresGrad) alias.requiresGrad = true;
  return alias;
}

/** @internal The options of {@link gradientsToward} that concern the graph. */
export type GraphOptions = Pick<InternalPassOptions, "retainGraph" | "createGraph" | "runRule">;

/** @internal Returns the gradients of the roots with respect to the inputs only; null for an input without one. */
export function gradientsToward(
  roots: readonly Root[],
  inputs: readonly Tensor[],
  options: GraphOptions = {},
): (Tensor | null)[] {
  const places = new Map<GraphNode | Tensor, Map<number, number[]>>();
  for (const [at, input] of inputs.entries()) {
    const edge = edgeOf(input);
    const outputs = places.get(edge?.node ?? input) ?? new Map<number, number[]>();
    places.set(edge?.node ?? input, outputs.set(edge?.output ?? 0, [...(outputs.get(edge?.output ?? 0) ?? []), at]));
  }
  const found = new Array<Tensor | null>(inputs.length).fill(null);
  passBackward(
    roots,
    { ...options, toward: inputs },
    {
      add: (a, b) => add(a, b),
      addExamples,
      observe(target, gradient) {
        const [key, output] = target instanceof Tensor ? [target, 0] : [target.node, target.output];
        const reached = places.get(key)?.get(output) ?? [];
        for (const at of reached) found[at] = gradient;
        return reached.length > 0;
      },
    },
  );
  return found;
}

/** @internal A recorded linear map from tangents of inputs to tangents of outputs. */
export interface TangentMap {
  /** Computes the tangents of the outputs; null for one that does not depend on the inputs. */
  apply(tangents: readonly (Tensor | null)[], options: { isLast: boolean }): (Tensor | null)[];
}

/**
 * @internal Records the map from tangents of `inputs` to tangents of `outputs`.
 *
 * A backward pass is a linear map of the gradients g of the outputs: Jᵀ g. Its transpose is J. A pass with abstract g
 * records Jᵀ without computing it (only factors that do not depend on g are computed, such as cos x for sin x), and a
 * pass through that record, from the inputs' gradients to g, computes J t. Source: the double-backward trick of
 * J. Townsend, "A new trick for calculating Jacobian vector products", 2017; here its first pass is not computed.
 */
export function tangentMap(outputs: readonly Tensor[], inputs: readonly Tensor[]): TangentMap {
  lookForLifted();
  const roots = outputs.flatMap((root, at) => {
    if (!root.requiresGrad) return [];
    const seed = like(outputOf(root), abstractTensor);
    seed.requiresGrad = true;
    return [{ root, seed, at }];
  });
  const cotangents = enableGrad(() => gradientsToward(roots, inputs, { createGraph: true, runRule: ruleOnAbstract }));
  const seeds = roots.map(({ seed }) => seed);
  return {
    apply(tangents, { isLast }) {
      const given = cotangents.flatMap((root, at) => (root && tangents[at] ? [{ root, seed: tangents[at] }] : []));
      const createGraph = isGradEnabled();
      const options = { createGraph, retainGraph: createGraph || !isLast, runRule: ruleOnTangents };
      const found = gradientsToward(given, seeds, options);
      const results = new Array<Tensor | null>(outputs.length).fill(null);
      for (const [index, { at }] of roots.entries()) results[at] = found[index]!;
      return results;
    },
  };
}

/** Creates a tensor with the shape, dtype and batching of another. */
function like({ shape, dtype, levels }: NodeOutput, make: (shape: Shape, dtype: DType) => Tensor): Tensor {
  const whole = make([...levels.map(({ size }) => size).toReversed(), ...shape], dtype);
  return levels.toReversed().reduce((tensor, level) => batched(tensor, 0, level), whole);
}

/** Runs the rule of a node for abstract gradients. */
function ruleOnAbstract(
  node: GraphNode,
  gradients: readonly (Tensor | null)[],
  needs: readonly boolean[],
): readonly (Tensor | null)[] {
  if (node.forward) return asNode(node, gradients, needs, (tangents) => node.pushForward(tangents)!);
  let results: readonly (Tensor | null)[];
  try {
    results = node.backward(gradients, needs);
  } catch (error) {
    if (!(error instanceof AbstractReadError)) throw error;
    return asNode(node, gradients, needs, (tangents) => doubleForm(node, tangents, needs));
  }
  for (const result of results) if (result?.storage.isAbstract && !result.requiresGrad) throw noTangent(node);
  // A result that does not depend on the gradients is 0, since the map is linear.
  return results.map((result) => (result?.storage.isAbstract ? result : null));
}

/**
 * Runs the rule of a node that {@link ruleOnAbstract} recorded. A rule may read an abstract operand; for example,
 * xlogy's rule tests its first operand for 0. The derivative of a linear map is the same everywhere, so ones replace
 * it.
 */
function ruleOnTangents(
  node: GraphNode,
  tangents: readonly (Tensor | null)[],
  needs: readonly boolean[],
): readonly (Tensor | null)[] {
  const results = node.backward(tangents, needs);
  if (!results.some((result, at) => needs[at] && result?.storage.isAbstract)) return results;
  return node.backward(tangents, needs, (saved) =>
    saved.storage.isAbstract ? noGrad(() => ones(saved.shape, { dtype: saved.dtype })) : saved,
  );
}

/** Records a node whose rule computes tangents, in place of a rule that computes gradients. */
function asNode(
  node: GraphNode,
  gradients: readonly (Tensor | null)[],
  needs: readonly boolean[],
  forward: (tangents: readonly (Tensor | null)[]) => readonly (Tensor | null)[],
): (Tensor | null)[] {
  const results = node.targets.map((target, at) => {
    if (!needs[at] || target === null) return null;
    return like(target instanceof Tensor ? outputOf(target) : target.node.outputs[target.output], abstractTensor);
  });
  const kept = [...results.keys()].filter((at) => results[at] !== null);
  const arrived = [...gradients.keys()].filter((at) => gradients[at] !== null);
  new GraphNode(
    node.operation,
    arrived.map((at) => gradients[at]!),
    kept.map((at) => results[at]!),
    [],
    (incoming) => {
      const tangents: (Tensor | null)[] = results.map(() => null);
      for (const [index, at] of kept.entries()) tangents[at] = incoming[index]!;
      const computed = forward(tangents);
      return arrived.map((at) => computed[at] ?? null);
    },
  );
  return results;
}

/**
 * Computes the tangents of a node's outputs by differentiating twice: as the gradient of its gradient rule, which is
 * applied to zeros.
 */
function doubleForm(
  node: GraphNode,
  tangents: readonly (Tensor | null)[],
  needs: readonly boolean[],
): (Tensor | null)[] {
  const createGraph = isGradEnabled();
  const seeds = node.outputs.map((output) => {
    if (!hasGradients(output.dtype)) return null;
    const seed = noGrad(() => like(output, (shape, dtype) => zeros(shape, { dtype })));
    seed.requiresGrad = true;
    return seed;
  });
  const results = enableGrad(() => node.backward(seeds, needs));
  const roots = results.flatMap((root, at) => {
    const seed = tangents[at];
    if (!root || !seed) return [];
    if (!root.requiresGrad) throw noTangent(node);
    return [{ root, seed }];
  });
  const inputs = seeds.filter((seed) => seed !== null);
  const found = gradientsToward(roots, inputs, { createGraph });
  return seeds.map((seed) => (seed === null ? null : found.shift()!));
}

const noTangent = ({ operation }: GraphNode): AutogradError =>
  new AutogradError(
    "jvp",
    "noTangent",
    `the gradient of ${operation} is not differentiable, so its tangent is unknown; write its backward with ` +
      "operations of this package, or give it a jvp rule",
  );
