/** FlexAttention of ai.onnx.preview: attention with graphs that modify the scores and probabilities. */
import * as ops from "../../ops/index.ts";
import { Tensor } from "../../tensor/tensor.ts";
import type { Call, Operators } from "../call.ts";
import { castTo } from "../cast.ts";
import { NodeProblem } from "../errors.ts";

/** Applies the graph in an attribute to a tensor. Without the attribute, returns the tensor. */
function modified(call: Call, name: string, x: Tensor): Tensor {
  if (!call.attributes.has(name)) return x;
  const [result] = call.run(call.attributes.graph(name), [x]);
  if (!(result instanceof Tensor)) throw new NodeProblem(`attribute ${name}: expected a graph that returns a tensor`);
  return result;
}

/** softmax(q · kᵀ · scale) · v, in float32 unless the inputs are float64. Several query heads may share a key head. */
function flexAttention(call: Call): Tensor {
  const [q, k, v] = [call.tensor(0), call.tensor(1), call.tensor(2)];
  if (q.rank !== 4 || k.rank !== 4 || v.rank !== 4)
    throw new NodeProblem(`expected queries, keys and values with four axes, got ${q.describe()} and ${k.describe()}`);
  const group = q.shape[1] / k.shape[1];
  const spread = (x: Tensor) => (group === 1 ? x : ops.repeatInterleave(x, group, { dim: 1 }));
  const precision = call.attributes.number("softmax_precision", 0);
  const wide = (x: Tensor) => (precision === 0 ? (x.dtype === "float64" ? x : x.to("float32")) : castTo(x, precision));
  const scale = call.attributes.number("scale", 0) || 1 / Math.sqrt(q.shape[3]);
  const scores = ops.mul(ops.matmul(wide(q), ops.transpose(wide(spread(k)), 2, 3)), scale);
  const weights = ops.softmax(modified(call, "score_mod", scores), { dim: -1 });
  return ops.matmul(modified(call, "prob_mod", weights), wide(spread(v))).to(q.dtype);
}

export const flexAttentions: Operators = { FlexAttention: flexAttention };
