/** The sizes of an {@link RtDetr} model as data. */
import type { FeedForwardDescription } from "../../decoder/description.ts";
import type { DetrStack } from "../detr/description.ts";
import type { ResNetDescription } from "../resnet/description.ts";

/** A detector of objects. Its queries are the places of the image with the highest scores. */
export interface RtDetrDescription {
  /** The name of the architecture: the `model_type` of Hugging Face. */
  readonly architecture: "rt_detr";
  /** The network of convolutions. */
  readonly backbone: ResNetDescription;
  /** The stages of the network that are read, in ascending order; the first is 1. */
  readonly levels: readonly number[];
  /** The width in which levels are combined. */
  readonly encoderWidth: number;
  /** The blocks that process the places of some levels. */
  readonly encoder: DetrStack;
  /** The levels whose places attend to one another, as indices into `levels`. */
  readonly attended: readonly number[];
  /** The activation of the blocks in `encoder`. */
  readonly encoderActivation: FeedForwardDescription["activation"];
  /** The base of the positions of places. */
  readonly temperature: number;
  /** The activation of the convolutions that combine levels. */
  readonly activation: FeedForwardDescription["activation"];
  /** The width of the convolutions that combine levels, divided by `encoderWidth`. */
  readonly expansion: number;
  /** The size of the queries' hidden states. */
  readonly width: number;
  /** The number of queries: the largest number of objects. */
  readonly queries: number;
  /** The blocks over the queries. */
  readonly decoder: DetrStack;
  /** The activation of the blocks over the queries. */
  readonly decoderActivation: FeedForwardDescription["activation"];
  /** The number of places of each level that a head of a query attends to. */
  readonly points: number;
  /** Added to the variances of the norms of blocks. */
  readonly eps: number;
  /** The number of labels. */
  readonly labels: number;
}
