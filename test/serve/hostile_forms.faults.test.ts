/**
 * Constraints that would grow without bounds: the server answers other requests meanwhile, and says what was too large.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { setBackend } from "../../src/index.ts";
import { ModelServer } from "../../src/serve/server.ts";
import { ChatTemplate } from "../../src/text/chat_template.ts";
import { served, TEMPLATE } from "./served.ts";

let server: ModelServer;
beforeAll(async () => {
  setBackend("cpu");
  server = await ModelServer.start(
    { ...served(), template: new ChatTemplate(`${TEMPLATE}{# tools <tool_call> #}`) },
    { port: 0 },
  );
});
afterAll(() => server.close(0));

const ask = (more: object) =>
  fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ model: "tiny/llama", messages: [{ role: "user", content: "a" }], max_tokens: 40, ...more }),
  });
const formatOf = (schema: object) => ({ response_format: { type: "json_schema", json_schema: { name: "a", schema } } });
const toolsOf = (parameters: object) => ({
  tool_choice: "required",
  tools: [{ type: "function", function: { name: "f", parameters } }],
});

const patterns = [
  `${"(".repeat(12)}.{0,9}${"){0,9}".repeat(12)}`,
  "((a{0,1000}){0,1000}){0,1000}",
  ".{0,1000}".repeat(100),
  `${"(".repeat(200)}a${")".repeat(200)}`,
];
const schemas = [
  ...patterns.map((pattern) => ({ type: "object", properties: { a: { type: "string", pattern } }, required: ["a"] })),
  {
    type: "object",
    properties: Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`p${at}`, { type: "integer" }])),
  },
];

test.each([formatOf, toolsOf])(
  "%p: the error 400 names what is too large, and the next request is answered",
  async (form) => {
    for (const schema of schemas) {
      const response = await ask(form(schema));
      const { error } = (await response.json()) as { error: { message: string; code: string } };
      expect([response.status, error.code, error.message]).toEqual([
        400,
        "invalidSchema",
        expect.stringMatching(/schema\.properties.*at most/),
      ]);
    }
    const good = await ask(formatOf({ type: "string", pattern: "^[А-я]{3}$" }));
    const { choices } = (await good.json()) as { choices: { message: { content: string } }[] };
    expect(JSON.parse(choices[0].message.content)).toMatch(/^[А-я]{3}$/u);
  },
);

test("while a large constraint compiles, other requests are answered", async () => {
  const properties = Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`p${at}`, { type: "integer" }]));
  let isCompiled = false;
  const large = ask(formatOf({ type: "object", properties })).then((response) => {
    isCompiled = true;
    return response.text();
  });
  while (!(await (await fetch(`${server.url}/metrics`)).text()).includes("requests_in_flight 2"));
  expect((await fetch(`${server.url}/health`)).status).toBe(200);
  expect((await ask({})).status).toBe(200);
  expect(isCompiled).toBe(false);
  await large;
});
