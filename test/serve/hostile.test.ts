/** For any hostile request, a client gets an error (4xx), and the server continues; no resources accumulate. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect } from "node:net";
import * as fc from "fast-check";
import { memory, setBackend } from "../../src/index.ts";
import { ModelServer } from "../../src/serve/server.ts";
import { ChatTemplate } from "../../src/text/chat_template.ts";
import { randomLlama, served, showsFigures, start, TEMPLATE } from "./served.ts";

let server: ModelServer;
beforeAll(async () => {
  setBackend("cpu");
  server = await start({ limits: { bodyBytes: 20_000, tokens: 8 }, batcher: { slots: 2, queue: 8 } }, randomLlama());
});
afterAll(() => server.close(0));

const paths = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings"] as const;
const post = (path: string, body: string | Uint8Array<ArrayBuffer>, type = "application/json") =>
  fetch(server.url + path, { method: "POST", body, headers: { "Content-Type": type } });

const isWellFormed = async (response: Response): Promise<boolean> => {
  const { error } = (await response.json()) as { error?: { message?: unknown; type?: unknown } };
  return typeof error?.message === "string" && typeof error.type === "string";
};

const chat = { model: "tiny/llama", messages: [{ role: "user", content: "a" }], max_tokens: 2 };
const requests = {
  "/v1/chat/completions": chat,
  "/v1/completions": { model: "tiny/llama", prompt: "a", max_tokens: 2 },
  "/v1/embeddings": { model: "tiny/llama", input: "a" },
} as const;

test("bodies that are not requests are rejected", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...paths),
      fc.oneof(fc.json(), fc.string(), fc.uint8Array()),
      async (path, body) => {
        const response = await post(path, body as string);
        expect(response.status).toBeGreaterThanOrEqual(400);
        expect(response.status).toBeLessThan(500);
        expect(await isWellFormed(response)).toBe(true);
      },
    ),
    { numRuns: 150, seed: 3 },
  );
});

const hostile = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom(
    -1,
    1e308,
    -0,
    2 ** 53,
    0.5,
    "",
    "\u0000",
    "\ud800",
    [],
    {},
    [[]],
    [null],
    true,
    "__proto__",
    300,
    1e9,
  ),
  fc.array(fc.integer()),
  fc.dictionary(fc.string(), fc.double()),
);
const fields = [
  "model",
  "messages",
  "prompt",
  "input",
  "max_tokens",
  "temperature",
  "top_p",
  "top_k",
  "min_p",
  "n",
  "seed",

  "stop",
  "logit_bias",
  "logprobs",
  "top_logprobs",
  "stream",
  "stream_options",
  "presence_penalty",
  "echo",
  "tools",
  "response_format",
  "repetition_penalty",
  "tool_choice",
  "encoding_format",
  "dimensions",
  "best_of",
  "suffix",
  "parallel_tool_calls",
  "max_completion_tokens",
  "frequency_penalty",
  "modalities",
  "metadata",
  "prediction",
];

test("requests with arbitrary values in some fields are answered", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...paths),
      fc.dictionary(fc.constantFrom(...fields), hostile, { minKeys: 1, maxKeys: 3 }),
      async (path, changes) => {
        const response = await post(path, JSON.stringify({ ...requests[path], ...changes }));
        expect(response.status === 200 || (response.status >= 400 && response.status < 500)).toBe(true);
        if (response.status !== 200) expect(await isWellFormed(response)).toBe(true);
        else await response.text();
      },
    ),
    { numRuns: 250, seed: 5 },
  );
});

test("messages with arbitrary values in some fields are answered", async () => {
  const message = fc.dictionary(fc.constantFrom("role", "content", "name", "tool_calls", "tool_call_id"), hostile);
  await fc.assert(
    fc.asyncProperty(fc.array(message, { minLength: 1, maxLength: 3 }), async (changes) => {
      const messages = changes.map((change) => ({ role: "user", content: "a", ...change }));
      const response = await post(paths[0], JSON.stringify({ ...chat, messages }));
      expect(response.status === 200 || (response.status >= 400 && response.status < 500)).toBe(true);
      await response.text();
    }),
    { numRuns: 150, seed: 7 },
  );
});

test("tools, choices and schemas that are nearly valid are rejected", async () => {
  const type = fc.constantFrom("object", "integer", "string", "array", "null", "nothing", 3, ["string", "null"]);
  const { schema } = fc.letrec<{ schema: object }>((tie) => ({
    schema: fc.record(
      {
        type,
        properties: fc.dictionary(fc.string({ maxLength: 5 }), tie("schema"), { maxKeys: 3 }),
        required: fc.oneof(fc.array(fc.string({ maxLength: 5 }), { maxLength: 3 }), hostile),
        enum: fc.array(fc.jsonValue({ maxDepth: 1 }), { maxLength: 3 }),
        pattern: fc.constantFrom("a+", "(", "[^\\n]{2,5}", "(a|b)*c", "\\d{1,2000}", "(?<=a)b", "^$"),
        minItems: fc.constantFrom(0, 2, -1, 1e9),
        maxLength: fc.constantFrom(0, 2, -1, 1e9, "a"),
        $ref: fc.constantFrom("#", "#/$defs/a", "#/properties", "http://localhost/"),
        anyOf: fc.array(tie("schema"), { maxLength: 2 }),
      },
      { requiredKeys: [] },
    ),
  }));
  const parameters = fc.oneof({ weight: 5, arbitrary: schema }, hostile);
  const name = fc.constantFrom("f", "g", "a b", "", '"}', "</tool_call>", "f".repeat(65), "__proto__");
  const tool = fc.record({ type: fc.constantFrom("function", "custom"), function: fc.record({ name, parameters }) });
  const choice = fc.oneof(
    fc.constantFrom("auto", "required", "none"),
    fc.record({ type: fc.constantFrom("function", "allowed_tools"), function: fc.record({ name }) }),
    hostile,
  );
  const own = await ModelServer.start(
    { ...served(), template: new ChatTemplate(`${TEMPLATE}{# tools <tool_call> #}`) },
    { port: 0 },
  );
  const statuses = new Set<number>();
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(tool, { maxLength: 3 }), choice, fc.boolean(), async (tools, tool_choice, parallel) => {
        const body = JSON.stringify({ ...chat, tools, tool_choice, parallel_tool_calls: parallel });
        const headers = { "Content-Type": "application/json" };
        const response = await fetch(`${own.url}${paths[0]}`, { method: "POST", body, headers });
        statuses.add(response.status);
        if (response.status === 200) await response.text();
        else expect(await isWellFormed(response)).toBe(true);
      }),
      { numRuns: 150, seed: 11 },
    );
  } finally {
    await own.close(0);
  }
  expect([...statuses].sort()).toEqual([200, 400]);
});

test("large, deep and endless bodies are rejected", async () => {
  expect((await post(paths[0], "x".repeat(20_001))).status).toBe(413);
  expect((await post(paths[0], "[".repeat(20_000))).status).toBe(400);
  expect((await post(paths[0], `{"a":${"[".repeat(9000)}${"]".repeat(9000)}}`)).status).toBe(400);
  const endless = new ReadableStream({
    pull: (controller) => controller.enqueue(new Uint8Array(5000).fill(32)),
  });
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(server.url + paths[0], { method: "POST", body: endless, headers }).catch(() => undefined);
  expect(answer === undefined || answer.status === 413).toBe(true);
});

test("a large body of unknown length is rejected", async () => {
  const parts = [new Uint8Array(15_000).fill(32), new Uint8Array(15_000).fill(32)];
  const body = new ReadableStream({
    pull(controller) {
      const part = parts.shift();
      if (part) controller.enqueue(part);
      else controller.close();
    },
  });
  const headers = { "Content-Type": "application/json" };
  expect((await fetch(server.url + paths[0], { method: "POST", body, headers })).status).toBe(413);
});

test("a body that never arrives ends with an error", async () => {
  const hasty = await start({ limits: { bodySeconds: 0.1 } }, randomLlama());
  try {
    const head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    const answer = await new Promise<string>((resolve) => {
      const socket = connect(Number(new URL(hasty.url).port), "127.0.0.1", () =>
        socket.write(`${head}Content-Length: 50\r\n\r\n{`),
      );
      socket.on("data", (part) => {
        resolve(String(part));
        socket.destroy();
      });
    });
    expect(answer).toMatch(/^HTTP\/1.1 408 /);
  } finally {
    await hasty.close(0);
  }
});

/** Sends bytes, and waits until the server has closed the connection or answered. */
const raw = (bytes: string) =>
  new Promise<string>((resolve) => {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1", () => socket.end(bytes));
    let text = "";
    socket.on("data", (part) => {
      text += part;
    });
    socket.on("close", () => resolve(text));
    socket.on("error", () => resolve(text));
  });

test("bytes that are not HTTP are rejected, and the server continues after all of them", async () => {
  const head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n";
  const [bytes, method, cut, body] = await Promise.all(
    ["\0\0\0", "GET", `${head}Content-Le`, `${head}Content-Length: 99\r\n\r\n{`].map(raw),
  );
  expect(bytes).toMatch(/^HTTP\/1\.1 400 /);
  expect([method, cut]).toEqual(["", ""]); // closed, since no more can come
  expect(body).toMatch(/HTTP\/1\.1 400 [\s\S]*expected a complete body, got an interrupted one/);
  const response = await post(paths[1], JSON.stringify(requests[paths[1]]));
  expect(response.status).toBe(200);
  const answer = (await response.json()) as { usage: { completion_tokens: number } };
  expect(answer.usage.completion_tokens).toBe(2);
  await showsFigures(server, /requests_in_flight 1\n/); // only the request for these figures is in flight
});

test("no tensor outlives its request", async () => {
  const some = () =>
    Promise.all(
      Array.from({ length: 8 }, async (_, at) => {
        const own = { ...chat, messages: [{ role: "user", content: `question ${at}` }], stream: at % 2 === 0 };
        await (await post(paths[0], JSON.stringify(own))).text();
      }),
    );
  for (let round = 0; round < 3; round++) await some();
  const before = memory().host.liveBytes;
  for (let round = 0; round < 25; round++) await some();
  expect(memory().host.liveBytes).toBeLessThanOrEqual(before + 65_536);
});
