/** Parameters in the types of the OpenAI client: each is used, ignored as documented, or rejected. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type OpenAI from "openai";
import { setBackend } from "../../src/index.ts";
import type { ModelServer } from "../../src/serve/server.ts";
import { randomLlama, start } from "./served.ts";

let server: ModelServer;
beforeAll(async () => {
  setBackend("cpu");
  server = await start({}, randomLlama());
});
afterAll(() => server.close(0));

/** A value, and its treatment. The client's types determine the keys: without one, this file does not compile. */
type Fates<T> = Readonly<Record<keyof T, readonly [value: unknown, fate: "used" | "ignored" | "refused"]>>;

const shared = {
  model: ["tiny/llama", "used"],
  frequency_penalty: [0.5, "used"],
  presence_penalty: [0.5, "used"],
  logit_bias: [{ "65": 5 }, "used"],
  max_tokens: [2, "used"],
  n: [2, "used"],
  seed: [3, "used"],
  stop: [["x"], "used"],
  stream: [false, "used"],
  stream_options: [null, "used"],
  temperature: [0.5, "used"],
  top_p: [0.5, "used"],
  user: ["me", "ignored"],
} as const;

const chat: Fates<OpenAI.ChatCompletionCreateParams> = {
  ...shared,
  messages: [[{ role: "user", content: [{ type: "text", text: "a" }] }], "used"],
  max_completion_tokens: [2, "used"],
  logprobs: [true, "used"],
  top_logprobs: [null, "used"],
  response_format: [{ type: "text" }, "used"],
  tools: [[], "used"],
  tool_choice: ["none", "used"],
  parallel_tool_calls: [true, "used"],
  modalities: [["text"], "used"],
  metadata: [{ a: "b" }, "ignored"],
  store: [true, "ignored"],
  service_tier: ["auto", "ignored"],
  safety_identifier: ["a", "ignored"],
  prompt_cache_key: ["a", "ignored"],
  prompt_cache_retention: ["24h", "ignored"],
  prompt_cache_options: [{}, "ignored"],
  prediction: [{ type: "content", content: "a" }, "ignored"],
  audio: [{ voice: "a", format: "wav" }, "refused"],
  function_call: ["none", "refused"],
  functions: [[], "refused"],
  moderation: [{}, "refused"],
  reasoning_effort: ["low", "refused"],
  verbosity: ["low", "refused"],
  web_search_options: [{}, "refused"],
};

const completion: Fates<OpenAI.CompletionCreateParams> = {
  ...shared,
  prompt: ["a", "used"],
  best_of: [1, "used"],
  echo: [true, "used"],
  logprobs: [1, "used"],
  suffix: ["", "used"],
};

const embedding: Fates<OpenAI.EmbeddingCreateParams> = {
  model: shared.model,
  user: shared.user,
  input: ["a", "used"],
  dimensions: [3, "used"],
  encoding_format: ["float", "used"],
};

const response: Fates<OpenAI.Responses.ResponseCreateParams> = {
  model: ["tiny/llama", "used"],
  input: [[{ role: "user", content: [{ type: "input_text", text: "a" }] }], "used"],
  instructions: ["Be brief.", "used"],
  max_output_tokens: [2, "used"],
  include: [["message.output_text.logprobs"], "used"],
  parallel_tool_calls: [true, "used"],
  stream: [false, "used"],
  stream_options: [null, "used"],
  temperature: [0.5, "used"],
  text: [{ format: { type: "text" } }, "used"],
  tool_choice: ["none", "used"],
  tools: [[], "used"],
  top_logprobs: [2, "used"],
  top_p: [0.5, "used"],
  truncation: ["disabled", "used"],
  metadata: [{ a: "b" }, "ignored"],
  prompt_cache_key: ["a", "ignored"],
  prompt_cache_options: [{}, "ignored"],
  prompt_cache_retention: ["24h", "ignored"],
  safety_identifier: ["a", "ignored"],
  service_tier: ["auto", "ignored"],
  store: [false, "ignored"],
  user: ["me", "ignored"],
  access_programs: [{}, "refused"],
  background: [true, "refused"],
  context_management: [[], "refused"],
  conversation: ["conv_1", "refused"],
  image: [{}, "refused"],
  max_tool_calls: [1, "refused"],
  moderation: [{}, "refused"],
  previous_response_id: ["resp_1", "refused"],
  prompt: [{ id: "pmpt_1" }, "refused"],
  reasoning: [{ effort: "low" }, "refused"],
};

const [message] = [{ role: "user", content: "a" }];
const requests = [
  ["/v1/chat/completions", { model: "tiny/llama", messages: [message], max_tokens: 2 }, chat],
  ["/v1/completions", { model: "tiny/llama", prompt: "a", max_tokens: 2 }, completion],
  ["/v1/responses", { model: "tiny/llama", input: "a", max_output_tokens: 2 }, response],
  ["/v1/embeddings", { model: "tiny/llama", input: "a" }, embedding],
] as const;

const post = (path: string, body: object) =>
  fetch(server.url + path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json" },
  });

/** The treatment of a parameter, or of a value of it. */
const REFUSED = /^(unknown_parameter|invalid_value)$/;

test.each(requests)("%s: each parameter is used, rejected or documented as ignored", async (path, request, fates) => {
  const undocumented: string[] = [];
  const page = await Bun.file(new URL("../../docs/serving.md", import.meta.url)).text();
  for (const [name, [value, fate]] of Object.entries(fates)) {
    const response = await post(path, { ...request, [name]: value });
    const { error } = (await response.json()) as { error?: { param: string; code: string } };
    expect([name, response.status]).toEqual([name, fate === "refused" ? 400 : 200]);
    if (fate === "refused") expect(error).toMatchObject({ param: name, code: expect.stringMatching(REFUSED) });
    else if (fate === "ignored" && !page.includes(`\`${name}\``)) undocumented.push(name);
  }
  expect(undocumented).toEqual([]);
});

test.each(requests)("%s: the error for an unknown parameter names it", async (path, request) => {
  for (const name of ["temprature", "__proto__x", "a.b"]) {
    const response = await post(path, { ...request, [name]: 1 });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { param: name, code: "unknown_parameter" } });
  }
});

test("used parameters change the answer", async () => {
  const ask = async (options: object) => {
    const response = await post("/v1/chat/completions", {
      ...requests[0][1],
      temperature: 0,
      max_tokens: 8,
      ...options,
    });
    return (await response.json()) as OpenAI.ChatCompletion & { error?: { param: string } };
  };
  const textOf = ({ choices }: OpenAI.ChatCompletion) => choices[0].message.content!;
  const plain = textOf(await ask({}));
  expect(textOf(await ask({ max_completion_tokens: 3 }))).toBe(plain.slice(0, 3)); // takes precedence over max_tokens
  expect(textOf(await ask({ logit_bias: { 66: 100 } }))).toBe("BBBBBBBB");
  expect(textOf(await ask({ logit_bias: { [plain.charCodeAt(0)]: -100 } }))).not.toStartWith(plain[0]);
  expect((await ask({ n: 3 })).choices.map(({ index }) => index)).toEqual([0, 1, 2]);
  const seeded = async (seed: number) => textOf(await ask({ temperature: 2, seed }));
  expect(await seeded(5)).toBe(await seeded(5));
  expect(await seeded(5)).not.toBe(await seeded(6));
  const pushed = { logit_bias: { 66: 100 }, temperature: 0 };
  // each "B" reduces the bias of 100 by 2
  expect(textOf(await ask({ ...pushed, frequency_penalty: 2 }))).toBe("BBBBBBBB");
  expect(textOf(await ask({ ...pushed, logit_bias: { 66: 100, 67: 97 }, frequency_penalty: 2 }))).toInclude("C");
  expect(await ask({ stream_options: { include_usage: true } })).toMatchObject({ error: { param: "stream_options" } });
});
