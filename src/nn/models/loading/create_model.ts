import { describeValue } from "../../../core/describe.ts";
import { ArgumentError } from "../../../core/errors.ts";
import { anObject } from "../../../core/kinds.ts";
import { operand, parameters, reading } from "../../../core/parameters.ts";
import type { LayerOptions } from "../../layers/initialization.ts";
import { layerParameters } from "../../layers/kinds.ts";
import { Decoder } from "../decoder/decoder.ts";
import { Encoder } from "../encoder/encoder.ts";
import { ObjectDetector } from "../vision/detector.ts";
import { DualEncoder } from "../vision/dual_encoder.ts";
import { VisionEncoder } from "../vision/vision_encoder.ts";
import { type ArchitectureName, architectures } from "./architectures.ts";
import { encoderNameOf, isEncoder } from "./encoder/architectures.ts";
import { describeEncoderConfig } from "./encoder/describe.ts";
import { encoderTypeOf } from "./encoder/published.ts";
import { describeConfig } from "./hugging_face.ts";
import type { LoadableModel } from "./opened.ts";
import { Settings } from "./settings.ts";
import { isDual, isVision } from "./vision/architectures.ts";
import { describedImageModel, isImageModel } from "./vision/image_models.ts";
import { describedVision } from "./vision/open.ts";

const readCall = parameters("createModel", {
  config: operand(anObject<Readonly<Record<string, unknown>>>("the contents of a config.json")),
  ...layerParameters,
});

/**
 * Creates a language model, an encoder of texts or an image model with random weights from the settings of a
 * `config.json`, to train it from scratch. Missing settings have the defaults of Hugging Face's `transformers`.
 *
 * @param config the contents of a `config.json`; `model_type` is required
 *
 * @example
 * const model = nn.createModel<nn.VisionEncoder>({
 *   model_type: "vit",
 *   architectures: ["ViTForImageClassification"],
 *   num_labels: 10,
 *   image_size: 32,
 *   patch_size: 4,
 *   hidden_size: 64,
 *   intermediate_size: 128,
 *   num_hidden_layers: 4,
 *   num_attention_heads: 4,
 * });
 *
 * @throws {ArgumentError} `unknownArchitecture`, and other codes for unsupported settings, which the error names.
 */
export function createModel<M extends LoadableModel = Decoder>(
  config: Readonly<Record<string, unknown>>,
  options?: LayerOptions,
): M;
export function createModel(...values: unknown[]): LoadableModel {
  const { config, ...options } = readCall(values);
  return reading("createModel", () => created(config, options)); // a config may be a proxy whose traps throw
}

function created(config: Readonly<Record<string, unknown>>, options: LayerOptions): LoadableModel {
  const type = encoderTypeOf(config["model_type"]);
  const settings = new Settings(undefined, new Map(Object.entries(config)), "", "createModel");
  if (isVision(type) || isDual(type)) {
    const described = describedVision(type, settings, () => true);
    const { description } = described;
    if ("text" in description) return new DualEncoder(description, options);
    const model =
      "labels" in description ? new ObjectDetector(description, options) : new VisionEncoder(description, options);
    model.labels = described.labels;
    return model;
  }
  if (isImageModel(type)) return describedImageModel(type, settings).newModel(options);
  if (isEncoder(type)) {
    const { description, labels } = describeEncoderConfig("createModel", encoderNameOf(type, config), config);
    const model = new Encoder(description, options);
    model.labels = labels;
    return model;
  }
  if (typeof type === "string" && Object.hasOwn(architectures, type))
    return new Decoder(describeConfig("createModel", type as ArchitectureName, config), options);
  throw new ArgumentError(
    "createModel",
    "unknownArchitecture",
    `expected model_type to be an architecture of docs/models.md, docs/encoders.md or docs/vision.md, ` +
      `got ${describeValue(type)}`,
  );
}
