/** Tokenizers, text datasets, data sets of items and images, and data loaders. Exported as `data`. */

export { BpeTokenizer } from "./bpe_tokenizer.ts";
export type { DataProgress } from "./build.ts";
export { ByteTokenizer } from "./byte_tokenizer.ts";
export {
  type DataReport,
  openTextDataset,
  type TextDataset,
  type TextDatasetOptions,
} from "./dataset.ts";
export { Gpt2Tokenizer } from "./gpt2_tokenizer.ts";
export { ImageFolder, type ImageFolderOptions } from "./images/folder.ts";
export { type Collated, collate } from "./loader/collate.ts";
export { ConcatDataset } from "./loader/concat.ts";
export {
  type Dataset,
  type ItemContext,
  MappedDataset,
  type RandomSplitOptions,
  randomSplit,
  Subset,
  TensorDataset,
} from "./loader/items.ts";
export { IterableDataset, type IterableDatasetOptions } from "./loader/iterable.ts";
export { DataLoader, type DataLoaderOptions, type LoaderState } from "./loader/loader.ts";
export { type WeightedSamplerOptions, weightedRandomSampler } from "./loader/sampler.ts";
export { openWorkerDataset, WorkerDataset, type WorkerDatasetOptions } from "./loader/workers.ts";
export { Progress, type ProgressOptions, progress } from "./progress.ts";
export type { SkipReason } from "./scan.ts";
export { type SpecialTokens, TextStream, type Tokenizer, type Tokens } from "./tokenizer.ts";
export { type TrainBpeOptions, trainBpe } from "./train_bpe.ts";
export * as transforms from "./transforms/index.ts";
export { type Batch, type DataPosition, HeldOutWindows, type Share, TrainingWindows } from "./windows.ts";

import "../ops/methods.ts";
