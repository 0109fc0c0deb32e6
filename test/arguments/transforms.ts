/** Transformations of functions: each with valid arguments. */
import { nn, ones, Tensor, transforms, zeros } from "../../src/index.ts";
import type { Call, Calls } from "./upper.ts";

const scalar = (x: unknown): Tensor => (x instanceof Tensor ? x.square().sum() : ones([]));
/** Fuzzing also passes values that are not tensors. */
const twice = (x: unknown): Tensor => (x instanceof Tensor ? x.mul(2) : vector());
const vector = (): Tensor => ones([2]);

/** Applies the function that a transformation returns. */
const applied =
  (transform: unknown): Call =>
  (...values) =>
    ((transform as Call)(...values) as (x: Tensor) => unknown)(vector());

export const transformsCalls: Calls = {
  functionalCall: [
    transforms.functionalCall as Call,
    () => [new nn.Linear(2, 1), { weight: zeros([1, 2]) }, ones([1, 2])],
  ],
  hessian: [applied(transforms.hessian), () => [scalar, 0]],
  hvp: [transforms.hvp as Call, () => [scalar, [vector()], [vector()]]],
  jacobian: [applied(transforms.jacobian), () => [twice, { argnums: 0, mode: "forward", chunkSize: 1 }]],
  jvp: [transforms.jvp as Call, () => [twice, [vector()], [vector()]]],
  linearize: [transforms.linearize as Call, () => [twice, vector()]],
  "transforms.grad": [applied(transforms.grad), () => [scalar, 0]],
  vjp: [transforms.vjp as Call, () => [twice, vector()]],
  vmap: [applied(transforms.vmap), () => [twice, { inDims: 0, outDims: 0, randomness: "same", chunkSize: 1 }]],
};
