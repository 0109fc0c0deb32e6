/** The implementation of `orchard transcribe`. */
import { mkdirSync } from "node:fs";
import { basename, extname, join } from "node:path";
import type { BackendName } from "../backend/names.ts";
import { setBackend } from "../backend/policy.ts";
import { ArgumentError, OrchardError } from "../core/errors.ts";
import { writeAtomically } from "../io/atomic.ts";
import { withFileErrors } from "../io/file_errors.ts";
import { loadModel } from "../nn/models/loading/load_model.ts";
import type { LoadableModel } from "../nn/models/loading/opened.ts";
import { Wav2Vec2 } from "../nn/models/wav2vec2/wav2vec2.ts";
import { Whisper } from "../nn/models/whisper/whisper.ts";
import { formatTranscription, type TranscriptFormat } from "../nn/speech/format.ts";
import { type SpeechModel, transcribe } from "../nn/speech/transcribe.ts";
import { loadOnnx } from "../onnx/load.ts";

export interface TranscribeFlags {
  readonly model: string;
  readonly format: TranscriptFormat;
  readonly out?: string;
  readonly language?: string;
  readonly task: "transcribe" | "translate";
  readonly wordTimestamps?: boolean;
  readonly initialPrompt?: string;
  /** The path of a voice activity detector. */
  readonly vad?: string;
  readonly backend?: BackendName;
  /** Whether to use only the cache, without a download. */
  readonly offline?: boolean;
}

/** Runs `orchard transcribe`. Returns the exit code. */
export async function runTranscribe(files: readonly string[], flags: TranscribeFlags): Promise<number> {
  const { model: path, format, out, backend, offline, vad: detector, ...options } = flags;
  try {
    if (backend) setBackend(backend);
    const targets = out === undefined ? undefined : targetsOf(files, out, format);
    const model = await loadSpeechModel("transcribe", path, offline);
    const vad = detector === undefined ? undefined : await loadOnnx(detector);
    for (const [at, file] of files.entries()) {
      const text = formatTranscription(await transcribe(model, file, { ...options, vad }), format);
      const target = targets?.[at];
      if (target === undefined) process.stdout.write(text);
      else {
        await writeAtomically("transcribe", target, (file) => file.write(Buffer.from(text)));
        console.log(`wrote ${target}`);
      }
    }
    return 0;
  } catch (error) {
    if (!(error instanceof OrchardError)) throw error;
    console.error(error.message);
    return 1;
  }
}

/** @throws {ArgumentError} `notSpeech` for another model. */
async function loadSpeechModel(operation: string, path: string, offline: boolean | undefined): Promise<SpeechModel> {
  const { model } = await loadModel<LoadableModel>(path, { offline });
  if (model instanceof Whisper || model instanceof Wav2Vec2) return model;
  throw new ArgumentError(operation, "notSpeech", `expected a speech recognition model, got another model in ${path}`);
}

/** @throws {ArgumentError} if two recordings would be written to one file. */
function targetsOf(files: readonly string[], folder: string, format: TranscriptFormat): string[] {
  withFileErrors("transcribe", folder, () => mkdirSync(folder, { recursive: true }));
  const targets = files.map((file) => join(folder, `${basename(file, extname(file))}.${format}`));
  const twice = targets.find((target, at) => targets.indexOf(target) !== at);
  if (twice === undefined) return targets;
  throw new ArgumentError(
    "transcribe",
    "sameName",
    `expected recordings with different names, got two that would be written to ${twice}`,
  );
}
