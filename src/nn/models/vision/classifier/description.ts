/** The sizes of an {@link ImageClassifier} as data. */
import type { FeedForwardDescription } from "../../decoder/description.ts";
import type { ResNetDescription } from "../resnet/description.ts";
import type { SegmenterStageDescription } from "../segformer/description.ts";

/** A network of planes, the mean over its places, and a classifier. */
export interface ImageClassifierDescription {
  /** The name of the architecture: the `model_type` of Hugging Face. */
  readonly architecture: "resnet" | "segformer" | "convnext" | "convnextv2" | "swin";
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
  | ({ readonly kind: "convnext" } & ConvNextDescription)
  | ({ readonly kind: "swin" } & SwinDescription);

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

/** Swin: attention within windows, which are shifted in every second block. */
export interface SwinDescription {
  /** The side of a patch. */
  readonly patch: number;
  /** The side of a window, in patches. */
  readonly window: number;
  /** The stages. The next stage is twice as wide. */
  readonly stages: readonly SwinStageDescription[];
  /** Whether queries, keys and values have biases. */
  readonly bias: boolean;
  /** Added to the variance in the norms of blocks, and in the last one. */
  readonly eps: number;
}

/** The blocks of Swin with one size of patches. */
export interface SwinStageDescription {
  /** The size of hidden states. */
  readonly width: number;
  /** The number of blocks. */
  readonly layers: number;
  /** The number of heads of attention. */
  readonly heads: number;
  /** The feed-forward of a block. */
  readonly feedForward: FeedForwardDescription;
}
