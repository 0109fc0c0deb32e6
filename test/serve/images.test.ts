/** Chats with images: by the server's API, and in a session of `orchard chat`. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { io, nn, setBackend, tensor } from "../../src/index.ts";
import { ChatSession } from "../../src/serve/chat_session.ts";
import type { ServedModel } from "../../src/serve/served_model.ts";
import { ModelServer } from "../../src/serve/server.ts";
import type { ServerOptions } from "../../src/serve/server_options.ts";
import { tinyModel } from "../nn/models/vision_language/tiny.ts";
import { testFolder } from "../support/folder.ts";

const folder = testFolder("served-images");
const { model, processor } = tinyModel(folder.path, "qwen2_vl");
const { tokenizer, template } = processor;
const served: ServedModel = { name: "tiny", model, tokenizer, template, processor, defaults: { temperature: 0 } };
const file = folder.file("image.png");
const servers: ModelServer[] = [];

beforeAll(async () => {
  setBackend("cpu");
  const bytes = Uint8Array.from({ length: 3 * 12 * 17 }, (_, at) => (at * 37) % 251);
  await io.saveImage(file, tensor(bytes, { shape: [3, 12, 17], dtype: "uint8" }));
});
afterAll(() => Promise.all(servers.map((server) => server.close(0))));

async function start(options: ServerOptions = {}): Promise<ModelServer> {
  const server = await ModelServer.start(served, { port: 0, ...options });
  servers.push(server);
  return server;
}

const dataUrl = () => `data:image/png;base64,${readFileSync(file).toString("base64")}`;
/** The parts of answers that the tests read. */
interface Answered {
  readonly choices: readonly { readonly message: { readonly content: string } }[];
  readonly output: readonly { readonly content: readonly { readonly text: string }[] }[];
  readonly usage: { readonly prompt_tokens: number };
  readonly error: { readonly code: string };
}
const answered = async (response: Response) => (await response.json()) as Answered;
const ask = ({ url }: ModelServer, path: string, body: object) =>
  fetch(`${url}/v1/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ model: "tiny", ...body }),
  });
const chat = (server: ModelServer, url: string) => {
  const content = [
    { type: "image_url", image_url: { url, detail: "low" } },
    { type: "text", text: "Hi" },
  ];
  return ask(server, "chat/completions", { messages: [{ role: "user", content }], max_completion_tokens: 8 });
};

async function expected(): Promise<string> {
  const content = [
    { type: "image", image: file },
    { type: "text", text: "Hi" },
  ];
  const prompt = await processor.prompt([{ role: "user", content }]);
  const pieces = nn.generateText(model, tokenizer, prompt, { maxTokens: 8, temperature: 0 });
  return (await Array.fromAsync(pieces)).join("");
}

test("a chat completion, a response and a session answer about an image", async () => {
  const server = await start();
  const want = await expected();
  const { choices, usage } = await answered(await chat(server, dataUrl()));
  expect(choices[0].message.content).toBe(want);
  expect(usage.prompt_tokens).toBeGreaterThan(10);

  const parts = [
    { type: "input_image", image_url: dataUrl() },
    { type: "input_text", text: "Hi" },
  ];
  const input = [{ role: "user", content: parts }];
  const request = { input, max_output_tokens: 8, temperature: 0 };
  const response = await answered(await ask(server, "responses", request));
  expect(response.output[0].content[0].text).toBe(want);

  using session = new ChatSession(served, { maxTokens: 8, temperature: 0 });
  session.attach(file);
  expect((await Array.fromAsync(session.say("Hi"))).join("")).toBe(want);
  expect(session.messages[0].content).toEqual([
    { type: "image", image: file },
    { type: "text", text: "Hi" },
  ]);
});

test("a chat without images works, for a template that iterates over parts", async () => {
  const server = await start();
  const messages = [{ role: "user", content: "Hi" }];
  const { choices } = await answered(await ask(server, "chat/completions", { messages, max_completion_tokens: 8 }));
  const prompt = tokenizer.encode(template.render([{ role: "user", content: [{ type: "text", text: "Hi" }] }]));
  const pieces = nn.generateText(model, tokenizer, prompt, { maxTokens: 8, temperature: 0 });
  expect(choices[0].message.content).toBe((await Array.fromAsync(pieces)).join(""));
});

test("other URLs and damaged images are rejected", async () => {
  const server = await start();
  const images = Bun.serve({
    port: 0,
    fetch: (request) =>
      request.url.endsWith("/moved") ? Response.redirect("/image.png") : new Response(readFileSync(file)),
  });
  try {
    const at = (path: string) => `${images.url.href}${path}`;
    const problem = async (response: Response) => (await answered(response)).error.code;
    expect(await problem(await chat(server, at("image.png")))).toBe("image_url_not_allowed");
    for (const url of ["/etc/hosts", "file:///etc/hosts", "data:image/png;base64,AAAA"])
      expect(await problem(await chat(server, url))).toBe("invalid_image");
    const downloading = await start({ limits: { imageUrls: true } });
    const { choices } = await answered(await chat(downloading, at("image.png")));
    expect(choices[0].message.content).toBe(await expected());
    expect(await problem(await chat(downloading, at("moved")))).toBe("invalid_image");
    const small = await start({ limits: { imageUrls: true, bodyBytes: 300 } });
    expect(await problem(await chat(small, at("image.png")))).toBe("invalid_image");
  } finally {
    await images.stop(true);
  }
});

test("a model that reads only text rejects images", () => {
  const { processor: _, ...text } = served;
  using session = new ChatSession(text);
  expect(() => session.attach(file)).toThrow(expect.objectContaining({ code: "noImages" }));
});
