/** The entry `orchard-metal/serve`: a server that a program starts and closes. */
import { beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { setBackend } from "../../src/index.ts";
import { type ServeOptions, serve } from "../../src/serve/index.ts";
import { testFolder } from "../support/folder.ts";

const { path: folder } = testFolder("serve-entry");
const model = join(folder, "tiny-llama");

beforeAll(async () => {
  setBackend("cpu");
  const { writeModel } = await import("./folder.ts");
  await writeModel(model);
});

const completion = (url: string, named: string, maxTokens: number): Promise<Response> =>
  fetch(new URL("/v1/completions", url), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: named, prompt: "the", max_tokens: maxTokens }),
  });

test("serve answers requests by its options until it is closed", async () => {
  const server = await serve(model, { port: 0, name: "llama", slots: 2, dtype: "bfloat16", limits: { tokens: 3 } });
  for (const [asked, given] of [
    [2, 2],
    [4, 3],
  ] as const) {
    const { usage } = (await (await completion(server.url, "llama", asked)).json()) as { usage: object };
    expect(usage).toMatchObject({ completion_tokens: given });
  }
  await server.close();
  expect(await completion(server.url, server.name, 1).catch(() => "closed")).toBe("closed");
});

test("serve closes at the end of a scope", async () => {
  let url: string;
  {
    await using server = await serve(model, { port: 0, key: "secret" });
    url = server.url;
    expect((await completion(url, server.name, 1)).status).toBe(401);
  }
  expect(await completion(url, "tiny-llama", 1).catch(() => "closed")).toBe("closed");
});

test.each([
  [{ slot: 2 }, "unknownOption", 'did you mean "slots"?'],
  [{ port: 65_536 }, "invalidOption", "expected port to be a port from 0 to 65535"],
  [{ limits: { token: 3 } }, "unknownOption", 'did you mean "tokens"?'],
  [{ host: "0.0.0.0", port: 0 }, "noKey", "expected a key for the address 0.0.0.0"],
])("serve rejects %j with %s", async (options, code, message) => {
  const error = await serve(model, options as ServeOptions).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ operation: "serve", code });
  expect((error as Error).message).toContain(message);
});
