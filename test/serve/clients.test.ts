/** Requests exactly as LangChain, the AI SDK and OpenAI's package send them. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { setBackend } from "../../src/index.ts";
import { ModelServer } from "../../src/serve/server.ts";
import { ChatTemplate } from "../../src/text/chat_template.ts";
import { Scripted } from "./scripted.ts";
import { tokenizer } from "./served.ts";

interface Recorded {
  readonly client: string;
  readonly path: string;
  readonly requests: readonly (OpenAI.ChatCompletionCreateParams & { readonly stream?: boolean })[];
}
const recorded: readonly Recorded[] = await Bun.file(new URL("../fixtures/serve/clients.json", import.meta.url)).json();

const source =
  "{% for t in tools or [] %}{{ t.function.name }};{% endfor %}{% for m in messages %}{{ m.role }}:{{ m.content }}" +
  "{% for c in m.tool_calls or [] %}{{ c.function.name }}{% endfor %}\n{% endfor %}";
const forms = {
  tags: {
    template: new ChatTemplate(`${source}{# <tool_call> #}`),
    written: (name: string, args: object) =>
      `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${JSON.stringify(args)}}\n</tool_call>\n`,
  },
  json: {
    template: new ChatTemplate(source),
    written: (name: string, args: object) => `{"name": ${JSON.stringify(name)}, "parameters": ${JSON.stringify(args)}}`,
  },
} as const;

/** The text and calls of a response, which is given whole or by the last event of its stream. */
function answerOf(text: string) {
  const last = text.startsWith("event: ") ? text.slice(text.lastIndexOf("data: ") + "data: ".length) : text;
  const own = JSON.parse(last) as OpenAI.Responses.Response & { readonly response?: OpenAI.Responses.Response };
  const { output } = own.response ?? own;
  const calls = output.flatMap((each) =>
    each.type === "function_call" ? [{ function: { name: each.name, arguments: each.arguments } }] : [],
  );
  const content = output.flatMap((each) =>
    each.type === "message" ? each.content.map((part) => (part.type === "output_text" ? part.text : "")) : [],
  );
  return { content: content.join(""), calls, reason: calls.length > 0 ? "tool_calls" : "stop" };
}

const values: Record<string, object> = { add: { a: 1, b: 2 }, person: { name: "a", age: 1 } };
/** Values of the structured outputs. */
const person = JSON.stringify(values["person"]);

describe.each(Object.keys(forms) as (keyof typeof forms)[])("clients of the server, calls in %s", (form) => {
  const { template, written } = forms[form];
  const model = new Scripted();
  let server: ModelServer;
  beforeAll(async () => {
    setBackend("cpu");
    server = await ModelServer.start({ name: "m", model, tokenizer, template, stopTokens: [0] }, { port: 0 });
  });
  afterAll(() => server.close(0));

  /** The message of an answer, whole or in parts. */
  async function answer(path: string, body: Recorded["requests"][number]) {
    const response = await fetch(server.url + path, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "Content-Type": "application/json" },
    });
    expect([response.status, response.ok ? "" : await response.text()]).toEqual([200, ""]);
    if (path === "/v1/responses") return answerOf(await response.text());
    if (!body.stream) {
      const { choices } = (await response.json()) as OpenAI.ChatCompletion;
      const { content, tool_calls = [] } = choices[0].message;
      return { content: content ?? "", calls: tool_calls, reason: choices[0].finish_reason };
    }
    const events = (await response.text()).split("\n\n").filter((own) => own !== "" && own !== "data: [DONE]");
    const chunks = events.map((own) => JSON.parse(own.slice("data: ".length)) as OpenAI.ChatCompletionChunk);
    const choices = chunks.flatMap((own) => own.choices);
    return {
      content: choices.map(({ delta }) => delta.content ?? "").join(""),
      calls: choices.flatMap(({ delta }) => delta.tool_calls ?? []),
      reason: choices.at(-1)!.finish_reason,
    };
  }

  test.each(recorded)("$client gets its answers", async ({ path, requests }) => {
    for (const [at, body] of requests.entries()) {
      const tool = body.tools?.[0] as { name?: string; function?: { name: string } } | undefined;
      const name = tool?.function?.name ?? tool?.name;
      const isForced = body.tool_choice !== undefined && body.tool_choice !== "auto";
      const calls = isForced || (name !== undefined && at === 0);
      // A model that is forced to call a function would call it forever.
      model.says(calls ? written(name!, values[name!]).repeat(isForced ? 3 : 1) : person);
      const found = await answer(path, body);
      expect([found.content, found.reason]).toEqual(calls ? ["", "tool_calls"] : [person, "stop"]);
      const called = found.calls.map((own) => [(own as OpenAI.ChatCompletionMessageFunctionToolCall).function]);
      expect(called).toEqual(calls ? [[{ name: name!, arguments: JSON.stringify(values[name!]) }]] : []);
    }
  });

  test("openai: runTools, until the model returns text", async () => {
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
    for (const stream of [false, true]) {
      const given: object[] = [];
      const add = {
        name: "add",
        description: "adds",
        parameters: { type: "object", properties: { a: { type: "integer" }, b: { type: "integer" } } },
        parse: JSON.parse,
        function: (own: { a: number; b: number }) => {
          given.push(own);
          model.says("It is 3.");
          return String(own.a + own.b);
        },
      };
      model.says(written("add", { a: 1, b: 2 }));
      const messages = [{ role: "user", content: "What is 1 + 2?" } as const];
      const tools = [{ type: "function", function: add } as const];
      const runner = client.chat.completions.runTools({ model: "m", messages, tools, stream } as never);
      expect(await (runner as { finalContent(): Promise<string | null> }).finalContent()).toBe("It is 3.");
      expect(given).toEqual([{ a: 1, b: 2 }]);
    }
  });
});
