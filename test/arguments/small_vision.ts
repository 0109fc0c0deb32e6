/** Small image encoders with random weights, without files. */
import { manualSeed, nn } from "../../src/index.ts";
import type { VisionDescription } from "../../src/nn/models/vision/description.ts";
import { DualEncoder } from "../../src/nn/models/vision/dual_encoder.ts";
import { VisionEncoder } from "../../src/nn/models/vision/vision_encoder.ts";

const WIDTH = 4;
const attention = { heads: 2, headWidth: 2, bias: true, fused: false };
const feedForward = { hidden: 4, gated: false, activation: "gelu", bias: true } as const;
const layer = { attentionNorm: true, attention, feedForward };
const norm = { kind: "layerNorm", eps: 1e-5, bias: true } as const;
const vision: VisionDescription = {
  ...{ architecture: "vit", width: WIDTH, norm, embeddingNorm: false, layers: [layer], finalNorm: "states" },
  patches: {
    ...{ channels: 3, size: [2, 2], image: [4, 4], bias: true, classToken: true },
    positions: { kind: "learned", mode: "bicubic", antialias: false },
  },
  pooling: { kind: "first" },
};

const processor = () =>
  new nn.ImageProcessor({ size: { kind: "exact", height: 4, width: 4 }, rescale: 1 / 255, mean: [0.5], std: [0.5] });

/** Returns an image encoder, with a classifier of so many labels. */
export function smallVision(labels = 0): nn.VisionEncoder {
  manualSeed(4);
  const head = labels > 0 ? ({ outputs: labels, of: "first" } as const) : undefined;
  const model = new VisionEncoder({ ...vision, head }).eval();
  model.processor = processor();
  const names = Array.from({ length: labels }, (_, label) => `label ${label}`);
  if (labels > 0) model.labels = { names, scores: "softmax", relevance: "sigmoid" };
  return model;
}

/** Returns a model of images and texts with the vocabulary of a tokenizer: CLIP, or with `sigmoid` SigLIP. */
export function smallDual(tokenizer: nn.Encoder["tokenizer"], sigmoid = false): nn.DualEncoder {
  manualSeed(5);
  const contextLength = 8;
  const model = new DualEncoder({
    ...{ architecture: sigmoid ? "siglip" : "clip", vision: { ...vision, projection: sigmoid ? undefined : WIDTH } },
    text: {
      ...{ architecture: "clip_text_model", vocabularySize: tokenizer!.vocabularySize, contextLength, width: WIDTH },
      ...{ norm, normPlace: "before", finalNorm: true, order: [0] },
      embeddings: { width: WIDTH, norm: false, positions: { count: contextLength }, tokenTypes: 0 },
      layers: [{ ...layer, attention: { ...attention, causal: !sigmoid } }],
    },
    textPooling: sigmoid ? { kind: "padded", padding: 1 } : { kind: "largest" },
    ...{ textProjection: { width: WIDTH, bias: sigmoid }, sigmoid },
  }).eval();
  model.processor = processor();
  model.tokenizer = tokenizer;
  return model;
}
