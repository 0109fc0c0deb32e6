/** GGUF files of Granite's experts beside a shared expert, for which llama.cpp has no separate architecture. */
import { expect, test } from "bun:test";
import { contiguous, Generator, io, mul, nn, noGrad, randn, reshape, stack, transpose } from "../../../../src/index.ts";
import { Decoder } from "../../../../src/nn/models/decoder/decoder.ts";
import { describeConfig } from "../../../../src/nn/models/loading/hugging_face.ts";
import type { Tensor } from "../../../../src/tensor/tensor.ts";
import { testFolder } from "../../../support/folder.ts";
import { errorOf } from "./oracle.ts";

const folder = testFolder("gguf-shared");
const whole = (value: number) => ({ type: "uint32", value }) as const;
const real = (value: number) => ({ type: "float32", value }) as const;

const [EXPERTS, HIDDEN, HEAD_WIDTH] = [4, 24, 8];
const config = {
  vocab_size: 40,
  max_position_embeddings: 32,
  hidden_size: 32,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  intermediate_size: HIDDEN,
  num_local_experts: EXPERTS,
  num_experts_per_tok: 2,
  shared_intermediate_size: 20,
  embedding_multiplier: 1.5,
  residual_multiplier: 0.5,
  logits_scaling: 2,
  attention_multiplier: 0.3,
  tie_word_embeddings: true,
};
const metadata = {
  context_length: whole(32),
  embedding_length: whole(32),
  block_count: whole(2),
  vocab_size: whole(40),
  feed_forward_length: whole(HIDDEN),
  "attention.head_count": whole(4),
  "attention.head_count_kv": whole(2),
  "attention.layer_norm_rms_epsilon": real(1e-6),
  "rope.dimension_count": whole(HEAD_WIDTH),
  "rope.freq_base": real(10_000),
  embedding_scale: real(1.5),
  residual_scale: real(0.5),
  "attention.scale": real(0.3),
  logit_scale: real(2),
  expert_count: whole(EXPERTS),
  expert_used_count: whole(2),
  expert_shared_feed_forward_length: whole(20),
};

/** `LlamaModel.permute` of the converter: interleaves the rows of the two halves of each head. */
const permuted = (x: Tensor): Tensor =>
  reshape(contiguous(transpose(reshape(x, [-1, 2, HEAD_WIDTH / 2, 32]), 1, 2)), [...x.shape]);

/** The tensors of the file. Source: `GraniteMoeModel` of llama.cpp's converter. */
function weightsOf(model: Decoder): Record<string, Tensor> {
  const state = model.stateDict();
  const halves = (path: string) => state[`${path}.gateUp.weight`].chunk(2);
  const block = (index: number): [string, Tensor][] => {
    const own = (path: string) => state[`blocks.${index}.${path}.weight`];
    const part = `blocks.${index}.feedForward`;
    const experts = Array.from({ length: EXPERTS }, (_, expert) => halves(`${part}.experts.${expert}`));
    const downs = experts.map((_, expert) => own(`feedForward.experts.${expert}.down`));
    const [sharedGate, sharedUp] = halves(`${part}.shared`);
    const named: [string, Tensor][] = [
      ["attn_norm", own("attentionNorm")],
      ["attn_q", permuted(own("attention.query"))],
      ["attn_k", permuted(own("attention.key"))],
      ["attn_v", own("attention.value")],
      ["attn_output", own("attention.output")],
      ["ffn_norm", own("feedForwardNorm")],
      ["ffn_gate_inp", own("feedForward.router")],
      ["ffn_gate_exps", stack(experts.map(([gate]) => gate))],
      ["ffn_up_exps", stack(experts.map(([, up]) => up))],
      ["ffn_down_exps", stack(downs)],
      ["ffn_gate_shexp", contiguous(sharedGate)],
      ["ffn_up_shexp", contiguous(sharedUp)],
      ["ffn_down_shexp", own("feedForward.shared.down")],
    ];
    return named.map(([name, x]) => [`blk.${index}.${name}.weight`, x]);
  };
  return {
    "token_embd.weight": state["tokenEmbedding.weight"],
    "output_norm.weight": state["finalNorm.weight"],
    ...Object.fromEntries([...block(0), ...block(1)]),
  };
}

test("a file of granitemoe with a shared expert has the same logits as granitemoeshared", async () => {
  const model = new Decoder(describeConfig("test", "granitemoeshared", config)).eval();
  const generator = new Generator(8);
  noGrad(() => {
    for (const parameter of model.parameters())
      parameter.copy_(mul(randn([...parameter.shape], { generator }), 0.3) as Tensor);
  });
  const path = folder.file("granite.gguf");
  const entries = Object.entries(metadata).map(([key, value]) => [`granitemoe.${key}`, value] as const);
  const about = { "general.architecture": "granitemoe", ...Object.fromEntries(entries) };
  await io.saveGguf(
    path,
    noGrad(() => weightsOf(model)),
    { metadata: about },
  );
  const { model: loaded } = await nn.loadModel(path);
  const tokens = randn([2, 9], { generator }).abs().mul(10).to("int32");
  const [got, expected] = noGrad(() => [loaded.forward(tokens), model.forward(tokens)]);
  expect(errorOf(got, expected)).toBeLessThan(1e-5);
});
