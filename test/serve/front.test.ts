/** The thread that accepts connections answers while the main thread computes. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { type nn, setBackend } from "../../src/index.ts";
import type { ModelServer } from "../../src/serve/server.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";
import { within } from "../support/wait.ts";
import { holdAfter, randomLlama, restoreModel, showsFigures, start } from "./served.ts";

const { path: folder } = testFolder("serve-front");
let [server, model]: [ModelServer, nn.Llama] = [] as never;
beforeAll(async () => {
  setBackend("cpu");
  model = randomLlama();
  server = await start({ key: "secret" }, model);
});
afterAll(() => server.close(0));

const authorization = { Authorization: "Bearer secret" };
const complete = (more: object, headers: Record<string, string> = authorization, signal?: AbortSignal) =>
  fetch(`${server.url}/v1/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify({ model: "tiny/llama", prompt: "a", max_tokens: 2, ...more }),
    ...(signal && { signal }),
  });

/** Asks a server for answers that need no model, then writes their statuses to a file. */
const program = `
  const [url, file] = process.argv.slice(1);
  const post = (path, headers) => fetch(url + path, { method: "POST", headers, body: "x".repeat(5_000_000) });
  const answers = [
    await fetch(url + "/health"),
    await fetch(url + "/nothing"),
    await fetch(url + "/v1/models"),
    await post("/v1/completions", { Authorization: "Bearer secret" }),
    await post("/v1/completions", {}),
    await fetch(url + "/health", { headers: { Host: "other.example" } }),
  ];
  await Bun.write(file, JSON.stringify(answers.map(({ status }) => status)));
`;

test("health and errors of access and size are answered while the main thread computes", async () => {
  const file = join(folder, "statuses.json");
  let child: Bun.Subprocess | undefined;
  const seen = { isAnswered: false };
  model.forward = (tokens, inputs) => {
    child ??= Bun.spawn([...bunWords, "-e", program, server.url, file], {
      stdio: ["ignore", "inherit", "inherit"],
    });
    for (let waited = 0; !existsSync(file) && waited < 300_000; waited += 20) Bun.sleepSync(20);
    seen.isAnswered = existsSync(file);
    restoreModel(model);
    return model.forward(tokens, inputs);
  };
  expect((await complete({})).status).toBe(200);
  expect(seen.isAnswered).toBe(true);
  await child!.exited;
  expect(await Bun.file(file).json()).toEqual([200, 404, 401, 413, 401, 403]);
  const figures = await (await fetch(`${server.url}/metrics`, { headers: authorization })).text();
  for (const [path, status] of [
    ["/health", 200],
    ["/v1/completions", 200],
    ["/v1/completions", 413],
    ["unknown", 404],
  ])
    expect(figures).toContain(`orchard_requests_total{path="${path}",status="${status}"} 1\n`);
});

/**
 * Sends a completion request, ends the sending side, and reads until the server closes the connection. `seen` resolves
 * once a part of the answer matches.
 */
function halfClosed(body: object, pattern: RegExp) {
  const text = JSON.stringify({ model: "tiny/llama", prompt: "a", ...body });
  const head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
  const [seen, whole] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
  let answer = "";
  const socket = new Socket({ allowHalfOpen: true });
  socket.connect(Number(new URL(server.url).port), "127.0.0.1", () =>
    socket.end(`${head}Authorization: Bearer secret\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`),
  );
  socket.on("data", (part) => {
    answer += part;
    if (pattern.test(answer)) seen.resolve();
  });
  socket.on("error", () => undefined);
  socket.on("close", () => whole.resolve(answer));
  return { seen: seen.promise, answer: whole.promise };
}

test("a client that ends its sending side gets its answer, whole or streamed, however long it takes", async () => {
  const goOn = holdAfter(model, 0);
  const whole = halfClosed({ max_tokens: 8 }, /^HTTP\/1\.1 100 Continue\r\n\r\n/);
  const streamed = halfClosed({ max_tokens: 8, stream: true }, /HTTP\/1\.1 200 OK\r\n[\s\S]*:\n\n/);
  // the server shows both clients that it works on their answers
  await within("an interim response", whole.seen);
  await within("a comment in a stream", streamed.seen);
  goOn();
  expect(await within("an answer", whole.answer)).toMatch(
    /^(?:HTTP\/1\.1 100 Continue\r\n\r\n)+HTTP\/1\.1 200 OK\r\n[\s\S]*"finish_reason":"length"/,
  );
  expect(await within("a stream", streamed.answer)).toMatch(/data: \[DONE\]/);
});

test.each([false, true])(
  "a client that disconnects while the model waits ends its generation; stream: %p",
  async (stream) => {
    const left = Number(
      /outcome="left"\} (\d+)/.exec(await showsFigures(server, /active 0\n/, authorization))?.[1] ?? 0,
    );
    const goOn = holdAfter(model, stream ? 3 : 0);
    const controller = new AbortController();
    const asked = complete({ max_tokens: 200, stream }, authorization, controller.signal).catch(() => undefined);
    await showsFigures(server, /texts_active 1\n/, authorization);
    if (stream) await asked;
    controller.abort();
    await asked;
    // only the request for these figures is in flight
    await showsFigures(server, /requests_in_flight 1\n/, authorization);
    goOn();
    expect(await showsFigures(server, /texts_active 0\n/, authorization)).toContain(`outcome="left"} ${left + 1}\n`);
  },
);
