/** Requests at the limits of HTTP and of the server: answered in the API's format, never with 5xx. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect } from "node:net";
import * as fc from "fast-check";
import { setBackend } from "../../src/index.ts";
import { ModelServer } from "../../src/serve/server.ts";
import { served, start, tokenizer } from "./served.ts";

let server: ModelServer;
beforeAll(async () => {
  setBackend("cpu");
  server = await start();
});
afterAll(() => server.close(0));

/** Sends bytes, and reads until the server closes or the answer is complete. */
const raw = (parts: readonly (string | Uint8Array)[], to: ModelServer = server) =>
  new Promise<string>((resolve) => {
    let text = "";
    const socket = connect(Number(new URL(to.url).port), "127.0.0.1", () => {
      for (const part of parts) socket.write(part);
    });
    socket.on("data", (part) => {
      text += part;
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? Number.NaN);
      if (text.length >= text.indexOf("\r\n\r\n") + 4 + length) socket.destroy();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(text));
  });
const statusOf = (answer: string) => Number(/^HTTP\/1.1 (\d+)/.exec(answer)?.[1] ?? 0);
const errorOf = (answer: string) => JSON.parse(answer.slice(answer.indexOf("\r\n\r\n"))).error as { message: string };

test.each([
  "GET /v1/models HTTP/1.0\r\n\r\n",
  "GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:80@x\r\n\r\n",
  "GET /v1/models HTTP/1.1\r\nHost: [::1\r\n\r\n",
  "GET /v1/models HTTP/1.1\r\nHost: localhost:99999\r\n\r\n",
  "POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
])("%j is answered with 400", async (bytes) => {
  const answer = await raw([bytes]);
  expect([statusOf(answer), errorOf(answer).message]).toEqual([400, expect.stringMatching(/Host/)]);
});

test("regardless of the Host, the answer is never 5xx", async () => {
  const host = fc.oneof(
    fc.string({ unit: fc.constantFrom(..."localhost127.0.0.1:80@/\\[]%#?&= \t") }),
    fc.webAuthority({ withUserInfo: true, withPort: true, withIPv6: true }),
  );
  await fc.assert(
    fc.asyncProperty(host, fc.constantFrom("1.0", "1.1"), async (own, version) => {
      const answer = await raw([`GET /health HTTP/${version}\r\nHost: ${own}\r\nConnection: close\r\n\r\n`]);
      expect([own, statusOf(answer) < 500]).toEqual([own, true]);
    }),
    { numRuns: 150, seed: 2 },
  );
});

const deep = (levels: number) => `${'{"items":'.repeat(levels)}true${"}".repeat(levels)}`;
const withSchema = (schema: string) =>
  `{"model":"tiny/llama","messages":[{"role":"user","content":"a"}],"max_tokens":1,"response_format":` +
  `{"type":"json_schema","json_schema":{"name":"a","schema":${schema}}}}`;
const post = (path: string, body: string, to: ModelServer = server) =>
  fetch(to.url + path, { method: "POST", body, headers: { "Content-Type": "application/json" } });

test.each([66, 200, 260, 5000, 200_000])("a schema of %d levels is answered with 400", async (levels) => {
  const response = await post("/v1/chat/completions", withSchema(deep(levels)));
  const { error } = (await response.json()) as { error: { message: string } };
  expect([response.status, error.message]).toEqual([400, expect.stringMatching(/at most \d+ nested levels/)]);
});

test("brackets within texts do not count as levels", async () => {
  const content = `${'["'.repeat(2000)}\\`;
  const response = await post(
    "/v1/chat/completions",
    JSON.stringify({
      model: "tiny/llama",
      messages: [{ role: "user", content: content.slice(0, 150) }],
      max_tokens: 1,
      metadata: { content },
    }),
  );
  expect(response.status).toBe(200);
});

test("bodies over the limit get a readable 413, however they are sent", async () => {
  const small = await start({ limits: { bodyBytes: 10_000 } });
  try {
    for (const size of [10_001, 30_000, 3_000_000]) {
      const whole = await post("/v1/completions", "x".repeat(size), small);
      expect([whole.status, await whole.json()]).toEqual([
        413,
        {
          error: expect.objectContaining({
            code: "body_too_large",
            message: expect.stringMatching(/at most 10000 bytes/),
          }),
        },
      ]);
      const head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
      const plain = await raw([`${head}Content-Length: ${size}\r\n\r\n`, "x".repeat(size)], small);
      const chunked = await raw(
        [`${head}Transfer-Encoding: chunked\r\n\r\n`, `${size.toString(16)}\r\n${"x".repeat(size)}\r\n0\r\n\r\n`],
        small,
      );
      for (const answer of [plain, chunked])
        expect([statusOf(answer), errorOf(answer).message]).toEqual([
          413,
          expect.stringMatching(/at most 10000 bytes/),
        ]);
    }
  } finally {
    await small.close(0);
  }
});

test("a prompt that is far too long is rejected before it is encoded completely", async () => {
  let longest = 0;
  const encode: typeof tokenizer.encode = (text) => {
    longest = Math.max(longest, text.length);
    return tokenizer.encode(text);
  };
  const own = await ModelServer.start(
    { ...served(), tokenizer: Object.assign(Object.create(tokenizer), { encode }) },
    { port: 0 },
  );
  const prompt = "a b".repeat(1_000_000);
  try {
    for (const [path, body] of [
      ["/v1/completions", { prompt }],
      ["/v1/completions", { prompt: ["a", prompt] }],
      ["/v1/chat/completions", { messages: [{ role: "user", content: prompt }] }],
      ["/v1/embeddings", { input: prompt }],
    ] as const) {
      const response = await post(path, JSON.stringify({ model: "tiny/llama", ...body }), own);
      const { error } = (await response.json()) as { error: { code: string; message: string } };
      expect([response.status, error.code]).toEqual([400, "context_length_exceeded"]);
    }
    expect(longest).toBeLessThan(10_000);
  } finally {
    await own.close(0);
  }
});

const chatOf = (more: object) => ({ model: "tiny/llama", messages: [{ role: "user", content: "a" }], ...more });
const partsOf = (count: number) => Array.from({ length: count }, () => ({ type: "text", text: "" }));
const completionOf = (prompt: readonly unknown[]) => ({ model: "tiny/llama", prompt });
const pairs = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [at % 256, 0]));

test.each([
  ["properties", /:/g, { a: 1 }, 0, 32_768],
  ["values", /,/g, 1, 1, 262_144],
] as const)(
  "a body with as many %s as are allowed is accepted, and with one more rejected",
  async (what, mark, item, more, limit) => {
    const bodyOf = (count: number) => JSON.stringify(chatOf({ max_tokens: 1, metadata: Array(count).fill(item) }));
    const countOf = (body: string) => body.match(mark)!.length + more;
    const most = limit - (countOf(bodyOf(1)) - 1);
    expect(countOf(bodyOf(most))).toBe(limit);
    expect((await post("/v1/chat/completions", bodyOf(most))).status).toBe(200);
    const response = await post("/v1/chat/completions", bodyOf(most + 1));
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: expect.objectContaining({ message: `expected a body of JSON with at most ${limit} ${what}` }) },
    ]);
  },
);

test("long lists and objects of the wrong kind name their field", async () => {
  const mixed = [...Array<number>(1000).fill(1), -1];
  for (const [path, body, field] of [
    ["/v1/completions", completionOf(mixed), "prompt"],
    ["/v1/completions", completionOf([...Array<string>(1000).fill("a"), 1]), "prompt"],
    ["/v1/completions", completionOf([...Array(1000).fill([1]), []]), "prompt"],
    ["/v1/completions", completionOf([[1], [0.5]]), "prompt"],
    ["/v1/completions", completionOf([]), "prompt"],
    ["/v1/embeddings", { model: "tiny/llama", input: mixed }, "input"],
    ["/v1/chat/completions", chatOf({ logit_bias: { ...pairs(256), "-1": 0 } }), "logit_bias"],
    ["/v1/chat/completions", chatOf({ logit_bias: { ...pairs(256), "300": 100.5 } }), "logit_bias"],
    ["/v1/chat/completions", chatOf({ logit_bias: { ...pairs(256), "300": -100.5 } }), "logit_bias"],
    ["/v1/chat/completions", chatOf({ logit_bias: [1] }), "logit_bias"],
    ["/v1/chat/completions", chatOf({ messages: [{ role: "user", content: partsOf(4097) }] }), "messages.0.content"],
    ["/v1/responses", { model: "tiny/llama", input: [{ role: "user", content: partsOf(4097) }] }, "input"],
  ] as const) {
    const response = await post(path, JSON.stringify(body));
    const { error } = (await response.json()) as { error: { param: string } };
    expect([response.status, error.param]).toEqual([400, field]);
  }
  const body = chatOf({ max_tokens: 1, messages: [{ role: "user", content: partsOf(4096) }] });
  expect((await post("/v1/chat/completions", JSON.stringify(body))).status).toBe(200);
});

test("too many prompts are rejected before the first is encoded, and too many tokens before the last is", async () => {
  let texts = 0;
  const encode: typeof tokenizer.encode = (text) => {
    texts++;
    return tokenizer.encode(text);
  };
  const own = Object.assign(Object.create(tokenizer), { encode });
  const counted = await ModelServer.start({ ...served(), tokenizer: own }, { port: 0, limits: { tokens: 1000 } });
  try {
    const many = Array<string>(5000).fill("abcde");
    const completion = await post("/v1/completions", JSON.stringify(completionOf(many)), counted);
    expect([completion.status, texts]).toEqual([400, 0]);
    const input = JSON.stringify({ model: "tiny/llama", input: many });
    const embedding = await post("/v1/embeddings", input, counted);
    expect([embedding.status, texts]).toEqual([400, 201]);
  } finally {
    await counted.close(0);
  }
});
