/** Valid requests with one change: a value, a header, some bytes. Each is answered, or rejected in the API's format. */
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { connect } from "node:net";
import * as fc from "fast-check";
import { setBackend } from "../../src/index.ts";
import { ModelServer } from "../../src/serve/server.ts";
import { ChatTemplate } from "../../src/text/chat_template.ts";
import { served, TEMPLATE } from "./served.ts";

let server: ModelServer;
beforeAll(async () => {
  setBackend("cpu");
  const own = { ...served(), template: new ChatTemplate(`${TEMPLATE}{# tools <tool_call> #}`) };
  const limits = { bodyBytes: 20_000, tokens: 4, bodySeconds: 1 };
  server = await ModelServer.start(own, { port: 0, limits, batcher: { slots: 2, queue: 8 } });
});
afterAll(() => server.close(0));

const call = {
  id: "a",
  type: "function",
  function: { name: "f", arguments: '{"x":1}' },
};
const tool = {
  type: "function",
  function: { name: "f", description: "d", parameters: { type: "object", properties: { x: { type: "integer" } } } },
};
const common = {
  model: "tiny/llama",
  temperature: 0.5,
  top_p: 0.9,
  top_k: 3,
  min_p: 0.1,
  n: 1,
  seed: 4,
  stop: ["z", "y"],
  repetition_penalty: 1.1,
  presence_penalty: 0.5,
  frequency_penalty: 0.5,
  logit_bias: { "5": 2 },
  stream: false,
  user: "u",
  metadata: { a: "b" },
};
/** A request with every field. */
const whole: Readonly<Record<string, unknown>> = {
  "/v1/chat/completions": {
    ...common,
    max_tokens: 2,
    logprobs: true,
    top_logprobs: 2,
    modalities: ["text"],
    messages: [
      { role: "system", content: "s", name: "n" },
      { role: "user", content: [{ type: "text", text: "a" }] },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "assistant", content: "c" },
    ],
    tools: [tool],
    tool_choice: "none",
    parallel_tool_calls: true,
    response_format: { type: "json_schema", json_schema: { name: "j", schema: { type: "boolean" }, strict: true } },
  },
  "/v1/completions": {
    ...common,
    prompt: ["a", "b"],
    max_tokens: 2,
    logprobs: 1,
    echo: true,
    suffix: "",
    best_of: 1,
  },
  "/v1/responses": {
    model: "tiny/llama",
    temperature: 0.5,
    top_p: 0.9,
    top_logprobs: 2,
    max_output_tokens: 2,
    stream: false,
    instructions: "s",
    include: ["message.output_text.logprobs"],
    truncation: "disabled",
    user: "u",
    input: [
      { type: "message", role: "user", content: [{ type: "input_text", text: "a" }] },
      { role: "assistant", content: "c" },
    ],
    tools: [{ type: "function", ...tool.function }],
    tool_choice: "none",
    parallel_tool_calls: true,
    text: { format: { type: "json_schema", name: "j", schema: { type: "boolean" }, strict: true } },
  },
  "/v1/embeddings": { model: "tiny/llama", input: ["a", "b"], encoding_format: "float", dimensions: 2, user: "u" },
};
const paths = Object.keys(whole);

/** Every value nested in a value, by its path. */
function* places(value: unknown, way: readonly string[] = []): Generator<readonly string[]> {
  yield way;
  if (typeof value === "object" && value !== null)
    for (const [key, own] of Object.entries(value)) yield* places(own, [...way, key]);
}

/** A copy with JSON text at one path. */
function withText(value: unknown, [key, ...rest]: readonly string[], text: string): string {
  if (key === undefined) return text;
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  const parts = Object.entries(value as object).map(([own, inner]) => {
    const json = own === key ? withText(inner, rest, text) : JSON.stringify(inner);
    return Array.isArray(value) ? json : `${JSON.stringify(own)}:${json}`;
  });
  return open + parts.join(",") + close;
}

const post = (path: string, body: string | Uint8Array<ArrayBuffer>) =>
  fetch(server.url + path, { method: "POST", body, headers: { "Content-Type": "application/json" } });

/** Checks that a request was answered, or rejected in OpenAI's format. */
async function expectInForm(response: Response, what: string): Promise<void> {
  const text = await response.text();
  const isRefused = response.status >= 400 && response.status < 500;
  expect([response.status, isRefused || response.status === 200, what]).toEqual([response.status, true, what]);
  if (!isRefused) return;
  const { error } = JSON.parse(text) as { error: Record<string, unknown> };
  expect(Object.keys(error).sort()).toEqual(["code", "message", "param", "type"]);
  expect(typeof error["message"]).toBe("string");
  expect((error["message"] as string).length).toBeLessThan(2000);
}

afterEach(async () => {
  const response = await post("/v1/completions", JSON.stringify({ model: "tiny/llama", prompt: "a", max_tokens: 1 }));
  expect(response.status).toBe(200);
  expect(((await response.json()) as { choices: unknown[] }).choices).toHaveLength(1);
});

const texts = [
  "null",
  "true",
  '""',
  "[]",
  "{}",
  "0",
  "-1",
  "0.5",
  "1e999",
  "-1e999",
  "1e-999",
  "9".repeat(400),
  "9007199254740993",
  '"\\u0000"',
  '"\\ud800"',
  '"\\udfff\\ud800"',
  "[[[]]]",
  '{"__proto__":{"a":1}}',
  '{"constructor":null}',

  `${"[".repeat(3000)}${"]".repeat(3000)}`,
  `"${"x".repeat(5000)}"`,
  '["a",1,null,{}]',
  "4294967296",
  "[-1]",
  "[1e300]",
];

test.each(paths)("%s: any value at every path is answered", async (path) => {
  const body = whole[path];
  await expectInForm(await post(path, JSON.stringify(body)), "the request itself");
  for (const way of places(body))
    for (const text of texts)
      await expectInForm(await post(path, withText(body, way, text)), `${way.join(".")}: ${text.slice(0, 40)}`);
});

test("every field twice, or under another name, is answered", async () => {
  for (const path of paths) {
    const json = JSON.stringify(whole[path]);
    for (const key of Object.keys(whole[path] as object)) {
      await expectInForm(await post(path, `{${JSON.stringify(key)}:[{}],${json.slice(1)}`), `${key} first`);
      await expectInForm(await post(path, `${json.slice(0, -1)},${JSON.stringify(key)}:[{}]}`), `${key} again`);
      await expectInForm(await post(path, json.replace(`"${key}"`, `"${key}\\u0000"`)), `${key} with a zero`);
    }
  }
});

const bytesOf = (path: string) => new TextEncoder().encode(JSON.stringify(whole[path]));

test("bytes inserted, removed, and truncated bodies are answered", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...paths),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.nat(8),
      fc.oneof(
        fc.uint8Array({ maxLength: 6 }),
        fc.constantFrom(Uint8Array.of(0xef, 0xbb, 0xbf), Uint8Array.of(0xc0, 0x80)),
      ),
      async (path, where, out, bytes) => {
        const own = bytesOf(path);
        const at = Math.floor(where * own.length);
        await expectInForm(
          await post(path, Buffer.concat([own.subarray(0, at), bytes, own.subarray(at + out)])),
          "bytes",
        );
        await expectInForm(await post(path, Buffer.from(own.subarray(0, at))), "cut");
      },
    ),
    { numRuns: 200, seed: 13 },
  );
});

/** Sends bytes, ends, and waits until the server has answered or closed. */
const raw = (bytes: Uint8Array | string) =>
  new Promise<string>((resolve) => {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1", () => socket.end(bytes));
    let text = "";
    socket.on("data", (part) => {
      text += part;
      if (/^HTTP\/1.1 \d+/.test(text)) socket.destroySoon();
    });
    socket.on("close", () => resolve(text));
    socket.on("error", () => resolve(text));
  });
const statusOf = (answer: string) => Number(/^HTTP\/1.1 (\d+)/.exec(answer)?.[1] ?? 0);

test("invalid headers, and bodies with a wrong Content-Length, are answered", async () => {
  const body = JSON.stringify({ model: "tiny/llama", prompt: "a", max_tokens: 1 });
  const line = fc.oneof(
    fc.constantFrom(
      "Content-Length: -1",
      "Content-Length: 1e3",
      `Content-Length: ${"9".repeat(30)}`,
      "Content-Length: 5",
      "Transfer-Encoding: chunked",
      "Transfer-Encoding: gzip, identity",
      'Content-Type: application/json; x="\\',
      "Content-Type: text/plain",
      "Content-Encoding: gzip",
      "Expect: 100-continue",
      "Host: other.example",
      "Host:",

      "Authorization: Bearer \u00ff",
      "Origin: null",
      "Origin: http://other.example",
      "Connection: upgrade",
      ": x",
      "a b: c",
      `X: ${"x".repeat(20_000)}`,
      "Range: bytes=0-",
      "Accept: \u0001",
      "Upgrade: websocket",
    ),
    fc.string({ maxLength: 30 }),
  );
  const first = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...paths.map((path) => `POST ${path} HTTP/1.1`)) },
    fc.constantFrom("GET /v1/models HTTP/1.1", "PUT /v1/completions HTTP/1.1", "GET /../../etc/passwd HTTP/1.1"),
    fc.constantFrom(
      "GET /%00 HTTP/1.1",
      "POST /v1/completions?a=%ff HTTP/1.1",
      "BREW / HTTP/1.1",
      "GET / HTTP/9.9",
      "OPTIONS * HTTP/1.1",
    ),
  );
  await fc.assert(
    fc.asyncProperty(first, fc.array(line, { minLength: 1, maxLength: 3 }), async (start, lines) => {
      const head = [start, "Host: localhost", "Content-Type: application/json", ...lines, "Connection: close"];
      const answer = await raw(`${head.join("\r\n")}\r\n\r\n${body}`);
      const isOther = start.endsWith("9.9") && statusOf(answer) === 505; // this version of HTTP does not exist
      expect([statusOf(answer) < 500 || isOther, start, lines]).toEqual([true, start, lines]);
    }),
    { numRuns: 120, seed: 17 },
  );
});

test("unknown paths and methods are rejected", async () => {
  for (const method of ["GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
    for (const path of [
      ...paths,
      "/v1/models/x",
      "/v1",
      "/metrics/",
      "/health/../v1/models",
      "/%2e%2e/",
      "/\u{1f600}",
    ]) {
      const response = await fetch(server.url + path, { method });
      expect([method, path, response.status < 500]).toEqual([method, path, true]);
      await response.text();
    }
});
