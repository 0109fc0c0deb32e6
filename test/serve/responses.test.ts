/** `POST /v1/responses`, by OpenAI's client. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import type { ResponseStreamEvent } from "openai/resources/responses/responses";
import { z } from "zod";
import { setBackend } from "../../src/index.ts";
import { ModelServer } from "../../src/serve/server.ts";
import { ChatTemplate } from "../../src/text/chat_template.ts";
import { Scripted } from "./scripted.ts";
import { tokenizer } from "./served.ts";

const template = new ChatTemplate(
  "{% for t in tools or [] %}{{ t.function.name }};{% endfor %}{% for m in messages %}{{ m.role }}:{{ m.content }}" +
    "{% for c in m.tool_calls or [] %}{{ c.function.name }}({{ c.function.arguments.a }}){% endfor %}\n{% endfor %}" +
    "{# <tool_call> #}",
);
const model = new Scripted();
let server: ModelServer;
let client: OpenAI;
beforeAll(async () => {
  setBackend("cpu");
  server = await ModelServer.start({ name: "m", model, tokenizer, template, stopTokens: [0] }, { port: 0 });
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
});
afterAll(() => server.close(0));

const integer = { type: "integer", minimum: 0, maximum: 99 };
const add: OpenAI.Responses.FunctionTool = {
  type: "function",
  name: "add",
  description: "adds",
  strict: true,
  parameters: { type: "object", properties: { a: integer }, required: ["a"], additionalProperties: false },
};
const call = (a: number) => `<tool_call>\n{"name": "add", "arguments": {"a": ${a}}}\n</tool_call>\n`;

/** All events, each with its name on the wire, and numbered from 0 on. */
async function eventsOf(body: OpenAI.Responses.ResponseCreateParams): Promise<ResponseStreamEvent[]> {
  const response = await fetch(`${server.url}/v1/responses`, {
    method: "POST",
    body: JSON.stringify({ ...body, stream: true }),
    headers: { "Content-Type": "application/json" },
  });
  const events = (await response.text()).trimEnd().split("\n\n");
  return events.map((own, at) => {
    const [name, data] = own.split("\n") as [string, string];
    const event = JSON.parse(data.slice("data: ".length)) as ResponseStreamEvent;
    expect([name, event.sequence_number]).toEqual([`event: ${event.type}`, at]);
    return event;
  });
}

const message =
  "output_item.added content_part.added (output_text.delta )+output_text.done content_part.done output_item.done ";
const called = "output_item.added function_call_arguments.delta function_call_arguments.done output_item.done ";
const order = new RegExp(`^created in_progress (${message})?(${called})*(completed|incomplete) $`);

test.each([
  ["Hello", {}, ["Hello"], []],
  ["Hello", { max_output_tokens: 3 }, ["Hel"], []],
  [`Yes: ${call(1)}${call(2)}`, { tools: [add] }, ["Yes: "], [1, 2]],
  [call(1).repeat(3), { tools: [add], tool_choice: "required" }, [], [1]],
  [call(7), { tools: [add], tool_choice: { type: "function", name: "add" } }, [], [7]],
  [call(7).slice(0, -40), { tools: [add], max_output_tokens: 30 }, [call(7).slice(0, 30)], []],
] as const)("%j with %j: events are in order, and end in the whole response", async (said, options, texts, calls) => {
  const body = { model: "m", input: "?", temperature: 0, ...options } as OpenAI.Responses.ResponseCreateParams;
  model.says(said);
  const events = await eventsOf(body);
  expect(events.map(({ type }) => `${type.replace("response.", "")} `).join("")).toMatch(order);
  const last = events.at(-1) as OpenAI.Responses.ResponseCompletedEvent;
  model.says(said);
  const whole = await client.responses.create({ ...body, stream: false });
  const isCut = whole.usage!.output_tokens === body.max_output_tokens;
  for (const { output, status, usage, incomplete_details } of [last.response, whole]) {
    expect(
      output.flatMap((own) => (own.type === "message" ? own.content.map((part) => "text" in part && part.text) : [])),
    ).toEqual([...texts]);
    expect(output.flatMap((own) => (own.type === "function_call" ? [own.arguments] : []))).toEqual(
      calls.map((a) => JSON.stringify({ a })),
    );
    expect([status, incomplete_details?.reason]).toEqual(
      isCut ? ["incomplete", "max_output_tokens"] : ["completed", undefined],
    );
    expect(usage!.total_tokens).toBe(usage!.input_tokens + usage!.output_tokens);
  }
  const deltas = events.flatMap((own) => (own.type === "response.output_text.delta" ? [own.delta] : []));
  expect(deltas.join("")).toBe(texts.join(""));
  // The client assembles the same response from the events.
  model.says(said);
  const final = await client.responses.stream({ ...body, stream: true } as never).finalResponse();
  expect(final.output_text).toBe(texts.join(""));
});

test("in an agent's round, results of calls go back to the model", async () => {
  model.says(call(4));
  const first = await client.responses.create({ model: "m", input: "?", tools: [add], instructions: "Add." });
  const result = first.output.map(
    (own) => ({ type: "function_call_output", call_id: (own as { call_id: string }).call_id, output: "9" }) as const,
  );
  model.says("It is 9.");
  const input = [
    { role: "user", content: "?" } as const,
    ...(first.output as OpenAI.Responses.ResponseInputItem[]),
    ...result,
  ];
  const second = await client.responses.create({ model: "m", input, tools: [add], instructions: "Add." });
  expect(second.output_text).toBe("It is 9.");
  expect(second.usage!.input_tokens).toBe("add;system:Add.user:?assistant:add(4)tool:9".length);
});

describe("structured output follows its schema", () => {
  test("output follows zod's schema", async () => {
    const schema = z.object({ name: z.string(), age: z.int().min(0).max(150) });
    model.says('{"name": "x", "age": 999}');
    const { output_parsed } = await client.responses.parse({
      model: "m",
      input: "?",
      temperature: 0,
      text: { format: zodTextFormat(schema, "person") },
    });
    expect(schema.parse(output_parsed)).toMatchObject({ name: "x" });
  });

  test("output is any JSON", async () => {
    model.says("[1]");
    const { output_text } = await client.responses.create({
      model: "m",
      input: "?",
      text: { format: { type: "json_object" } },
    });
    expect(JSON.parse(output_text)).toEqual([1]);
  });
});

test("probabilities of tokens are returned, if requested", async () => {
  model.says("Hi");
  const { output } = await client.responses.create({
    model: "m",
    input: "?",
    include: ["message.output_text.logprobs"],
    top_logprobs: 2,
  });
  const [part] = (output[0] as OpenAI.Responses.ResponseOutputMessage).content as OpenAI.Responses.ResponseOutputText[];
  expect(part.logprobs!.map(({ token, top_logprobs }) => [token, top_logprobs.length])).toEqual([
    ["H", 2],
    ["i", 2],
  ]);
});

test.each([
  [{ previous_response_id: "resp_1" }, "previous_response_id"],
  [{ background: true }, "background"],
  [{ conversation: "conv_1" }, "conversation"],
  [{ input: [{ type: "item_reference", id: "msg_1" }] }, "input"],
  [{ input: "a".repeat(600) }, "input"],
  [{ text: { format: { type: "json_schema", name: "a", schema: { $ref: "#/no" } } } }, null],
  [{ tools: [{ type: "web_search" }] }, "tools.0.type"],
  [{ tools: [add], tool_choice: { type: "function", name: "sub" } }, "tool_choice"],
  [{ reasoning: { effort: "low" } }, "reasoning"],
])("the error for %p names it", async (options, param) => {
  const error = await client.responses
    .create({ model: "m", input: "?", ...options } as never)
    .catch((cause: unknown) => cause);
  expect(error).toMatchObject({ status: 400, ...(param !== null && { param: expect.stringMatching(param) }) });
});
