/** `orchard serve` and `orchard embed` with encoders. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import OpenAI from "openai";
import { packageRoot } from "../../src/core/paths.ts";
import { io, nn } from "../../src/index.ts";
import type { ServedEncoder } from "../../src/serve/encoders.ts";
import { loadAnyServed, loadServed } from "../../src/serve/load.ts";
import { ModelServer } from "../../src/serve/server.ts";
import { folderOf } from "../nn/tasks/models.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";
import { start } from "./served.ts";

const folder = testFolder("encoders");
const texts = ["wrote the first letter?", "Ada", "Grace said: I'm"];
const servers: ModelServer[] = [];
let [embedder, ranker]: ServedEncoder[] = [];
let [embedding, ranking]: ModelServer[] = [];

async function served(name: "classify" | "regress", isBare = false): Promise<[ServedEncoder, ModelServer]> {
  const own = (await loadAnyServed(await folderOf(folder.file(name), name, { isBare }))) as ServedEncoder;
  const server = await ModelServer.start(own, { port: 0 });
  servers.push(server);
  return [own, server];
}

beforeAll(async () => {
  [embedder, embedding] = await served("classify", true);
  [ranker, ranking] = await served("regress");
});
afterAll(async () => {
  for (const server of servers) await server.close();
});

async function post(server: ModelServer, path: string, body: object) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(`${server.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: response.status, json: (await response.json()) as Record<string, never> };
}

test("embeddings are served to OpenAI's client", async () => {
  const client = new OpenAI({ baseURL: `${embedding.url}/v1`, apiKey: "none" });
  const { data, usage } = await client.embeddings.create({ model: "classify", input: texts });
  const wanted = await nn.embed(embedder.encoder, texts);
  expect(data.flatMap((own) => own.embedding)).toEqual(Array.from(wanted.dataSync()));
  const counts = texts.map((text) => embedder.tokenizer.encode(text).length);
  expect(usage.total_tokens).toBe(counts.reduce((sum, count) => sum + count, 0));
  const short = await client.embeddings.create({ model: "classify", input: texts[0], dimensions: 4 });
  expect(Math.hypot(...short.data[0].embedding)).toBeCloseTo(1, 6);
  const tokens = embedder.tokenizer.encode(texts[0]);
  const same = await client.embeddings.create({ model: "classify", input: tokens });
  expect(same.data[0].embedding).toEqual(data[0].embedding);
});

test.each(["/v1/rerank", "/v2/rerank"])("%s answers as Jina's and Cohere's clients expect", async (path) => {
  const documents = path === "/v1/rerank" ? texts.map((text) => ({ text })) : texts;
  const { status, json } = await post(ranking, path, { model: "regress", query: "who wrote", documents, top_n: 2 });
  const wanted = await nn.rerank(ranker.encoder, "who wrote", texts, { topK: 2 });
  const results = wanted.map(({ index, score }) => ({
    index,
    relevance_score: score,
    ...(path === "/v1/rerank" && { document: { text: texts[index] } }),
  }));
  expect([status, json["results"]]).toEqual([200, results as never]);
});

test("requests that the model can't answer are rejected", async () => {
  const rerank = { model: "classify", query: "a", documents: ["b"] };
  const embed = { model: "classify", input: "Ada" };
  const cases: [ModelServer, string, object, number, string][] = [
    [embedding, "/v1/rerank", rerank, 400, "is not a cross-encoder"],
    [embedding, "/v1/completions", { model: "classify", prompt: "a" }, 404, "is an encoder"],
    [embedding, "/v1/embeddings", { ...embed, dimensions: 17 }, 400, "at most 16 dimensions"],
    [embedding, "/v1/embeddings", { ...embed, prompt_name: "query" }, 400, "expected a prompt of the model (none)"],
    [embedding, "/v1/embeddings", { ...embed, input: [99_999] }, 400, "expected tokens from 0"],
    [embedding, "/v1/embeddings", { ...embed, model: "other" }, 404, "expected the model classify"],
    [await start(), "/v1/rerank", { ...rerank, model: "tiny/llama" }, 404, "is not a cross-encoder"],
  ];
  servers.push(cases.at(-1)![0]);
  for (const [server, path, body, status, message] of cases) {
    const got = await post(server, path, body);
    expect([got.status, JSON.stringify(got.json)]).toEqual([status, expect.stringContaining(message)]);
  }
  expect(loadServed(folder.file("classify"))).rejects.toThrow("expected a language model, got the encoder bert");
});

test("orchard embed writes the vectors of a file's lines", async () => {
  const [file, out] = [folder.file("texts.txt"), folder.file("vectors.npy")];
  writeFileSync(file, `${texts.join("\n")}\n`);
  const words = ["embed", file, "--model", folder.file("classify"), "--out", out, "--batch", "2"];
  const run = () => Bun.spawnSync([...bunWords, "src/cli/orchard.ts", ...words], { cwd: packageRoot });
  expect(run().stdout.toString()).toBe(`wrote 3 vectors of 16 numbers to ${out}\n`);
  const wanted = await nn.embed(embedder.encoder, texts);
  expect(Array.from(io.loadNpy(out).dataSync(), Number)).toEqual(Array.from(wanted.dataSync()));
  writeFileSync(file, "");
  const { stderr, exitCode } = run();
  expect([exitCode, stderr.toString()]).toEqual([1, expect.stringContaining("expected at least one line")]);
});

test("texts with far too many tokens are not encoded completely", async () => {
  const long = "wrote the first letter ".repeat(150_000);
  let longest = 0;
  const encode: ServedEncoder["tokenizer"]["encode"] = (text, options) => {
    longest = Math.max(longest, text.length);
    return ranker.tokenizer.encode(text, options);
  };
  const tokenizer = Object.assign(Object.create(ranker.tokenizer), { encode });
  const own = await ModelServer.start({ ...ranker, tokenizer }, { port: 0, limits: { tokens: 100 } });
  try {
    for (const [path, body, param] of [
      ["/v1/embeddings", { input: [long] }, "input"],
      ["/v1/rerank", { query: long, documents: ["a"] }, "query"],
      ["/v1/rerank", { query: "a", documents: ["a", long] }, "documents"],
      ["/v1/rerank", { query: "Ada wrote", documents: Array(60).fill("Ada") }, "documents"],
    ] as const) {
      const { status, json } = await post(own, path, { model: "regress", ...body });
      expect([status, json["error"]]).toEqual([
        400,
        expect.objectContaining({ message: "expected at most 100 tokens in total, got more", param }) as never,
      ]);
    }
    expect(longest).toBeLessThan(10_000);
  } finally {
    await own.close(0);
  }
});
