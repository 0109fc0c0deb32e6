/** The sizes of an {@link ImageClassifier} as data. */
import type { FeedForwardDescription } from "../../decoder/description.ts";
import type { ResNetDescription } from "../resnet/description.ts";
import type { SegmenterStageDescription } from "../segformer/description.ts";

/** A network of planes, the mean over its places, and a classifier. */
export interface ImageClassifierDescription {
  /** The name of the architecture: the `model_type` of Hugging Face. */
  readonly architecture: "resnet" | "segformer" | "convnext" | "convnextv2";
  /** The number of channels of an image. */
  readonly channels: number;
  /** The network. */
  readonly network: NetworkDescription;
  /** The number of planes of the last stage, which is the size of an image's vector. */
  readonly width: number;
  /** Added to the variance in the norm of the mean. Default: no norm. */
  readonly eps?: number | undefined;
  /** The number of labels. Default: there is no classifier. */
  readonly labels?: number | undefined;
}

/** A network whose stages have ever fewer and wider planes. */
export type NetworkDescription =
  | ({ readonly kind: "resnet" } & ResNetDescription)
  | {
      readonly kind: "segformer";
      readonly stages: readonly SegmenterStageDescription[];
      readonly activation: FeedForwardDescription["activation"];
    }
  | ({ readonly kind: "convnext" } & ConvNextDescription);

/** ConvNeXt: depthwise convolutions of 7 x 7, each followed by an MLP of each place. */
export interface ConvNextDescription {
  /** The side of a patch. */
  readonly patch: number;
  /** The width and the number of blocks of each stage. */
  readonly stages: readonly { readonly width: number; readonly layers: number }[];
  /** The activation of the MLPs. */
  readonly activation: FeedForwardDescription["activation"];
  /** Whether a learned factor of each plane multiplies the result of a block. */
  readonly scaled: boolean;
  /** Whether MLPs have ConvNeXt V2's global response normalization. */
  readonly responses: boolean;
}
