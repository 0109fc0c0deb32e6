/** An open folder or file of a model. */
import type { LayerOptions } from "../../layers/initialization.ts";
import type { Decoder } from "../decoder/decoder.ts";
import type { Encoder } from "../encoder/encoder.ts";
import type { EncoderDecoder } from "../encoder_decoder/encoder_decoder.ts";
import type { ImageClassifier } from "../vision/classifier/classifier.ts";
import type { DepthEstimator } from "../vision/depth/estimator.ts";
import type { ObjectDetector } from "../vision/detector.ts";
import type { Detr } from "../vision/detr/detr.ts";
import type { DualEncoder } from "../vision/dual_encoder.ts";
import type { RtDetr } from "../vision/rt_detr/rt_detr.ts";
import type { Sam } from "../vision/sam/sam.ts";
import type { Sam2 } from "../vision/sam/sam2.ts";
import type { SemanticSegmenter } from "../vision/segformer/segmenter.ts";
import type { VisionEncoder } from "../vision/vision_encoder.ts";
import type { Wav2Vec2 } from "../wav2vec2/wav2vec2.ts";
import type { Whisper } from "../whisper/whisper.ts";
import type { GenerationSettings } from "./generation.ts";
import type { Place, Style } from "./names.ts";
import type { WeightSource } from "./source.ts";

/** The models that {@link loadModel} returns. */
export type LoadableModel =
  | Decoder
  | Encoder
  | EncoderDecoder
  | VisionEncoder
  | DualEncoder
  | ObjectDetector
  | ImageClassifier
  | SemanticSegmenter
  | DepthEstimator
  | Detr
  | RtDetr
  | Sam
  | Sam2
  | Whisper
  | Wav2Vec2;

/** An open folder or file, and the model that it describes. */
export interface Opened extends Disposable {
  /** Where the weights are; first the token embedding. */
  readonly places: readonly Place[];
  readonly newModel: (options: LayerOptions) => LoadableModel;
  readonly source: WeightSource;
  readonly style: Style;
  readonly config: Readonly<Record<string, unknown>>;
  readonly generation: GenerationSettings;
  readonly chatTemplate: string | undefined;
}
