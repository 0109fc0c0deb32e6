/** Common parts of gradient transforms: a call of a function with its graph, and checks of tangents. */
import { enableGrad, isGradEnabled, noGrad } from "../autograd/modes.ts";
import { edgeOf, type GraphNode } from "../autograd/node.ts";
import { ArgumentError, DTypeError, ShapeError } from "../core/errors.ts";
import { toDType } from "../ops/copy/cast.ts";
import { zeros } from "../ops/creation/full.ts";
import { detach } from "../ops/gradient/backward.ts";
import { aliasOf } from "../ops/gradient/toward.ts";
import { type DType, hasGradients, isGradientDType } from "../tensor/dtype.ts";
import { formatShape, type Shape, sameShape } from "../tensor/shape.ts";
import { Tensor } from "../tensor/tensor.ts";
import { type Flattened, flatten } from "./tree.ts";

/** A function of trees. */
export type AnyFunction = (...values: never[]) => unknown;

/** A call whose graph begins at its inputs. */
export interface Traced {
  /** The tensors of the arguments, as the function received them: views that begin the graph. */
  readonly inputs: readonly Tensor[];
  readonly outputs: Flattened;
  /** Whether results must stay connected to a graph outside of the call. */
  readonly isNested: boolean;
  /** Returns a result for the caller: detached from the graph of this call, unless a graph outside needs it. */
  release(result: Tensor): Tensor;
}

/** Calls `f` with aliases of the tensors in `primals`, and records it. */
export function trace(operation: string, f: AnyFunction, primals: readonly unknown[]): Traced {
  const flat = flatten(primals, operation);
  if (flat.leaves.length === 0)
    throw new ArgumentError(operation, "notATensor", "expected an argument that is a tensor or a tree of tensors");
  for (const leaf of flat.leaves) leaf.checkAlive(operation);
  const inputs = flat.leaves.map(aliasOf);
  const result = enableGrad(() => f(...(flat.rebuild(inputs) as never[])));
  if (result instanceof Promise)
    throw new ArgumentError(
      operation,
      "asynchronous",
      "expected the function to return a tree of tensors, got a promise",
    );
  const outputs = flatten(result, operation);
  if (outputs.leaves.length === 0)
    throw new ArgumentError(operation, "notATensor", "expected the function to return a tensor or a tree of tensors");
  const isNested = isGradEnabled() && dependsOnOthers(outputs.leaves, inputs);
  const release = (tensor: Tensor): Tensor =>
    isNested || !tensor.requiresGrad ? tensor : noGrad(() => detach(tensor));
  return { inputs, outputs, isNested, release };
}

/** Whether a result depends on a leaf that requires a gradient and is not one of the inputs. */
function dependsOnOthers(results: readonly Tensor[], inputs: readonly Tensor[]): boolean {
  const begin = new Set(inputs);
  const isOther = (leaf: Tensor) => leaf.requiresGrad && !begin.has(leaf);
  if (results.some((result) => result.isLeaf && isOther(result))) return true;
  const found = new Set<GraphNode>(results.flatMap((result) => edgeOf(result)?.node ?? []));
  for (const node of found)
    for (const target of node.targets) {
      if (target instanceof Tensor ? isOther(target) : false) return true;
      if (target !== null && !(target instanceof Tensor)) found.add(target.node);
    }
  return false;
}

/** Matches a tree of tangents or cotangents with their tensors. @throws {ShapeError} @throws {DTypeError} */
export function matching(
  operation: string,
  what: string,
  tree: unknown,
  tensors: readonly Tensor[],
): (Tensor | null)[] {
  const { leaves } = flatten(tree, operation);
  if (leaves.length !== tensors.length)
    throw new ArgumentError(
      operation,
      "treesDiffer",
      `expected a ${what} for each of ${tensors.length} tensors, got ${leaves.length}`,
    );
  return leaves.map((leaf, at) => {
    const tensor = tensors[at];
    leaf.checkAlive(operation);
    if (!sameShape(leaf.shape, tensor.shape))
      throw new ShapeError(
        operation,
        "shapesDiffer",
        `expected ${what} ${at} to have the shape of its tensor, ${formatShape(tensor.shape)}, got ` +
          `${formatShape(leaf.shape)}`,
      );
    if (!hasGradients(tensor.dtype)) return null;
    if (!isGradientDType(leaf.dtype, tensor.dtype))
      throw new DTypeError(operation, "notAFloat", `expected ${what} ${at} to be ${tensor.dtype}, got ${leaf.dtype}`);
    return toDType(leaf, tensor.dtype);
  });
}

/** Returns zeros with the shape and dtype of a tensor. */
export const zerosFor = ({ shape, dtype }: { readonly shape: Shape; readonly dtype: DType }): Tensor =>
  zeros(shape, { dtype });
