/** Small wav2vec2, HuBERT and WavLM models of `transformers` with their results: scripts/fixtures/models/ctc.py. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../src/core/paths.ts";
import { io, type nn, type Tensor } from "../../../src/index.ts";
import { weight } from "../models/weights.ts";
import type { Recording } from "./oracle.ts";

export interface CtcCase {
  readonly config: Readonly<Record<string, unknown>> & { readonly model_type: string };
  readonly vocabulary: readonly string[];
  readonly tokenizer: Readonly<Record<string, unknown>>;
  readonly normalize: boolean;
  readonly audio: Recording;
  readonly shapes: Readonly<Record<string, number[]>>;
  readonly text: string;
  readonly words: readonly (readonly [word: string, start: number, end: number])[];
}

const fixture = join(packageRoot, "test", "fixtures", "speech", "ctc");
export const { cases }: { cases: CtcCase[] } = JSON.parse(readFileSync(`${fixture}.json`, "utf8"));
export const answers = io.loadSafetensors(`${fixture}.safetensors`);

/** Writes the folder of a model, with changes of its config and of the names of its weights. */
export async function writeCtcModel(
  path: string,
  own: CtcCase,
  changes: object = {},
  rename = (key: string): string => key,
): Promise<void> {
  mkdirSync(path, { recursive: true });
  const write = (file: string, value: object) => writeFileSync(join(path, file), JSON.stringify(value));
  write("config.json", { ...own.config, ...changes });
  write("vocab.json", Object.fromEntries(own.vocabulary.map((symbol, at) => [symbol, at])));
  write("tokenizer_config.json", own.tokenizer);
  write("preprocessor_config.json", {
    do_normalize: own.normalize,
    feature_extractor_type: "Wav2Vec2FeatureExtractor",
  });
  const tensors = Object.entries(own.shapes).map(([key, shape]) => [rename(key), weight(key, shape)] as const);
  await io.saveSafetensors(join(path, "model.safetensors"), Object.fromEntries(tensors));
}

/** Returns the gradient of the parameter with a name of `transformers`. */
export function gradientOf(model: nn.Wav2Vec2, name: string): Tensor {
  const [, layer = "", end = ""] = /^(?:wav2vec2\.|hubert\.|wavlm\.)?(.*?)(?:\.(weight|bias))?$/.exec(name)!;
  const inBlock: Readonly<Record<string, string>> = {
    "attention.q_proj": "attention.query",
    "attention.k_proj": "attention.key",
    "attention.gru_rel_pos_linear": "attention.distanceGate.projection",
    "attention.gru_rel_pos_const": "attention.distanceGate.factors",
    layer_norm: "attentionNorm",
    "attention.v_proj": "attention.value",
    "attention.out_proj": "attention.output",
    "feed_forward.intermediate_dense": "feedForward.up",
    "feed_forward.output_dense": "feedForward.down",
    final_layer_norm: "feedForwardNorm",
  };
  const path = layer
    .replace("encoder.layers.0.attention.rel_attn_embed", "distanceEmbedding")
    .replace(/^encoder\.layers\.(\d+)\.(.*)$/, (_, at, rest) => `blocks.${at}.${inBlock[rest]}`)
    .replace(/^feature_extractor\.conv_layers\.(\d+)\.conv$/, "convolutions.$1.convolution")
    .replace(/^feature_extractor\.conv_layers\.(\d+)\.layer_norm$/, "convolutions.$1.norm")
    .replace("encoder.pos_conv_embed.conv", "positions.convolution")
    .replace("encoder.layer_norm", "norm")
    .replace("feature_projection.projection", "projection")
    .replace("feature_projection.layer_norm", "projectionNorm")
    .replace(/^(lm_head|classifier)$/, "head")
    .replace("layer_weights", "layerWeights");
  return (model.namedModules().get(path) as unknown as Record<string, Tensor>)[end || "weight"].grad!;
}
