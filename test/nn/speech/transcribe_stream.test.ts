/** Transcripts of audio that arrives in pieces, compared with those of the whole recording. */
import { expect, test } from "bun:test";
import { nn, tensor } from "../../../src/index.ts";
import { Random } from "../../ops/samples.ts";
import { testFolder } from "../../support/folder.ts";
import { audio, fixture, loadSpeech } from "./oracle.ts";

const folder = testFolder("stream");
const greedy = {
  temperature: 0,
  compressionRatioThreshold: Infinity,
  logProbabilityThreshold: -Infinity,
  noSpeechThreshold: Infinity,
} as const;

/** Audio whose loudest frame is in the first window, so that features do not depend on what follows. */
function samplesOf(given: Parameters<typeof audio>[0]): Float32Array {
  const samples = Float32Array.from(audio(given));
  samples.fill(4, 800, 900);
  return samples;
}

async function* pieces(samples: Float32Array, random: Random, most: number) {
  for (let first = 0; first < samples.length; ) {
    const size = random.integer(1, most);
    const part = samples.slice(first, first + size);
    yield random.integer(0, 1) ? part : tensor(part);
    await Promise.resolve();
    first += size;
  }
}

async function streamed(model: nn.Whisper, chunks: AsyncIterable<nn.AudioChunk>, options: nn.TranscribeStreamOptions) {
  const segments: nn.TranscriptionSegment[] = [];
  const stream = nn.transcribeStream(model, chunks, options);
  for (;;) {
    const { value, done } = await stream.next();
    if (done) return { segments, transcript: value };
    segments.push(value);
  }
}

test.each([...fixture.models.entries()])(
  "model %d: pieces have the segments of the whole recording",
  async (at, each) => {
    const random = new Random(at + 1);
    const model = await loadSpeech(folder.file(`model${at}`), each);
    const samples = samplesOf(each.audio);
    const { timestamps, condition: conditionOnPreviousText, maxTokens } = each;
    const options = { ...greedy, timestamps, conditionOnPreviousText, maxTokens };
    const whole = await nn.transcribe(model, tensor(samples), options);
    const { segments, transcript } = await streamed(
      model,
      pieces(samples, random, [60_000, 2000, 161][at % 3]),
      options,
    );
    expect(segments.map(({ tokens, start, end }) => ({ tokens, start, end }))).toEqual(
      whole.segments.map(({ tokens, start, end }) => ({ tokens, start, end })),
    );
    expect([transcript.text, transcript.duration, transcript.language]).toEqual([
      whole.text,
      whole.duration,
      whole.language,
    ]);
    expect(transcript.segments).toEqual(segments);
  },
);

test("segments of a window come before the samples of later windows", async () => {
  const each = fixture.models.find(({ english }) => !english)!;
  const model = await loadSpeech(folder.file("early"), each);
  const window = model.windowFrames * 160;
  let asked = 0;
  async function* chunks() {
    for (; asked < 5; asked++) yield samplesOf({ ...each.audio, samples: Math.floor(window / 2) });
  }
  const stream = nn.transcribeStream(model, chunks(), { ...greedy, language: "en", timestamps: false, maxTokens: 8 });
  await stream.next();
  expect(asked).toBeLessThan(4);
  await stream.return(undefined as never);
});

test("an empty recording has no segments", async () => {
  const model = await loadSpeech(folder.file("empty"), fixture.models[0]);
  const { segments, transcript } = await streamed(model, pieces(new Float32Array(0), new Random(1), 1), greedy);
  expect([segments, transcript.text, transcript.duration]).toEqual([[], "", 0]);
});

test("pieces that are not samples are rejected", async () => {
  const model = await loadSpeech(folder.file("refusing"), fixture.models[0]);
  const call = (...values: unknown[]) => (nn.transcribeStream as (...values: unknown[]) => AsyncGenerator)(...values);
  expect(() => call(model, new Float32Array(8))).toThrow("expected audio to be an iterable of samples");
  for (const [chunk, problem] of [
    [[0.5], "Float32Arrays or tensors"],
    [tensor([1, 2], { dtype: "int32" }), "expected samples to be floats"],
    [tensor([[0.5]]), "expected samples to be [samples]"],
  ] as const)
    await expect(call(model, [chunk]).next()).rejects.toThrow(problem);
});
