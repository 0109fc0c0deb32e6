/** The public namespace `io`: files of tensors, and ONNX models, which are modules. */
export * from "../io/index.ts";
export { OnnxError } from "./errors.ts";
export { type LoadOnnxOptions, loadOnnx } from "./load.ts";
export type { OnnxModel, OnnxTensorOrSequence, OnnxValue } from "./model.ts";
export type { OnnxMap, OnnxStrings } from "./strings.ts";
export { type SaveOnnxOptions, saveOnnx } from "./write/save.ts";
