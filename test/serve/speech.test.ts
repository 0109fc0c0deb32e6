/** `orchard serve` and `orchard transcribe` with a speech recognition model. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import OpenAI, { toFile } from "openai";
import { packageRoot } from "../../src/core/paths.ts";
import { manualSeed, nn } from "../../src/index.ts";
import { loadAnyServed, loadServed } from "../../src/serve/load.ts";
import { ModelServer } from "../../src/serve/server.ts";
import type { ServedSpeech } from "../../src/serve/speech.ts";
import { cases, writeCtcModel } from "../nn/speech/ctc_oracle.ts";
import { audio, fixture, writeModel } from "../nn/speech/oracle.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";
import { start } from "./served.ts";

const folder = testFolder("speech");
const chosen = fixture.models.find(
  ({ english, timestamps, segments }) => !english && timestamps && segments.length > 2,
)!;
const file = folder.file("speech.wav");
let served: ServedSpeech;
let server: ModelServer;
let client: OpenAI;

/** A WAV file of 32-bit floats at 16 kHz. */
function wav(samples: Float32Array): Buffer {
  const head = Buffer.from(
    "RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x03\0\x01\0\x80\x3e\0\0\0\0\0\0\x04\0\x20\0data\0\0\0\0",
    "latin1",
  );
  head.writeUInt32LE(4 * samples.length, 40);
  return Buffer.concat([head, Buffer.from(samples.buffer)]);
}

beforeAll(async () => {
  await writeModel(folder.file("whisper"), chosen);
  writeFileSync(file, wav(audio(chosen.audio)));
  served = (await loadAnyServed(folder.file("whisper"))) as ServedSpeech;
  server = await ModelServer.start(served, { port: 0 });
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none" });
});
afterAll(() => server.close());

const request = () => toFile(readFileSync(file), "speech.wav");

/**
 * Only one temperature: all windows of a tiny model fail, and would be decoded at each temperature. The server uses the
 * global generator.
 */
const drawn = { temperature: 0.2, language: "de" };
const seeded = (): void => void manualSeed(3);

test("transcriptions with words are served to OpenAI's client", async () => {
  seeded();
  const wanted = await nn.transcribe(served.speech, file, { ...drawn, wordTimestamps: true });
  seeded();
  const verbose = await client.audio.transcriptions.create({
    ...drawn,
    model: "whisper",
    file: await request(),
    response_format: "verbose_json",
    timestamp_granularities: ["word", "segment"],
  });
  expect([verbose.text, verbose.language]).toEqual([wanted.text.trim(), "german"]);
  expect(verbose.duration).toBeCloseTo(wanted.duration, 6);
  expect(verbose.segments!.map(({ start, end, tokens }) => ({ start, end, tokens }))).toEqual(
    wanted.segments.map(({ start, end, tokens }) => ({ start, end, tokens: [...tokens] })),
  );
  expect(verbose.words).toEqual(
    wanted.segments.flatMap(({ words }) => words!.map(({ word, start, end }) => ({ word: word.trim(), start, end }))),
  );
});

test("translations are served to OpenAI's client", async () => {
  const { language: _, ...sampled } = drawn;
  seeded();
  const wanted = await nn.transcribe(served.speech, file, { ...sampled, task: "translate" });
  seeded();
  const given = { ...sampled, model: "whisper", file: await request() };
  expect((await client.audio.translations.create(given)).text).toBe(wanted.text.trim());
});

test.each(["json", "text", "srt", "vtt"] as const)("response_format %s has its form", async (format) => {
  seeded();
  const wanted = await nn.transcribe(served.speech, file, { ...drawn, initialPrompt: "a" });
  seeded();
  const got = (await client.audio.transcriptions.create({
    model: "whisper",
    file: await request(),
    prompt: "a",
    response_format: format,
    ...drawn,
  })) as string | { text: string };
  if (format === "json") expect((got as { text: string }).text).toBe(wanted.text.trim());
  else if (format === "text") expect(got).toBe(`${wanted.text.trim()}\n`);
  else expect(got).toBe(nn.formatTranscription(wanted, format));
});

test("wrong requests are rejected", async () => {
  const form = async (changes: Record<string, string | File>, path = "transcriptions", at = server) => {
    const body = new FormData();
    const fields = { file: await request(), model: "whisper", ...changes };
    for (const [name, value] of Object.entries(fields)) if (value !== "none") body.append(name, value as string);
    const response = await fetch(`${at.url}/v1/audio/${path}`, { method: "POST", body });
    return [response.status, await response.text()];
  };
  const slow = wav(new Float32Array(16_385));
  slow.writeUInt32LE(1, 24); // one sample per second
  const cases: [Record<string, string | File>, number, string][] = [
    [{ language: "fr" }, 400, "expected a language of whisper (en, de, ja)"],
    [{ temperature: "2" }, 400, "from 0 to 1"],
    [{ temperature: "x" }, 400, "expected a number"],
    [{ stream: "true" }, 400, "not supported"],
    [{ model: "other" }, 404, "expected the model whisper"],
    [{ file: "none" }, 400, "expected a file"],
    [{ file: new File(["OggS"], "a.ogg") }, 400, "expected a WAV, FLAC or MP3 file"],
    [{ file: new File([slow], "slow.wav") }, 400, "expected at most 16384 seconds"],
    [{ response_format: "xml" }, 400, "response_format"],
    [{ unknown: "1" }, 400, "unknown or unsupported parameter"],
  ];
  for (const [changes, status, message] of cases)
    expect(await form(changes)).toEqual([status, expect.stringContaining(message)]);
  const json = await fetch(`${server.url}/v1/audio/transcriptions`, {
    method: "POST",
    body: "{}",
    headers: { "Content-Type": "application/json" },
  });
  expect([json.status, await json.text()]).toEqual([415, expect.stringContaining("multipart/form-data")]);
  const chat = await fetch(`${server.url}/v1/completions`, {
    method: "POST",
    body: JSON.stringify({ model: "whisper", prompt: "a" }),
    headers: { "Content-Type": "application/json" },
  });
  expect([chat.status, await chat.text()]).toEqual([404, expect.stringContaining("recognizes speech")]);
  const other = await start();
  try {
    expect(await form({ model: "tiny/llama" }, "transcriptions", other)).toEqual([
      404,
      expect.stringContaining("does not recognize speech"),
    ]);
  } finally {
    await other.close();
  }
  const small = await ModelServer.start(served, { port: 0, limits: { formBytes: 1000 } });
  expect(await form({}, "transcriptions", small)).toEqual([413, expect.stringContaining("at most 1000 bytes")]);
  await small.close();
  expect(loadServed(folder.file("whisper"))).rejects.toThrow("got a speech recognition model");
});

test("a CTC model is served", async () => {
  const [own] = cases;
  await writeCtcModel(folder.file("ctc"), own);
  const ctc = (await loadAnyServed(folder.file("ctc"))) as ServedSpeech;
  const wanted = await nn.transcribe(ctc.speech, file, { wordTimestamps: true });
  const small = await ModelServer.start(ctc, { port: 0 });
  try {
    const { audio: api } = new OpenAI({ baseURL: `${small.url}/v1`, apiKey: "none", maxRetries: 0 });
    const given = { model: "ctc", file: await request() };
    const verbose = await api.transcriptions.create({
      ...given,
      response_format: "verbose_json",
      timestamp_granularities: ["word"],
    });
    expect(verbose.text).toBe(wanted.text);
    expect(verbose.words).toHaveLength(wanted.segments.flatMap(({ words = [] }) => words).length);
    const messageOf = (sent: PromiseLike<unknown>) => sent.then(String, (error: Error) => error.message);
    for (const change of [{ language: "de" }, { prompt: "a" }, { temperature: 0.5 }])
      expect(await messageOf(api.transcriptions.create({ ...given, ...change }))).toContain("the model ctc has no");
    expect(await messageOf(api.translations.create(given))).toContain("the model ctc can't translate");
  } finally {
    await small.close();
  }
});

test("orchard transcribe writes a transcript with the times of words", async () => {
  const run = (...words: string[]) => {
    const command = [...bunWords, "src/cli/orchard.ts", "transcribe", file, "--model", folder.file("whisper")];
    const { stdout, stderr, exitCode } = Bun.spawnSync([...command, ...words], { cwd: packageRoot });
    return [exitCode, stdout.toString(), stderr.toString()];
  };
  const out = folder.file("out");
  expect(run("--language", "de", "--format", "json", "--word-timestamps", "--out", out)).toEqual([
    0,
    `wrote ${out}/speech.json\n`,
    "",
  ]);
  const { language, task, segments } = JSON.parse(readFileSync(`${out}/speech.json`, "utf8"));
  expect([language, task]).toEqual(["de", "transcribe"]);
  type Timed = { readonly start: number; readonly end: number };
  const timed = (segments as { readonly words: readonly Timed[] }[]).flatMap(({ words }) => words);
  expect(timed.length).toBeGreaterThan(0);
  for (const { start, end } of timed) expect(end).toBeGreaterThanOrEqual(start);
  expect(run("--language", "fr")).toEqual([
    1,
    "",
    expect.stringContaining("expected language to be one of en, de, ja"),
  ]);
});
