/** Linear attention with a recurrent state, and the causal convolution before it. */
import { tupleOf } from "../../core/tuples.ts";
import * as ops from "../../ops/index.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Call, type Operators, Results } from "../call.ts";
import { NodeProblem } from "../errors.ts";
import { headsOf, joinHeads } from "./attention.ts";

/**
 * For each rule: whether the state decays, and whether the state's prediction for the key is subtracted from the value.
 */
const rules: Readonly<Record<string, { readonly decays: boolean; readonly corrects: boolean }>> = {
  linear: { decays: false, corrects: false },
  gated: { decays: true, corrects: false },
  delta: { decays: false, corrects: true },
  gated_delta: { decays: true, corrects: true },
};

/**
 * Computes S = exp(g) S + k vᵀ and o = scale · Sᵀ q token by token, with β (v − Sᵀ k) in place of v if the rule
 * corrects values. S is [batch, heads, dk, dv].
 */
function linearAttention(call: Call): Results {
  const { attributes } = call;
  const name = attributes.text("update_rule", "gated_delta");
  const rule = rules[name];
  if (!rule) throw new NodeProblem(`the update rule "${name}" is not supported; the rules are ${Object.keys(rules)}`);
  const [queryHeads, heads] = [attributes.number("q_num_heads"), attributes.number("kv_num_heads")];
  const query = call.tensor(0);
  const [q, k, v] = [
    headsOf(wide(query), queryHeads),
    headsOf(wide(call.tensor(1)), heads),
    headsOf(wide(call.tensor(2)), heads),
  ];
  const [batch, , length, keyDim] = q.sizes(4);
  const given = call.optional(3);
  const decay = rule.decays ? ops.exp(headsOf(wide(call.tensor(4)), heads)) : undefined;
  const beta = rule.corrects ? perHead(wide(call.tensor(5))) : undefined;
  const scale = attributes.number("scale", 0) || 1 / Math.sqrt(keyDim);
  const at = (x: Tensor, step: number): Tensor => ops.narrow(x, 2, step, 1); // [batch, heads, 1, …]
  let state = given ? wide(given) : ops.zeros([batch, heads, keyDim, v.shape[3]]);
  const outputs: Tensor[] = [];
  for (let step = 0; step < length; step++) {
    const key = ops.transpose(at(k, step), 2, 3); // [batch, heads, dk, 1]
    if (decay) state = ops.mul(state, ops.transpose(at(decay, step), 2, 3));
    let value = at(v, step);
    if (beta) value = ops.mul(at(beta, step), ops.sub(value, ops.matmul(at(k, step), state)));
    state = ops.add(state, ops.mul(key, value));
    const read = queryHeads === heads ? state : ops.repeatInterleave(state, queryHeads / heads, { dim: 1 });
    outputs.push(ops.mul(ops.matmul(at(q, step), read), scale));
  }
  const joined = length > 0 ? ops.cat(outputs, { dim: 2 }) : ops.zeros([batch, queryHeads, 0, v.shape[3]]);
  return new Results(joinHeads(joined).to(query.dtype), state.to(given?.dtype ?? query.dtype));
}

/** Sums are in float32 at least. */
const wide = (x: Tensor): Tensor => (x.dtype === "float64" ? x : x.to("float32"));

/** [batch, length, heads] as [batch, heads, length, 1]. */
const perHead = (x: Tensor): Tensor => ops.unsqueeze(ops.transpose(x, 1, 2), 3);

/** A convolution of each channel with the elements before it: [batch, channels, length]. */
function causalConvWithState(call: Call): Results {
  const [x, weight, bias, past] = [call.tensor(0), call.tensor(1), call.optional(2), call.optional(3)];
  const activation = call.attributes.text("activation", "none");
  if (!["none", "silu", "swish"].includes(activation))
    throw new NodeProblem(`the activation "${activation}" is not supported; the activations are none, silu and swish`);
  const [batch, channels] = tupleOf(x.shape, 2);
  const before = weight.shape[2] - 1;
  const padded = ops.cat([past ?? ops.zeros([batch, channels, before], { dtype: x.dtype }), x], { dim: 2 });
  const convolved = ops.conv1d(padded, weight, bias, { groups: channels });
  const result = activation === "none" ? convolved : ops.silu(convolved);
  return new Results(result, ops.narrow(padded, 2, padded.shape[2] - before, before));
}

export const linearAttentions: Operators = {
  CausalConvWithState: causalConvWithState,
  LinearAttention: linearAttention,
};
