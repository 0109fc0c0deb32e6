import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError } from "../../core/errors.ts";
import { instanceOf, listOf } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import { tidy } from "../../tensor/tidy.ts";
import { Wav2Vec2 } from "../models/wav2vec2/wav2vec2.ts";
import { type Classification, labeled } from "../tasks/classify.ts";
import { normalizedSamples } from "./ctc.ts";
import { SAMPLE_RATE } from "./features.ts";
import { type AudioInput, anInput, aSpeechRate, samplesOf } from "./samples.ts";

/** Options of {@link classifyAudio}. */
export interface ClassifyAudioOptions {
  /** Samples per second of audio that is a tensor: a whole number of at least 1000. Default 16,000. */
  readonly sampleRate?: number | undefined;
}

const readCall = parameters("classifyAudio", {
  model: operand(instanceOf(Wav2Vec2, "a Wav2Vec2 model")),
  recordings: operand(listOf(anInput, "a list of recordings")),
  sampleRate: named(aSpeechRate, SAMPLE_RATE),
});

/**
 * Classifies recordings, such as by keyword, language, emotion or speaker. Each recording is computed as a whole.
 *
 * @param model a wav2vec2, HuBERT or WavLM model with a classifier (`…ForSequenceClassification`)
 * @param recordings paths, results of `io.loadAudio`, or tensors of floats [samples] or [channels, samples]
 * @returns for each recording all labels, the most probable first. Probabilities of a recording add up to 1, except in
 * models for several labels at once
 *
 * @example
 * const { model } = await nn.loadModel<nn.Wav2Vec2>("superb/wav2vec2-base-superb-ks");
 * const [labels] = await nn.classifyAudio(model, ["word.wav"]);
 * labels[0]; // { label: "stop", score: 0.98 }
 *
 * @throws {ArgumentError} `otherTask` for a model without a classifier; for a rate below 1000. @throws {ShapeError}
 * @throws {DTypeError} for other tensors, and recordings of less than one frame. For paths, the errors of
 * `io.loadAudio`.
 */
export async function classifyAudio(
  model: Wav2Vec2,
  recordings: readonly AudioInput[],
  options?: ClassifyAudioOptions,
): Promise<Classification[][]>;
export async function classifyAudio(...values: unknown[]): Promise<Classification[][]> {
  const { model, recordings, sampleRate } = readCall(values);
  if (!model.projector)
    throw new ArgumentError("classifyAudio", "otherTask", "expected a model with a classifier, got a CTC model");
  const found: Classification[][] = [];
  for (const recording of recordings) {
    await yieldToEventLoop();
    using samples = await samplesOf(recording, sampleRate, "classifyAudio");
    using scores = noGrad(() =>
      tidy(() => {
        const given = (model.settings?.normalizes ?? true) ? normalizedSamples(samples) : samples;
        return toDType(model.forward(unsqueeze(given, 0)), "float32");
      }),
    );
    found.push(labeled(model, (await scores.data()) as Float32Array));
  }
  return found;
}
