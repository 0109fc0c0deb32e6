/** Transcripts, features, alignment and gradients of tiny models, against `transformers` and SciPy. */
import { expect, test } from "bun:test";
import { nn, noGrad, signal, tensor } from "../../../src/index.ts";
import { findWords } from "../../../src/nn/speech/find_words.ts";
import { piecesOf } from "../../../src/nn/speech/segments.ts";
import { mergePunctuation, wordsOf } from "../../../src/nn/speech/words.ts";
import { testFolder } from "../../support/folder.ts";
import { errorOf, weight } from "../models/encoder/oracle.ts";
import { audio, END, FIRST_TIME, fixture, loadSpeech, shapesOf, tensors } from "./oracle.ts";

const folder = testFolder("speech");
/** Greedy decoding that never fails, as `generate` with one temperature. */
const greedy = { temperature: 0, compressionRatioThreshold: Infinity, logProbabilityThreshold: -Infinity };

test("features match WhisperFeatureExtractor", () => {
  for (const nMels of [80, 128]) {
    const got = nn.logMelFeatures(tensor(audio({ seed: 1, samples: 20_000 })), { nMels });
    expect(got.shape).toEqual([nMels, 125]);
    const kept = got.indexSelect(1, tensor([0, 16, 32, 48, 64, 80, 96, 112], { dtype: "int32" }));
    expect(errorOf(kept, tensors[`features${nMels}`])).toBeLessThan(1e-5);
  }
});

test("transcripts have the tokens and times of transformers' generate", async () => {
  for (const [at, each] of fixture.models.entries()) {
    const model = await loadSpeech(folder.file(`model${at}`), each);
    const { language, task, english, timestamps, condition: conditionOnPreviousText, maxTokens, noSpeech } = each;
    const named = english ? {} : { language: language ?? undefined, task };
    const checks = noSpeech === null ? {} : { noSpeechThreshold: noSpeech, logProbabilityThreshold: 0 };
    const { segments } = await nn.transcribe(model, tensor(audio(each.audio)), {
      ...greedy,
      noSpeechThreshold: Infinity,
      timestamps,
      conditionOnPreviousText,
      maxTokens,
      ...named,
      ...checks,
    });
    expect({ at, tokens: segments.map(({ tokens }) => [...tokens]) }).toEqual({
      at,
      tokens: each.segments.map(({ tokens }) => tokens),
    });
    for (const [index, { start, end }] of segments.entries()) {
      expect(start).toBeCloseTo(each.segments[index].start, 4);
      // `generate` rounds the end of a window without times down to 20 ms, and an exact multiple sometimes to the
      // previous one
      expect(end - each.segments[index].end).toBeWithin(-1e-4, 0.0301);
    }
  }
});

test("tokens of a window are split as transformers splits them", () => {
  for (const { tokens, frames, segments, advance } of fixture.pieces) {
    const got = piecesOf(tokens, FIRST_TIME, frames);
    expect({ tokens, advance: got.advance }).toEqual({ tokens, advance });
    for (const [at, { start, end, tokens: part }] of got.pieces.entries()) {
      const wanted = segments[at];
      // `transformers` leaves the first of two times at the end in the last segment
      expect(wanted.tokens.slice(0, part.length)).toEqual([...part]);
      expect(wanted.tokens.length - part.length).toBeWithin(0, 2);
      expect([start, Math.abs(end - wanted.end) < 0.0301]).toEqual([expect.closeTo(wanted.start, 4), true]);
    }
    expect(got.pieces.length).toBe(segments.length);
  }
});

test("words and joined punctuation match transformers", () => {
  const decoder = {
    decode: (tokens: Iterable<number>) => Buffer.from([...tokens].filter((token) => token < END)).toString(),
  };
  for (const { tokens, spaced, words, parts, joined } of fixture.words) {
    const got = wordsOf(tokens, decoder, { language: spaced ? "en" : "ja", endToken: END });
    expect(got.map(({ word }) => word)).toEqual(words);
    expect(got.map((word) => [...word.tokens])).toEqual(parts);
    mergePunctuation(got);
    expect(got.flatMap(({ word }) => word || [])).toEqual(joined);
  }
});

test("tokens are aligned as by transformers' median filter and dynamic time warping", async () => {
  for (const [at, each] of fixture.alignments.entries()) {
    const model = await loadSpeech(folder.file(`alignment${at}`), each);
    const { startToken, languages, tasks } = model.settings!;
    const { max_source_positions: positions, num_mel_bins: nMels } = each.config;
    const samples = new Float32Array(320 * 2 * positions);
    samples.set(audio({ seed: each.audio.seed, samples: 320 * positions }));
    const features = nn.logMelFeatures(tensor(samples), { nMels }).slice({ dim: 1, end: 2 * positions });
    const words = await findWords(model, {
      states: noGrad(() => model.encode(features.unsqueeze(0))),
      tokens: each.tokens,
      frames: 2 * positions,
      language: "ja",
      tokenizer: model.tokenizer!,
      start: each.english ? [startToken] : [startToken, languages.get("en")!, tasks.get("transcribe")!],
      settings: { ...model.settings!, alignmentHeads: each.heads },
    });
    expect(words.map(({ start }) => Math.round(start * 50))).toEqual(each.starts.slice(0, -1));
    expect(words.map(({ end }) => Math.round(end * 50))).toEqual(each.starts.slice(1));
    for (const [index, { probability }] of words.entries()) expect(probability).toBeCloseTo(each.chances[index], 5);
  }
});

test("logits, loss and gradients match transformers", async () => {
  const { config, shapes, tokens, loss, gradients } = fixture.training;
  expect(shapesOf(config)).toEqual(shapes);
  const model = await loadSpeech(folder.file("training"), fixture.training);
  const x = weight("features", [2, config.num_mel_bins, 2 * config.max_source_positions]);
  const logits = model.forward(
    x,
    tensor(
      tokens.map((row) => row.slice(0, -1)),
      { dtype: "int32" },
    ),
  );
  expect(errorOf(logits, tensors["logits"])).toBeLessThan(1e-5);
  const targets = tensor(
    tokens.flatMap((row) => row.slice(1)),
    { dtype: "int32" },
  );
  const got = new nn.CrossEntropyLoss().forward(logits.reshape([-1, config.vocab_size]), targets);
  expect(got.item()).toBeCloseTo(loss, 4);
  got.backward();
  const largest = Math.max(...Object.values(gradients).map(Math.abs));
  const found = model.namedParameters();
  expect(found.size).toBe(Object.keys(shapes).length);
  for (const [name, product] of Object.entries(gradients)) {
    const parameter = found.get(pathOf(name))!;
    const pattern = weight(`${name}?`, shapes[name]);
    expect(Math.abs((parameter.grad!.mul(pattern).sum().item() as number) - product) / largest).toBeLessThan(1e-4);
  }
});

/** Converts `transformers`' name of a parameter. */
function pathOf(name: string): string {
  const parts: Record<string, string> = {
    q_proj: "query",
    k_proj: "key",
    v_proj: "value",
    out_proj: "output",
    self_attn: "attention",
    encoder_attn: "crossAttention",
    self_attn_layer_norm: "attentionNorm",
    fc1: "feedForward.up",
    encoder_attn_layer_norm: "crossNorm",
    final_layer_norm: "feedForwardNorm",
    fc2: "feedForward.down",
  };
  const renamed = name
    .replace(/^model\.encoder\.layers/, "encoderBlocks")
    .replace(/^model\.decoder\.layers/, "blocks")
    .replace("model.encoder.layer_norm", "encoderNorm")
    .replace("model.decoder.layer_norm", "finalNorm")
    .replace("model.encoder.embed_positions", "audioPositionEmbedding")
    .replace("model.decoder.embed_positions", "positionEmbedding")
    .replace("model.decoder.embed_tokens", "tokenEmbedding")
    .replace("model.encoder.", "");
  return renamed
    .split(".")
    .map((part) => parts[part] ?? part)
    .join(".");
}

test("resampling matches scipy.signal.resample_poly", () => {
  for (const { rates, samples, result } of fixture.resampled) {
    const x = weight(`signal${samples}`, [samples]).double();
    const got = signal.resample(x, rates[0], rates[1]);
    expect(got.shape).toEqual([result.length]);
    const values = got.dataSync() as Float64Array;
    for (const [at, value] of result.entries()) expect(Math.abs(values[at] - value)).toBeLessThan(1e-11);
  }
});
