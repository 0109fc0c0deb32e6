/** Types of modules that are derived from operations: the compiler is the test (`bun run check`). */
import type { Given } from "../../src/core/parameters.ts";
import { type DType, nn, randn, type Tensor, tensor } from "../../src/index.ts";
import type { IndexDType } from "../../src/ops/indexing/indices.ts";
import type { Lengths } from "../../src/ops/loss/ctc_loss.ts";
import type { complexDTypes, dtypes } from "../../src/tensor/dtype.ts";
import type { Equals, True } from "./expect.ts";

type ForwardOf<M extends nn.Module> = Parameters<M["forward"]>;
type Pair = [x: Tensor, target: Tensor];
type Class = abstract new (...values: never) => unknown;

/** Whether two lists of arguments are assignable to each other: their labels may differ. */
type Alike<A, B> = [A, B] extends [B, A] ? true : false;
type Takes<C extends Class, Values> = Alike<ConstructorParameters<C>, Values>;

export type Constructors = [
  True<Takes<typeof nn.ReLU, []>>,
  True<Takes<typeof nn.HuberLoss, [options?: nn.HuberLossOptions | undefined]>>,
  True<Takes<typeof nn.ELU, Given<nn.ELUOptions, ["alpha"]>>>,
  True<Takes<typeof nn.GELU, Given<nn.GELUOptions, ["approximate"]>>>,
  True<Takes<typeof nn.Hardtanh, Given<nn.HardtanhOptions, ["minVal", "maxVal"]>>>,
  True<Takes<typeof nn.NLLLoss, Given<nn.NLLLossOptions, ["weight"]>>>,
  True<Takes<typeof nn.CosineSimilarity, Given<nn.CosineSimilarityModuleOptions, ["dim", "eps"]>>>,
  True<Takes<typeof nn.PairwiseDistance, Given<nn.PairwiseDistanceModuleOptions, ["p", "eps", "keepdim"]>>>,
  True<Takes<typeof nn.Threshold, [threshold: number, value: number] | [options: nn.ThresholdOptions]>>,
];

export type Forward = [
  True<Alike<ForwardOf<nn.ReLU>, [x: Tensor]>>,
  True<Alike<ForwardOf<nn.Threshold>, [x: Tensor]>>,
  True<Alike<ForwardOf<nn.MSELoss>, Pair>>,
  True<Alike<ForwardOf<nn.NLLLoss>, [x: Tensor, targets: Tensor]>>,
  True<Alike<ForwardOf<nn.CosineSimilarity>, [x1: Tensor, x2: Tensor]>>,
  True<Alike<ForwardOf<nn.GaussianNLLLoss>, [x: Tensor, target: Tensor, variance: Tensor]>>,
  True<
    Alike<
      ForwardOf<nn.CTCLoss>,
      [logProbs: Tensor, targets: Tensor<IndexDType>, inputLengths: Lengths, targetLengths: Lengths]
    >
  >,
  True<Equals<ReturnType<nn.KLDivLoss["forward"]>, Tensor>>,
  True<Equals<ReturnType<nn.LeakyReLU["forward"]>, Tensor>>,
];

export type Kept = [
  True<Equals<nn.Hardtanh["minVal"], number>>,
  True<Equals<nn.GELU["approximate"], "none" | "tanh">>,
  True<Equals<nn.Softmax["dim"], number>>,
  True<Equals<nn.HuberLoss["options"], Readonly<nn.HuberLossOptions>>>,
  True<Equals<nn.Softmin["options"], Readonly<{ readonly dim: number }>>>,
  True<Equals<nn.BCEWithLogitsLoss["posWeight"], Tensor | null>>,
  True<Equals<keyof nn.CrossEntropyLoss["options"], "ignoreIndex" | "labelSmoothing" | "reduction">>,
];

const pooled = new nn.MaxPool2d(2).forward(randn([1, 1, 4, 4]));
const withIndices = new nn.MaxPool2d(2, { returnIndices: true }).forward(randn([1, 1, 4, 4]));
const places = new nn.AdaptiveMaxPool1d(2, true).forward(randn([1, 1, 4]));
export type Pooled = [
  True<Equals<typeof pooled, Tensor<"float32">>>,
  True<Equals<typeof withIndices, nn.Pooled<true, "float32">>>,
  True<Equals<typeof places.indices, Tensor<"int64">>>,
];

// Classes derived from operations can be extended like other classes.
export class Shifted extends nn.ReLU {
  readonly by = new nn.Linear(2, 2);

  override forward(x: Tensor): Tensor {
    return super.forward(this.by.forward(x));
  }
}
export const chain = new nn.Sequential(new Shifted(), new nn.Softmax(1), new nn.Conv1d(1, 1, 1), new nn.ZeroPad1d(1));
export const loss: nn.Module<Pair, Tensor> = new nn.BCELoss(tensor([1]), { reduction: "sum" });

// @ts-expect-error there is no such option
export const unknownOption = new nn.MSELoss({ reduce: true });
// @ts-expect-error dtype is an option of the operation alone
export const ofTheOperation = new nn.Softmax({ dtype: "float32" });
// @ts-expect-error no options
export const none = new nn.Tanh(1);
// @ts-expect-error the target is missing
export const missing = new nn.L1Loss().forward(randn([2]));

export type DTypes = True<Equals<DType, (typeof dtypes)[number] | (typeof complexDTypes)[number]>>;
