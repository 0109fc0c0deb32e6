/** The server as OpenAI's client sees it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { noGrad, setBackend, tensor } from "../../src/index.ts";
import type { ModelServer } from "../../src/serve/server.ts";
import { within } from "../support/wait.ts";
import { holdAfter, randomLlama, restoreModel, showsFigures, start, textAlone, tokenizer } from "./served.ts";

const name = "tiny/llama";
const model = randomLlama();
let server: ModelServer;
let client: OpenAI;

const clientOf = (of: ModelServer, apiKey = "none") => new OpenAI({ baseURL: `${of.url}/v1`, apiKey, maxRetries: 0 });
const said = (content: string) => [{ role: "user", content } as const];
const promptOf = (content: string) => `<user>${content}\n<assistant>`;

beforeAll(async () => {
  setBackend("cpu");
  server = await start({}, model);
  client = clientOf(server);
});
afterAll(() => server.close(0));

describe("chats are answered by the model", () => {
  test("an answer is the model's text, with usage", async () => {
    const answer = await client.chat.completions.create({
      model: name,
      messages: said("Hi"),
      max_tokens: 12,
      temperature: 0,
    });
    expect(answer.object).toBe("chat.completion");
    expect(answer.choices).toHaveLength(1);
    expect(answer.choices[0].message).toEqual({
      role: "assistant",
      refusal: null,
      content: await textAlone(model, promptOf("Hi"), 12),
    });
    expect(answer.choices[0].finish_reason).toBe("length");
    const prompt = promptOf("Hi").length;
    expect(answer.usage).toMatchObject({
      prompt_tokens: prompt,
      completion_tokens: 12,
      total_tokens: prompt + 12,
    });
  });

  test("a stream has the same text in parts, a reason at the end, then usage", async () => {
    const stream = await client.chat.completions.create({
      model: name,
      messages: said("Hi"),
      max_tokens: 12,
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await Array.fromAsync(stream);
    expect(chunks[0].choices[0].delta.role).toBe("assistant");
    const texts = chunks.map(({ choices }) => choices[0]?.delta.content ?? "");
    expect(texts.join("")).toBe(await textAlone(model, promptOf("Hi"), 12));
    expect(texts.filter(Boolean).length).toBeGreaterThan(3);
    expect(chunks.map(({ choices }) => choices[0]?.finish_reason).filter(Boolean)).toEqual(["length"]);
    expect(chunks.at(-1)!.usage?.completion_tokens).toBe(12);
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
  });

  test("an answer ends before a stop text", async () => {
    const whole = await textAlone(model, promptOf("Hi"), 12);
    const stop = whole.slice(4, 6);
    const wanted = whole.slice(0, whole.indexOf(stop));
    for (const stream of [true, false]) {
      const options = { model: name, messages: said("Hi"), max_tokens: 12, temperature: 0, stop: ["never", stop] };
      if (stream) {
        const chunks = await Array.fromAsync(await client.chat.completions.create({ ...options, stream: true }));
        expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe(wanted);
        expect(chunks.at(-1)!.choices[0].finish_reason).toBe("stop");
      } else {
        const { choices } = await client.chat.completions.create(options);
        expect([choices[0].message.content, choices[0].finish_reason]).toEqual([wanted, "stop"]);
      }
    }
  });

  test("several choices differ, and a seed repeats them", async () => {
    const ask = async () => {
      const options = { model: name, messages: said("Hi"), max_tokens: 12, temperature: 1.5, n: 3, seed: -7 };
      return (await client.chat.completions.create(options)).choices.map(({ message }) => message.content);
    };
    const first = await ask();
    expect(new Set(first).size).toBe(3);
    expect(await ask()).toEqual(first);
  });

  test("log-probabilities come with each token", async () => {
    const { choices } = await client.chat.completions.create({
      model: name,
      messages: said("Hi"),
      max_tokens: 5,
      temperature: 0,
      logprobs: true,
      top_logprobs: 3,
    });
    const { content } = choices[0].logprobs!;
    expect(content).toHaveLength(5);
    for (const { logprob, top_logprobs } of content!) {
      expect(top_logprobs).toHaveLength(3);
      expect(logprob).toBe(top_logprobs[0].logprob); // greedy: the most likely token
      expect(logprob).toBeLessThan(0);
    }
  });
});

test("a completion continues one text, or several", async () => {
  const { choices, usage } = await client.completions.create({
    model: name,
    prompt: ["abc", "abcdef"],
    max_tokens: 6,
    temperature: 0,
    echo: true,
  });
  const wanted = ["abc", "abcdef"].map(async (text) => text + (await textAlone(model, text, 6)));
  expect(choices.map(({ text }) => text)).toEqual(await Promise.all(wanted));
  expect(usage).toMatchObject({ prompt_tokens: 9, completion_tokens: 12 });
  const tokens = [...new TextEncoder().encode("abc")];
  const stream = await client.completions.create({
    model: name,
    prompt: tokens,
    max_tokens: 6,
    temperature: 0,
    stream: true,
  });
  const parts = await Array.fromAsync(stream);
  expect(parts.map(({ choices: [choice] }) => choice.text).join("")).toBe(await textAlone(model, "abc", 6));
});

describe("echo has log-probabilities", () => {
  const prompts = ["abc", "x", "The quick brown fox jumps over the lazy dog. ".repeat(3)];
  const body = { model: name, prompt: prompts, max_tokens: 3, temperature: 0, echo: true, logprobs: 2 };

  /** The logarithms of probabilities of all tokens but the first, in float64. */
  async function chances(text: string): Promise<Float64Array[]> {
    const tokens = tokenizer.encode(text);
    using logits = noGrad(() => model.forward(tensor([[...tokens]], { dtype: "int32" })));
    const values = (await logits.data()) as Float32Array;
    return Array.from({ length: tokens.length - 1 }, (_, at) => {
      const row = Float64Array.from(values.subarray(at * 256, (at + 1) * 256));
      const sum = row.reduce((all, own) => all + Math.exp(own), 0);
      return row.map((own) => own - Math.log(sum));
    });
  }

  test("prompts and answers have log-probabilities, except for the first token", async () => {
    const { choices, usage } = await client.completions.create(body);
    for (const [at, { text, logprobs }] of choices.entries()) {
      const { tokens, token_logprobs, top_logprobs, text_offset } = logprobs!;
      expect(text).toBe(prompts[at] + (await textAlone(model, prompts[at], 3)));
      expect(tokens!.join("")).toBe(text);
      expect(text_offset).toEqual(tokens!.map((_, own) => tokens!.slice(0, own).join("").length));
      expect([token_logprobs![0], top_logprobs![0]]).toEqual([null, null] as never);
      for (const [own, row] of (await chances(prompts[at])).entries()) {
        expect(token_logprobs![own + 1]).toBeCloseTo(row[text.charCodeAt(own + 1)], 3);
        const best = Object.values(top_logprobs![own + 1]).sort((a, b) => b - a);
        expect(best[0]).toBeCloseTo(Math.max(...row), 3);
        expect(best.length).toBe(2);
      }
    }
    expect(usage!.completion_tokens).toBe(9);
  });

  test("a stream has the same texts and probabilities, also without generated tokens", async () => {
    const whole = await client.completions.create(body);
    const parts = await Array.fromAsync(await client.completions.create({ ...body, stream: true }));
    for (const [index, { text, logprobs }] of whole.choices.entries()) {
      const own = parts.flatMap(({ choices }) => choices.filter((each) => each.index === index));
      expect(own.map((each) => each.text).join("")).toBe(text);
      for (const name of ["tokens", "token_logprobs", "text_offset"] as const)
        expect(own.flatMap((each) => each.logprobs![name] as unknown[])).toEqual(logprobs![name] as unknown[]);
    }
    const { choices } = await client.completions.create({ ...body, max_tokens: 0 });
    expect(choices.map(({ text, finish_reason }) => [text, finish_reason])).toEqual(
      prompts.map((own) => [own, "length"]),
    );
    expect(choices[2].logprobs!.token_logprobs).toEqual(
      whole.choices[2].logprobs!.token_logprobs!.slice(0, prompts[2].length),
    );
  });

  test.each([
    [{ prompt: [[]] }, "prompt"],
    [{ prompt: [[1, 256]] }, "prompt"],
    [{ prompt: "a".repeat(256) }, "prompt"],
    [{ prompt: Array.from({ length: 17 }, () => "a") }, "n"],
  ])("%j is rejected", async (options, param) => {
    const error = await client.completions.create({ ...body, ...options } as never).catch((cause: unknown) => cause);
    expect(error).toMatchObject({ status: 400, param: expect.stringContaining(param) });
  });
});

test("embeddings are vectors of length 1, as numbers and in base64", async () => {
  const { data, usage } = await client.embeddings.create({ model: name, input: ["abc", "abd", "abc"] });
  const rows = data.map(({ embedding }) => embedding); // by default, the client requests base64
  expect(rows.map(({ length }) => length)).toEqual([32, 32, 32]);
  expect(rows[0].reduce((sum, value) => sum + value * value, 0)).toBeCloseTo(1, 5);
  expect(rows[2]).toEqual(rows[0]);
  expect(rows[1]).not.toEqual(rows[0]);
  expect(usage).toEqual({ prompt_tokens: 9, total_tokens: 9 });
  const short = { model: name, input: "abc", encoding_format: "float", dimensions: 5 } as const;
  const [first] = (await client.embeddings.create(short)).data;
  expect(first.embedding).toHaveLength(5);
  expect(first.embedding.reduce((sum, value) => sum + value * value, 0)).toBeCloseTo(1, 5);
});

test("the server lists its models", async () => {
  expect((await client.models.list()).data.map(({ id }) => id)).toEqual([name]);
  expect((await client.models.retrieve(name)).id).toBe(name);
});

describe("mistakes are returned in OpenAI's format", () => {
  const create = (options: object) =>
    client.chat.completions.create({ model: name, messages: said("Hi"), ...options } as never);

  test.each([
    [{ model: "other" }, 404, "model_not_found", "model"],
    [{ messages: [] }, 400, "invalid_value", "messages"],
    [
      { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "x" } }] }] },
      400,
      "no_images",
      "messages",
    ],
    [{ messages: [{ role: "user", content: [{ type: "input_audio" }] }] }, 400, "invalid_value", "messages.0.content"],
    [{ temperature: -1 }, 400, "invalid_value", "temperature"],
    [{ temperature: "hot" }, 400, "invalid_value", "temperature"],
    [{ max_tokens: 0 }, 400, "invalid_value", "max_tokens"],
    [{ n: 100 }, 400, null, "n"],
    [{ top_logprobs: 2 }, 400, null, "top_logprobs"],
    [{ tools: [{ type: "function", function: { name: "f" } }] }, 400, "no_tools", "tools"],
    [{ messages: [{ role: "tool", content: "4", tool_call_id: "a" }] }, 400, "refused", null],
    [{ messages: said("x".repeat(300)) }, 400, "context_length_exceeded", "messages"],
  ] as const)("the request %j is rejected", async (options, status, code, param) => {
    const error = await create(options).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(OpenAI.APIError);
    expect(error).toMatchObject({ status, code, param });
  });

  test.each([
    ["no path", "/v1/nothing", {}, 404],
    ["a wrong method", "/v1/chat/completions", {}, 405],
    ["another host", "/v1/models", { headers: { Host: "evil.example" } }, 403],
    ["a foreign page", "/v1/models", { headers: { Origin: "http://evil.example" } }, 403],
    ["no JSON", "/v1/completions", { method: "POST", body: "{", headers: { "Content-Type": "application/json" } }, 400],
    ["a form", "/v1/completions", { method: "POST", body: "a=b" }, 415],
    ["a damaged path", "/%ff", {}, 400],
  ] as const)("%s is rejected", async (_, path, init, status) => {
    const response = await fetch(server.url + path, init);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { message: expect.any(String), type: expect.any(String) } });
    expect(response.headers.get("access-control-allow-origin")).toBeNull();
  });
});

test("a key is checked, and required if other machines reach the server", async () => {
  const guarded = await start({ key: "secret", origins: ["http://app.example"] }, model);
  try {
    const wrong = await clientOf(guarded, "other")
      .models.list()
      .catch((error: unknown) => error);
    expect(wrong).toBeInstanceOf(OpenAI.AuthenticationError);
    expect((await clientOf(guarded, "secret").models.list()).data).toHaveLength(1);
    expect((await fetch(`${guarded.url}/metrics`)).status).toBe(401);
    expect(await (await fetch(`${guarded.url}/health`)).json()).toEqual({ status: "ok" });
    const page = await fetch(`${guarded.url}/health`, { headers: { Origin: "http://app.example" } });
    expect(page.headers.get("access-control-allow-origin")).toBe("http://app.example");
  } finally {
    await guarded.close(0);
  }
  await expect(start({ host: "0.0.0.0" }, model)).rejects.toThrow(/expected a key for the address 0.0.0.0/);
  await expect(start({ port: Number(new URL(server.url).port) }, model)).rejects.toThrow(
    expect.objectContaining({ code: "portTaken" }),
  );
});

test("bodies and waiting requests have limits", async () => {
  const small = await start({ limits: { bodyBytes: 1000 }, batcher: { slots: 1, queue: 1 } }, model);
  const own = clientOf(small);
  try {
    const ask = (content: string) =>
      own.chat.completions.create({ model: name, messages: said(content), max_tokens: 60 }).catch((error) => error);
    expect(await ask("x".repeat(1000))).toMatchObject({ status: 413, code: "body_too_large" });
    const goOn = holdAfter(model, 0);
    const asked = Array.from({ length: 6 }, (_, at) => ask(`${at}`));
    // The server answers no other request while the model waits.
    expect(await within("a refusal beside a full queue", Promise.race(asked))).toMatchObject({ status: 429 });
    goOn();
    const answers = await Promise.all(asked);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expect(answers.filter(({ choices }) => choices).length).toBe(6 - refused.length);
    expect(refused[0]!.headers.get("retry-after")).toBe("1");
  } finally {
    restoreModel(model);
    await small.close(0);
  }
});

test("requests run at the same time up to the limit", async () => {
  const small = await start({ limits: { connections: 2 } }, model);
  const own = clientOf(small);
  const goOn = holdAfter(model, 0); // holds both requests until the third arrives
  try {
    const options = { model: name, messages: said("Hi"), max_tokens: 100 };
    const open = [own.chat.completions.create(options), own.chat.completions.create({ ...options, stream: true })];
    await showsFigures(small, /requests_in_flight 3\n/); // includes the request for these figures
    const asked = own.chat.completions.create(options).catch((error: unknown) => error);
    const third = await within("the refusal of a third request", asked);
    expect(third).toMatchObject({ status: 429, code: "overloaded" });
    goOn();
    const [whole, stream] = await Promise.all(open);
    expect(whole).toMatchObject({ object: "chat.completion" });
    await Array.fromAsync(stream as AsyncIterable<unknown>);
    expect(await own.chat.completions.create({ ...options, max_tokens: 1 })).toMatchObject({
      object: "chat.completion",
    });
  } finally {
    goOn();
    await small.close(0);
  }
});

test("a text that takes too long is stopped", async () => {
  const hasty = await start({ limits: { seconds: 0.05 } }, model);
  const forward = model.forward.bind(model);
  try {
    model.forward = (tokens, inputs) => {
      Bun.sleepSync(20);
      return forward(tokens, inputs);
    };
    const options = { model: name, messages: said("Hi"), max_tokens: 100 };
    const error = await clientOf(hasty)
      .chat.completions.create(options)
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ status: 503, code: "timeout" });
  } finally {
    model.forward = forward;
    await hasty.close(0);
  }
});

test("64 clients at once, half of which disconnect: each of the others gets its answer", async () => {
  const busyServer = await start({ batcher: { slots: 8, queue: 64 } }, model);
  const own = clientOf(busyServer);
  try {
    const clients = Array.from({ length: 64 }, async (_, at) => {
      const content = `question ${at}`;
      const options = { model: name, messages: said(content), max_tokens: 6 + (at % 7), temperature: 0 };
      if (at % 2 === 1) {
        const stream = await own.chat.completions.create({ ...options, max_tokens: 100, stream: true });
        let parts = 0;
        for await (const _part of stream) if (++parts > at % 5) break;
        return undefined;
      }
      if (at % 4 === 0) return (await own.chat.completions.create(options)).choices[0].message.content!;
      const stream = await own.chat.completions.create({ ...options, stream: true });
      return (await Array.fromAsync(stream)).map(({ choices }) => choices[0]?.delta.content ?? "").join("");
    });
    const answers = await Promise.all(clients);
    for (let at = 0; at < 64; at += 2)
      expect(answers[at]).toBe(await textAlone(model, promptOf(`question ${at}`), 6 + (at % 7)));
    const metrics = await showsFigures(busyServer, /texts_active 0\n[\s\S]*texts_waiting 0\n/);
    expect(metrics).toMatch(/orchard_texts_total\{outcome="finished"\} (3[2-9]|[4-6]\d)\n/);
  } finally {
    await busyServer.close(0);
  }
});

test("an idle server closes at once", async () => {
  const idle = await start({}, model);
  expect((await fetch(`${idle.url}/health`)).status).toBe(200);
  await within("an idle server to close", idle.close(3600), 60);
});

test("closing lets requests finish, and accepts no more", async () => {
  const closing = await start({}, model);
  const options = { model: name, messages: said("Hi"), max_tokens: 40, temperature: 0 };
  const goOn = holdAfter(model, 6);
  const stream = await clientOf(closing).chat.completions.create({ ...options, stream: true });
  const text = Array.fromAsync(stream);
  const health = async () => {
    const answer = await fetch(`${closing.url}/health`);
    return [answer.status, await answer.json()];
  };
  expect(await health()).toEqual([200, { status: "ok" }]);
  const closed = closing.close(300);
  expect(await health()).toEqual([503, { status: "closing" }]);
  const asked = clientOf(closing)
    .chat.completions.create(options)
    .catch((error: unknown) => error);
  const refused = await within("the refusal of a request to a server that closes", asked);
  expect(refused).toMatchObject({ status: 503, code: "shutting_down" });
  goOn();
  expect((await text).map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe(
    await textAlone(model, promptOf("Hi"), 40),
  );
  await closed;
  await expect(fetch(`${closing.url}/health`)).rejects.toThrow();
});
