/** The sizes of a {@link ResNet} as data. */

/** Convolutions in stages of falling resolution, with residual connections. */
export interface ResNetDescription {
  /** The number of channels of an image. */
  readonly channels: number;
  /** The width of the planes before the first stage. */
  readonly stem: number;
  /** The stages, in order. */
  readonly stages: readonly ResNetStageDescription[];
  /**
   * `basic`: blocks of two convolutions; `bottleneck`: blocks of three, the first and last with filters of one pixel.
   */
  readonly block: "basic" | "bottleneck";
  /** The convolution of a bottleneck that has the stride. */
  readonly strideAt: "first" | "second";
  /**
   * Whether the stem has three convolutions of 3 x 3 instead of one of 7 x 7, and shortcuts average before they project
   * (ResNet-D). Default false.
   */
  readonly deep?: boolean | undefined;
  /** The activation. */
  readonly activation: "relu" | "gelu" | "silu";
}

/** The blocks of one resolution. */
export interface ResNetStageDescription {
  /** The width of the planes. */
  readonly width: number;
  /** The number of blocks. */
  readonly layers: number;
  /** The stride of the first block. */
  readonly stride: number;
}
