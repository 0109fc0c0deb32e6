/** Files: tensors in the safetensors format, and checkpoints of a training run. */
export type { SafetensorsReader, TensorInfo } from "./safetensors/file.ts";
export { loadSafetensors, openSafetensors } from "./safetensors/open.ts";
export { type SaveOptions, saveSafetensors } from "./safetensors/save.ts";
