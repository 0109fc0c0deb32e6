/** The sizes of a {@link Detr} model as data. */
import type { FeedForwardDescription } from "../../decoder/description.ts";
import type { ResNetDescription } from "../resnet/description.ts";

/** A detector of objects: a network of convolutions, and a transformer whose queries find one object each. */
export interface DetrDescription {
  /** The name of the architecture: the `model_type` of Hugging Face. */
  readonly architecture: "detr";
  /** The network of convolutions. */
  readonly backbone: ResNetDescription;
  /** The size of hidden states. */
  readonly width: number;
  /** The number of queries: the largest number of objects. */
  readonly queries: number;
  /** The blocks that process the places of the image. */
  readonly encoder: DetrStack;
  /** The blocks over the queries. */
  readonly decoder: DetrStack;
  /** The activation of the feed-forwards. */
  readonly activation: FeedForwardDescription["activation"];
  /** The number of labels. */
  readonly labels: number;
}

/** The blocks of the encoder or the decoder. */
export interface DetrStack {
  /** The number of blocks. */
  readonly layers: number;
  /** The number of heads of each attention. */
  readonly heads: number;
  /** The hidden size of the feed-forward. */
  readonly hidden: number;
}
