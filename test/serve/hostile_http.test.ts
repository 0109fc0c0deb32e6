/** Requests at the limits of HTTP and of the server: answered in the API's format, never with 5xx. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect } from "node:net";
import * as fc from "fast-check";
import { setBackend } from "../../src/index.ts";
import { ModelServer } from "../../src/serve/server.ts";
import { served, start, tokenizer } from "./served.ts";

let server: ModelServer;
beforeAll(() => {
  setBackend("cpu");
  server = start();
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
])("%j: 400", async (bytes) => {
  const answer = await raw([bytes]);
  expect([statusOf(answer), errorOf(answer).message]).toEqual([400, expect.stringMatching(/Host/)]);
});

test("whatever the Host is, the answer is never 5xx", async () => {
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

test.each([66, 200, 260, 5000, 200_000])("a schema of %d levels: 400", async (levels) => {
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
  const small = start({ limits: { bodyBytes: 10_000 } });
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
  const own = new ModelServer(
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
