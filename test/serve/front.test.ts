/** The thread that accepts connections answers while the main thread computes. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type nn, setBackend } from "../../src/index.ts";
import type { ModelServer } from "../../src/serve/server.ts";
import { testFolder } from "../support/folder.ts";
import { randomLlama, restoreModel, start } from "./served.ts";

const { path: folder } = testFolder("serve-front");
let [server, model]: [ModelServer, nn.Llama] = [] as never;
beforeAll(async () => {
  setBackend("cpu");
  model = randomLlama();
  server = await start({ key: "secret" }, model);
});
afterAll(() => server.close(0));

const authorization = { Authorization: "Bearer secret" };
const complete = (more: object, headers: Record<string, string> = authorization) =>
  fetch(`${server.url}/v1/completions`, {
    ...{ method: "POST", headers: { "Content-Type": "application/json", ...headers } },
    body: JSON.stringify({ model: "tiny/llama", prompt: "a", max_tokens: 2, ...more }),
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
  let [child, isAnswered]: [Bun.Subprocess | undefined, boolean] = [undefined, false];
  model.forward = (tokens, inputs) => {
    child ??= Bun.spawn([process.execPath, "-e", program, server.url, file], {
      stdio: ["ignore", "inherit", "inherit"],
    });
    for (let waited = 0; !existsSync(file) && waited < 60_000; waited += 20) Bun.sleepSync(20);
    isAnswered = existsSync(file);
    restoreModel(model);
    return model.forward(tokens, inputs);
  };
  expect((await complete({})).status).toBe(200);
  expect(isAnswered).toBe(true);
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
