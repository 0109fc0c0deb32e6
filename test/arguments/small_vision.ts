/** Small image encoders with random weights, without files. */
import { manualSeed, nn } from "../../src/index.ts";

const sizes = { hidden_size: 4, intermediate_size: 4, num_hidden_layers: 1, num_attention_heads: 2 };
const vision = { ...sizes, image_size: 4, patch_size: 2 };
const namesOf = (labels: number) =>
  Object.fromEntries(Array.from({ length: labels }, (_, label) => [`${label}`, `label ${label}`]));
const processor = () =>
  new nn.ImageProcessor({ size: { kind: "exact", height: 4, width: 4 }, rescale: 1 / 255, mean: [0.5], std: [0.5] });

type ImageModel = nn.VisionEncoder | nn.DualEncoder | nn.ObjectDetector | nn.SemanticSegmenter | nn.DepthEstimator;

function made<M extends ImageModel>(config: object): M {
  manualSeed(4);
  const model = nn.createModel<M>({ ...config });
  model.eval();
  model.processor = processor();
  return model;
}

/** Returns an image encoder, with a classifier of this many labels. */
export const smallVision = (labels = 0): nn.VisionEncoder =>
  made({
    ...vision,
    model_type: "vit",
    id2label: namesOf(labels),
    architectures: [labels > 0 ? "ViTForImageClassification" : "ViTModel"],
  });

/** Returns a detector of this many labels. */
export const smallDetector = (labels = 2): nn.ObjectDetector =>
  made({
    ...vision,
    model_type: "yolos",
    architectures: ["YolosForObjectDetection"],
    id2label: namesOf(labels),
    num_detection_tokens: 3,
  });

/** Returns a model of images and texts with the vocabulary of a tokenizer: CLIP, or with `sigmoid` SigLIP. */
export function smallDual(tokenizer: nn.Encoder["tokenizer"], sigmoid = false): nn.DualEncoder {
  const text = { ...sizes, vocab_size: tokenizer!.vocabularySize, max_position_embeddings: 24 };
  const model: nn.DualEncoder = made({
    model_type: sigmoid ? "siglip" : "clip",
    architectures: [sigmoid ? "SiglipModel" : "CLIPModel"],
    vision_config: vision,
    text_config: { ...text, ...(!sigmoid && { eos_token_id: 2 }) },
    ...(!sigmoid && { projection_dim: 4 }),
  });
  model.tokenizer = tokenizer;
  return model;
}

/** Returns a model of three labels for pixels. */
export const smallSegmenter = (): nn.SemanticSegmenter =>
  made({
    model_type: "segformer",
    num_encoder_blocks: 1,
    depths: [1],
    sr_ratios: [1],
    hidden_sizes: [4],
    patch_sizes: [3],
    strides: [2],
    num_attention_heads: [1],
    mlp_ratios: [1],
    decoder_hidden_size: 4,
    id2label: namesOf(3),
  });

/** Returns a model of depths. */
export const smallDepth = (): nn.DepthEstimator => {
  const { intermediate_size: _, ...rest } = vision;
  const backbone = { ...rest, mlp_ratio: 1, out_indices: [0, 1], reshape_hidden_states: false };
  return made({
    model_type: "depth_anything",
    backbone_config: { ...backbone, model_type: "dinov2" },
    patch_size: 2,
    reassemble_hidden_size: 4,
    reassemble_factors: [2, 1],
    neck_hidden_sizes: [2, 2],
    fusion_hidden_size: 4,
    head_hidden_size: 2,
  });
};
