/** Losses with factors as modules, with PyTorch's names. */
import { aNumber, someNumber } from "../../core/kinds.ts";
import { type Given, type Kind, named, optional, parameters } from "../../core/parameters.ts";
import { binaryCrossEntropyWithLogits } from "../../ops/loss/binary_cross_entropy.ts";
import { crossEntropy } from "../../ops/loss/cross_entropy.ts";
import { multilabelSoftMarginLoss, multiMarginLoss } from "../../ops/loss/margin_losses.ts";
import { nllLoss } from "../../ops/loss/nll_loss.ts";
import { type LossOptions, reductionParameter } from "../../ops/loss/options.ts";
import { binaryCrossEntropy } from "../../ops/loss/probability_losses.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { Module } from "./module.ts";
import { listed } from "./with_options.ts";

const wholeNumber = aNumber({ holds: Number.isSafeInteger, expected: "a whole number" });
const oneOrTwo: Kind<1 | 2> = {
  expected: "1 or 2",
  parse: (value) => (value === 1 || value === 2 ? value : undefined),
};

/** A loss with factors, which are buffers: saved, loaded and converted with the module. */
abstract class WeightedLoss<Options extends object> extends Module<[x: Tensor, target: Tensor], Tensor> {
  /** What the operation is called with beside the factors. */
  readonly options: Readonly<Options>;
  readonly weight: Tensor | null;

  constructor({ weight, ...options }: Options & { readonly weight?: Tensor | undefined }) {
    super();
    this.options = Object.freeze(options) as unknown as Readonly<Options>;
    this.weight = weight ?? null;
  }

  /** @internal */
  override details(): string {
    return listed(this.options);
  }
}

/** Options of {@link CrossEntropyLoss}. */
export interface CrossEntropyLossOptions extends LossOptions {
  /** A factor: see the operation. */
  weight?: Tensor | undefined;
  /** A target that counts for nothing. Default −100. */
  ignoreIndex?: number | undefined;
  /** The share of a target that is spread over all classes. Default 0. */
  labelSmoothing?: number | undefined;
}

/** The cross entropy of target classes, or of class probabilities, with softmax(logits). See `crossEntropy`. */
export class CrossEntropyLoss extends WeightedLoss<Omit<CrossEntropyLossOptions, "weight">> {
  constructor(...options: Given<CrossEntropyLossOptions, ["weight"]>);
  constructor(...values: unknown[]) {
    super(crossEntropyLossParameters(values));
  }

  override forward(logits: Tensor, targets: Tensor): Tensor {
    return crossEntropy(logits, targets, { ...this.options, weight: this.weight ?? undefined });
  }
}
const crossEntropyLossParameters = parameters("CrossEntropyLoss", {
  weight: optional(aTensor),

  ignoreIndex: named(wholeNumber),
  labelSmoothing: named(aNumber({ holds: (value) => value >= 0 && value <= 1, expected: "a number from 0 to 1" }), 0),
  reduction: reductionParameter,
});

/** Options of {@link NLLLoss}. */
export interface NLLLossOptions extends LossOptions {
  /** A factor: see the operation. */
  weight?: Tensor | undefined;
  /** A target that counts for nothing. Default −100. */
  ignoreIndex?: number | undefined;
}

/** The negative log-likelihood of target classes, from logarithms of probabilities. See `nllLoss`. */
export class NLLLoss extends WeightedLoss<Omit<NLLLossOptions, "weight">> {
  constructor(...options: Given<NLLLossOptions, ["weight"]>);
  constructor(...values: unknown[]) {
    super(nllLossParameters(values));
  }

  override forward(x: Tensor, targets: Tensor): Tensor {
    return nllLoss(x, targets, { ...this.options, weight: this.weight ?? undefined });
  }
}
const nllLossParameters = parameters("NLLLoss", {
  weight: optional(aTensor),

  ignoreIndex: named(wholeNumber, -100),
  reduction: reductionParameter,
});

/** Options of {@link BCELoss}. */
export interface BCELossOptions extends LossOptions {
  /** A factor: see the operation. */
  weight?: Tensor | undefined;
}

/** The cross entropy of targets with probabilities. See `binaryCrossEntropy`. */
export class BCELoss extends WeightedLoss<LossOptions> {
  constructor(...options: Given<BCELossOptions, ["weight"]>);
  constructor(...values: unknown[]) {
    super(bceLossParameters(values));
  }

  override forward(x: Tensor, target: Tensor): Tensor {
    return binaryCrossEntropy(x, target, { ...this.options, weight: this.weight ?? undefined });
  }
}
const bceLossParameters = parameters("BCELoss", {
  weight: optional(aTensor),

  reduction: reductionParameter,
});

/** Options of {@link BCEWithLogitsLoss}. */
export interface BCEWithLogitsLossOptions extends LossOptions {
  /** A factor: see the operation. */
  weight?: Tensor | undefined;
  /** A factor of the losses of positive targets. */
  posWeight?: Tensor | undefined;
}

/** The cross entropy of targets with σ(x). See `binaryCrossEntropyWithLogits`. */
export class BCEWithLogitsLoss extends WeightedLoss<LossOptions> {
  readonly posWeight: Tensor | null;

  constructor(...options: Given<BCEWithLogitsLossOptions, ["weight"]>);
  constructor(...values: unknown[]) {
    const { posWeight, ...options } = bceWithLogitsLossParameters(values);
    super(options);
    this.posWeight = posWeight ?? null;
  }

  override forward(x: Tensor, target: Tensor): Tensor {
    return binaryCrossEntropyWithLogits(x, target, {
      ...this.options,
      weight: this.weight ?? undefined,
      posWeight: this.posWeight ?? undefined,
    });
  }
}
const bceWithLogitsLossParameters = parameters("BCEWithLogitsLoss", {
  weight: optional(aTensor),
  posWeight: named(aTensor),
  reduction: reductionParameter,
});

/** Options of {@link MultiMarginLoss}. */
export interface MultiMarginLossOptions extends LossOptions {
  /** A factor: see the operation. */
  weight?: Tensor | undefined;
  /** The power of what is short of the margin. Default 1. */
  p?: 1 | 2 | undefined;
  /** Default 1. */
  margin?: number | undefined;
}

/** A margin between the target and the other classes. See `multiMarginLoss`. */
export class MultiMarginLoss extends WeightedLoss<Omit<MultiMarginLossOptions, "weight">> {
  constructor(...options: Given<MultiMarginLossOptions, ["weight"]>);
  constructor(...values: unknown[]) {
    super(multiMarginLossParameters(values));
  }

  override forward(x: Tensor, targets: Tensor): Tensor {
    return multiMarginLoss(x, targets, { ...this.options, weight: this.weight ?? undefined });
  }
}
const multiMarginLossParameters = parameters("MultiMarginLoss", {
  weight: optional(aTensor),

  p: named(oneOrTwo, 1),
  margin: named(someNumber, 1),
  reduction: reductionParameter,
});

/** Options of {@link MultiLabelSoftMarginLoss}. */
export interface MultiLabelSoftMarginLossOptions extends LossOptions {
  /** A factor: see the operation. */
  weight?: Tensor | undefined;
}

/** The cross entropies of targets with σ(x), averaged over the classes. See `multilabelSoftMarginLoss`. */
export class MultiLabelSoftMarginLoss extends WeightedLoss<LossOptions> {
  constructor(...options: Given<MultiLabelSoftMarginLossOptions, ["weight"]>);
  constructor(...values: unknown[]) {
    super(multiLabelSoftMarginLossParameters(values));
  }

  override forward(x: Tensor, target: Tensor): Tensor {
    return multilabelSoftMarginLoss(x, target, { ...this.options, weight: this.weight ?? undefined });
  }
}
const multiLabelSoftMarginLossParameters = parameters("MultiLabelSoftMarginLoss", {
  weight: optional(aTensor),

  reduction: reductionParameter,
});
