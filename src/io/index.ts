/**
 * Safetensors, GGUF, NumPy, TensorBoard, CSV, Parquet, image and audio files, and training checkpoints. Exported as
 * `io`.
 */
export { type Audio, loadAudio } from "./audio/load.ts";
export {
  type Checkpoint,
  type CheckpointTypes,
  loadCheckpoint,
  type RejectedCheckpoint,
} from "./checkpoint/load.ts";
export {
  type CheckpointContent,
  type SaveCheckpointOptions,
  type Stateful,
  saveCheckpoint,
} from "./checkpoint/save.ts";
export type { StateTree } from "./checkpoint/tree.ts";
export type { GgufInput } from "./gguf/encode.ts";
export type { GgufReader, GgufTensorInfo } from "./gguf/file.ts";
export { openGguf } from "./gguf/open.ts";
export { type SaveGgufOptions, saveGguf } from "./gguf/save.ts";
export type { GgufScalar, GgufType, GgufValue } from "./gguf/types.ts";
export type { ChannelOrder, ImageMode } from "./image/channels.ts";
export type { WrittenFormat } from "./image/format.ts";
export { type LoadImageOptions, loadImage } from "./image/load.ts";
export { type EncodeImageOptions, encodeImage, type SaveImageOptions, saveImage } from "./image/save.ts";
export { loadNpy, saveNpy } from "./numpy/npy.ts";
export { loadNpz, type SaveNpzOptions, saveNpz } from "./numpy/npz.ts";
export type { SafetensorsReader, TensorInfo } from "./safetensors/file.ts";
export { loadSafetensors, openSafetensors } from "./safetensors/open.ts";
export { type SaveOptions, saveSafetensors } from "./safetensors/save.ts";
export type { Table } from "./table/columns.ts";
export { type LoadCsvOptions, loadCsv } from "./table/csv.ts";
export { type LoadParquetOptions, loadParquet } from "./table/parquet.ts";
export { SummaryWriter } from "./tensorboard/writer.ts";
export { type LoadWeightsOptions, loadWeights, type Weights } from "./weights.ts";

import "../ops/methods.ts";
