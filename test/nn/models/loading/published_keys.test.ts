/** Keys of published configs that `transformers` 5.23 ignores, and an older form of CLIP's parts. */
import { expect, test } from "bun:test";
import { describeEncoderConfig } from "../../../../src/nn/models/loading/encoder/describe.ts";
import { describeEncoderDecoder } from "../../../../src/nn/models/loading/encoder_decoder/describe.ts";
import { describeConfig } from "../../../../src/nn/models/loading/hugging_face.ts";
import { Settings } from "../../../../src/nn/models/loading/settings.ts";
import { describeDual, describeVision } from "../../../../src/nn/models/loading/vision/describe.ts";

/** By `model_type`. */
const decoders = {
  bloom: {
    attention_softmax_in_fp32: true,
    bias_dropout_fusion: true,
    masked_softmax_fusion: true,
    offset_alibi: 100,
    skip_bias_add: true,
    skip_bias_add_qkv: false,
  },
  lfm2: { theta: 1e6, num_heads: 8, block_dim: 64, use_pos_enc: true },
  stablelm: { rope_pct: 0.25 },
  granitemoehybrid: { logits_to_keep: 0, mamba_chunk_size: 256 },
  gpt_bigcode: { attention_softmax_in_fp32: true, inference_runner: 0, pad_key_length: true, max_batch_size: 1 },
  codegen: { scale_attn_weights: true },
  hunyuan_v1_dense: { use_qk_norm: true, use_cla: false, class_num: 0, norm_type: "rms", mlp_bias: false },
  hunyuan_v1_moe: { moe_intermediate_size: [11_008, 11_008], use_mla: false, num_shared_expert: [1, 1] },
  gptj: { rotary: true, scale_attn_weights: true },
  mpt: { init_config: { name: "kaiming_normal_", verbose: 0 }, tokenizer_name: "gpt-neox-20b", verbose: 0 },
} as const;

test.each(Object.entries(decoders))("notes in configs of %s have no effect", (name, notes) => {
  const described = (config: object) => describeConfig("test", name as keyof typeof decoders, config);
  expect(described(notes)).toEqual(described({}));
});

const encoders = {
  electra: { generator_size: "1/3" },
  modernbert: { classifiers_size: [3], tasks: ["glue/mnli"] },
  bert: { add_pooling_layer: false, directionality: "bidi" },
  roberta: { language: "english", name: "Roberta" },
  "xlm-roberta": { matryoshka_dimensions: [256], use_memory_efficient_attention: false, unpad_inputs: true },
} as const;

test.each(Object.entries(encoders))("notes in configs of %s have no effect", (name, notes) => {
  const described = (config: object) => describeEncoderConfig("test", name as keyof typeof encoders, config);
  expect(described(notes)).toEqual(described({}));
});

const settingsOf = (config: object) => new Settings("config.json", new Map(Object.entries(config)));

test("the older text_config_dict and vision_config_dict of CLIP replace the parts", () => {
  const text = { hidden_size: 32, num_attention_heads: 4, num_hidden_layers: 2, intermediate_size: 64 };
  const vision = { ...text, image_size: 32, patch_size: 8 };
  const described = (parts: object) => describeDual("clip", settingsOf({ projection_dim: 16, ...parts }));
  const parts = { text_config: { ...text, eos_token_id: 2 }, vision_config: { ...vision, patch_size: 16 } };
  const older = { ...parts, text_config_dict: text, vision_config_dict: vision };
  expect(described(older)).toEqual(described({ text_config: text, vision_config: vision }));
  expect(described(parts).description.textPooling).toEqual({ kind: "largest" });
  expect(described(older).description.textPooling).toEqual({ kind: "end", token: 49_407 });
});

test("notes of the distillation of BART have no effect", () => {
  const stored = { hasTables: false, hasOtherTables: false, hasHead: false, hasLogitsBias: false };
  const described = (notes: object) => describeEncoderDecoder("bart", settingsOf(notes), stored);
  expect(described({ replacing_rate: 0, save_step: 58, student_encoder_layers: 12 })).toEqual(described({}));
});

test("notes of DINOv2 with registers have no effect", () => {
  const described = (notes: object) => describeVision("dinov2_with_registers", settingsOf(notes), () => true);
  const notes = { interpolate_antialias: true, interpolate_offset: 0 };
  expect(described(notes).description).toEqual(described({}).description);
});

test("the error for the adapters of Jina Embeddings v3 says which files load", () => {
  const config = { lora_adaptations: ["retrieval.query"], lora_rank: 4, position_embedding_type: "rotary" };
  expect(() => describeEncoderConfig("test", "xlm-roberta", config)).toThrow(/lora_adaptations.*jina_embeddings_v3/);
});
