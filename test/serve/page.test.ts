/** The page to talk to a model, in a real browser. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Browser, Page } from "puppeteer-core";
import { io, nn, setBackend, tensor } from "../../src/index.ts";
import { ModelServer } from "../../src/serve/server.ts";
import { tinyModel } from "../nn/models/vision_language/tiny.ts";
import { launchChromium, newPage } from "../support/chromium.ts";
import { testFolder } from "../support/folder.ts";
import { holdAfter, randomLlama, restoreModel, showsFigures, start, textAlone } from "./served.ts";

const model = randomLlama();
const greedy = { temperature: 0 } as const;
let browser: Browser;
let server: ModelServer;
let page: Page;
let problems: string[];
let asked: string[];

beforeAll(async () => {
  setBackend("cpu");
  browser = await launchChromium();
});
afterAll(() => browser.close());

beforeEach(async () => {
  server = await start({ limits: { tokens: 40 } }, model, greedy);
  page = await newPage(browser);
  [problems, asked] = [[], []];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("request", (request) => asked.push(request.url()));
});
afterEach(async () => {
  restoreModel(model);
  await page.close();
  await server.close(0);
});

/** Waits until the page knows the model, or asks for a key. */
const ready = () =>
  until(`document.querySelector("#model").textContent !== "Chat" || document.querySelector("#key-form:not([hidden])")`);
async function open(url: string = server.url): Promise<void> {
  await page.goto(url);
  await ready();
}
async function reload(): Promise<void> {
  await page.reload();
  await ready();
}
const articles = (kind: string) =>
  page.$$eval(`article.${kind} .body`, (all) => all.map(({ textContent }) => textContent));
/** The answers as the model wrote them, to be rendered as Markdown. */
const answers = () =>
  page.evaluate(`(JSON.parse(sessionStorage.getItem("orchard-chat"))?.messages ?? [])
    .filter(({ role }) => role === "assistant").map(({ content }) => content)`) as Promise<string[]>;
const until = (condition: string) => page.waitForFunction(condition);
const finished = () => until(`/\\d+ tokens in/.test(document.querySelector("#state").textContent)`);
const visible = (id: string) => page.$eval(`#${id}`, (element) => element.checkVisibility());
const promptOf = (...said: string[]) =>
  `${said.map((text, at) => `<${at % 2 === 0 ? "user" : "assistant"}>${text}\n`).join("")}<assistant>`;

test("Enter sends, the answer streams, and the next message includes the conversation", async () => {
  await open();
  expect(await page.$eval("#model", ({ textContent }) => textContent)).toBe("tiny/llama");
  const goOn = holdAfter(model, 6);
  await page.keyboard.type("Hi"); // the input field has the focus
  await page.keyboard.press("Enter");
  await until(`document.querySelector("article.assistant .body")?.textContent.length > 0`);
  expect([await visible("stop"), await visible("send")]).toEqual([true, false]);
  goOn();
  await finished();
  expect([await visible("stop"), await visible("send")]).toEqual([false, true]);
  const first = await textAlone(model, promptOf("Hi"), 40);
  expect(await answers()).toEqual([first]);
  await page.keyboard.type("a");
  await page.keyboard.down("Shift");
  await page.keyboard.press("Enter");
  await page.keyboard.up("Shift");
  await page.keyboard.type("<b>b</b>");
  await page.keyboard.press("Enter");
  await until(`document.querySelectorAll("article.assistant").length === 2`);
  await finished();
  expect(await articles("user")).toEqual(["Hi", "a\n<b>b</b>"]);
  expect(await page.$$eval("article b", ({ length }) => length)).toBe(0);
  const second = await textAlone(model, promptOf("Hi", first, "a\n<b>b</b>"), 40);
  expect(await answers()).toEqual([first, second]);
  expect(asked.every((url) => url.startsWith(server.url) || url.startsWith("data:"))).toBe(true);
  expect(problems).toEqual([]);
});

test("a chosen image is shown, sent with the message, and can be removed before", async () => {
  const files = testFolder("page-images");
  const { model: reader, processor } = tinyModel(files.path, "gemma3");
  const { tokenizer, template } = processor;
  const images = ["a.png", "b.png"].map((name) => files.file(name));
  for (const [at, path] of images.entries()) {
    const bytes = Uint8Array.from({ length: 3 * 12 * 15 }, (_, index) => (index * (37 + at)) % 251);
    await io.saveImage(path, tensor(bytes, { shape: [3, 12, 15], dtype: "uint8" }));
  }
  const seen = { name: "tiny", model: reader, tokenizer, template, processor, defaults: { temperature: 0 } };
  const other = await ModelServer.start(seen, { port: 0, limits: { tokens: 12 } });
  try {
    await open(other.url);
    const [chooser] = await Promise.all([page.waitForFileChooser(), page.click("#file")]);
    await chooser.accept(images);
    await until(`document.querySelectorAll("#images img").length === 2`);
    await page.click("#images button");
    await until(`document.querySelectorAll("#images img").length === 1`);
    await page.focus("#text");
    await page.keyboard.type("Hi");
    await page.keyboard.press("Enter");
    await finished();
    const content = [
      { type: "image", image: images[1] },
      { type: "text", text: "Hi" },
    ];
    const prompt = await processor.prompt([{ role: "user", content }]);
    const pieces = nn.generateText(reader, tokenizer, prompt, { maxTokens: 12, temperature: 0 });
    expect(await answers()).toEqual([(await Array.fromAsync(pieces)).join("")]);
    expect(await page.$$eval("article.user img", ({ length }) => length)).toBe(1);
    expect(problems).toEqual([]);
  } finally {
    await other.close(0);
  }
});

test.each(["the button", "Escape", "a new chat"])("%s stops an answer, on the server too", async (way) => {
  const goOn = holdAfter(model, 6);
  await open();
  await page.keyboard.type("Hi");
  await page.keyboard.press("Enter");
  await until(`document.querySelector("article.assistant .body")?.textContent.length > 0`);
  if (way === "Escape") await page.keyboard.press("Escape");
  else await page.click(way === "a new chat" ? "#reset" : "#stop");
  await until(`document.querySelector("#send").checkVisibility()`);
  expect(await page.$eval("#state", ({ textContent }) => textContent)).toBe(way === "a new chat" ? "" : "stopped");
  const lengths = (await answers()).map((answer) => answer.length);
  if (way === "a new chat") expect(lengths).toEqual([]);
  else expect([lengths.length, lengths[0] > 0, lengths[0] < 40]).toEqual([1, true, true]);
  await showsFigures(server, /texts_total\{outcome="left"\} 1\n/);
  goOn();
  const figures = await showsFigures(server, /texts_active 0\n/);
  expect(Number(/generated_tokens_total (\d+)\n/.exec(figures)?.[1])).toBeLessThan(10);
  if (way !== "a new chat") await page.click("#reset");
  expect(await answers()).toEqual([]);
  await page.keyboard.type("Hi");
  await page.keyboard.press("Enter");
  await finished();
  expect(await answers()).toEqual([await textAlone(model, promptOf("Hi"), 40)]);
  expect(problems).toEqual([]);
});

test("an error is shown, and the chat continues without it", async () => {
  await open();
  await page.$eval("#text", (field) => {
    (field as unknown as { value: string }).value = "x".repeat(300);
  });
  await page.focus("#text");
  await page.keyboard.press("Enter");
  await until(`document.querySelector("article.error") !== null`);
  expect((await articles("error"))[0]).toContain("expected a prompt of fewer than 256 tokens");
  await page.keyboard.type("Hi");
  await page.keyboard.press("Enter");
  await finished();
  expect(await answers()).toEqual([await textAlone(model, promptOf("Hi"), 40)]);
});

test("a reload keeps the chat and the settings, but no key", async () => {
  await open();
  await page.click("#settings summary");
  await page.type("#temperature", "0");
  await page.focus("#text");
  await page.keyboard.type("Hi");
  await page.keyboard.press("Enter");
  await finished();
  const first = await textAlone(model, promptOf("Hi"), 40);
  await reload();
  expect([await articles("user"), await answers()]).toEqual([["Hi"], [first]]);
  expect(await page.$eval("#temperature", (field) => (field as unknown as { value: string }).value)).toBe("0");
  await page.keyboard.type("b");
  await page.keyboard.press("Enter");
  await finished();
  expect(await answers()).toEqual([first, await textAlone(model, promptOf("Hi", first, "b"), 40)]);
  await page.click("#reset");
  await reload();
  expect(await articles("user")).toEqual([]);
});

test("the system prompt and the sampling are sent, empty fields are not", async () => {
  const sent: Record<string, unknown>[] = [];
  page.on("request", (request) => {
    if (request.method() === "POST") sent.push(JSON.parse(request.postData()!) as Record<string, unknown>);
  });
  await open();
  await page.click("#settings summary");
  for (const [id, value] of Object.entries({ system: "be brief", temperature: "0.5", most: "7", seed: "3" }))
    await page.type(`#${id}`, value);
  await page.type("#text", "Hi");
  await page.keyboard.press("Enter");
  await finished();
  const { stream: _, stream_options: __, ...asked } = sent[0];
  const messages = [
    { role: "system", content: "be brief" },
    { role: "user", content: "Hi" },
  ];
  expect(asked).toEqual({ model: "tiny/llama", messages, temperature: 0.5, max_completion_tokens: 7, seed: 3 });
});

/** Opens the page with earlier answers. */
async function openWith(...contents: string[]): Promise<void> {
  const messages = contents.map((content) => ({ role: "assistant", content }));
  const kept = JSON.stringify({ messages, settings: {} });
  await open();
  await page.evaluate(`sessionStorage.setItem("orchard-chat", ${JSON.stringify(kept)})`);
  await reload();
}

const drawn = () =>
  page.$$eval("article.assistant .body", (all) =>
    all.map((body) => (body as unknown as { innerHTML: string }).innerHTML),
  );

/** Texts from the specifications of CommonMark and GFM, with the specified elements. */
const specified = [
  ["*foo **bar** baz*", "<p><em>foo <strong>bar</strong> baz</em></p>"],
  ["# foo", "<h2>foo</h2>"], // the page itself has a first heading
  ["3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'],
  ["- [x] a", "<ul><li>☑ a</li></ul>"],
  ["> a\n\n***", "<blockquote><p>a</p></blockquote><hr>"],
  ["```ts\nif (a < b) &amp;\n```", "<pre><code>if (a &lt; b) &amp;amp;</code></pre>"],
  ["`<b>` ~~a~~", "<p><code>&lt;b&gt;</code> <del>a</del></p>"],
  [
    "| a | b |\n| - | - |\n| 1 | 2 |",
    "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>",
  ],
  ["\\*a\\* &lt;", "<p>*a* &lt;</p>"],
] as const;

test("the page renders Markdown as specified", async () => {
  await openWith(...specified.map(([content]) => content));
  const elements = (await drawn()).map((html) => html.replaceAll("\n", ""));
  expect(elements).toEqual(specified.map(([, html]) => html));
});

test("a link leaves the page in a new tab", async () => {
  await openWith("[a](https://example.org/b)");
  const rel = 'target="_blank" rel="noopener noreferrer nofollow"';
  expect(await drawn()).toEqual([`<p><a href="https://example.org/b" ${rel}>a</a></p>`]);
});

test("hostile Markdown creates only text elements, and runs nothing", async () => {
  const [run, scheme] = ["window.pwned=1", "javascript:window.pwned=1"];
  const pieces = [
    `<script>${run}</script>`,
    `<img src=x onerror="${run}">`,
    `<svg onload=${run}>`,
    `<iframe srcdoc="x">`,

    `<a href="${scheme}">x</a>`,
    `<style>*{display:none}</style>`,
    `<form action=/x><button>x`,
    "<!-- x",
    "<![CDATA[",
    `[x](${scheme})`,
    `[x](JaVaScRiPt:${run})`,
    `[x](data:text/html,<script>${run}</script>)`,
    `<${scheme}>`,
    `![x](${scheme})`,
    `![x](https://example.org/x.png)`,
    `[x][y]\n\n[y]: ${scheme}`,
    `[x](java\nscript:${run})`,
    `[x](https://e.org/" onmouseover="${run})`,
    `\`\`\`<script>\n${run}`,
    `| <img src=x onerror=${run}> |\n|-|`,

    "&lt;script&gt;",
    `&#106;avascript:${run}`,
    "**",
    "_",
    "> ",
    "- ",
    "\n",
    "\n\n",
    "    ",
    "~~",
    "$&",
    "[",
    "](",
    "`",
  ];
  let seed = 34;
  const draw = (limit: number) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * limit);
  };
  const texts = Array.from({ length: 60 }, () =>
    Array.from({ length: 1 + draw(9) }, () => pieces[draw(pieces.length)]).join(draw(2) ? "" : " "),
  );
  const deep = [">".repeat(20_000), "[".repeat(5000), "*a ".repeat(5000), "- ".repeat(2000), "![".repeat(3000)];
  const messages = [...pieces, ...texts, ...deep].map((content) => ({ role: "assistant", content }));
  await open();
  await page.evaluate(
    `sessionStorage.setItem("orchard-chat", ${JSON.stringify(JSON.stringify({ messages, settings: {} }))})`,
  );
  await page.reload({ waitUntil: "networkidle0" }); // a script of a message would run in this time
  await until(`document.querySelectorAll("article.assistant").length === ${messages.length}`);
  const found = (await page.evaluate(`[...document.querySelectorAll("article.assistant .body *")].map((own) => ({
    name: own.localName, href: own.getAttribute("href"), attributes: own.getAttributeNames() }))`)) as {
    readonly name: string;
    readonly href: string | null;
    readonly attributes: string[];
  }[];
  const allowed =
    "p h2 h3 h4 h5 h6 pre code ul ol li blockquote em strong del a hr br table thead tbody tr th td".split(" ");
  expect(found.filter(({ name }) => !allowed.includes(name))).toEqual([]);
  expect(
    found.flatMap(({ attributes }) => attributes.filter((own) => !["href", "target", "rel", "start"].includes(own))),
  ).toEqual([]);
  expect(found.filter(({ href }) => href !== null && !/^(?:https?|mailto):/i.test(href))).toEqual([]);
  expect(found.filter(({ name }) => name === "a").length).toBeGreaterThan(0);
  expect(await page.evaluate("window.pwned")).toBeUndefined();
  expect(asked.every((url) => url.startsWith(server.url) || url.startsWith("data:"))).toBe(true);
  expect(problems).toEqual([]);
});

test("a button copies a message as it was written", async () => {
  await browser.defaultBrowserContext().overridePermissions(server.url, ["clipboard-read", "clipboard-write"]);
  await openWith("**a** <b>\n");
  await page.click("article.assistant .copy");
  await until(`document.querySelector("article.assistant .copy").textContent === "Copied"`);
  expect(await page.evaluate("navigator.clipboard.readText()")).toBe("**a** <b>\n");
});

test("the page asks for the key of a server with a key", async () => {
  await server.close(0);
  server = await start({ key: "secret", limits: { tokens: 40 } }, model, greedy);
  await open();
  await until(`document.querySelector("#key-form").checkVisibility()`);
  for (const key of ["wrong", "secret"]) {
    await page.type("#key", key);
    await page.keyboard.press("Enter");
    if (key === "wrong") await until(`document.querySelectorAll("article.error").length === 2`);
  }
  await until(`document.querySelector("#model").textContent === "tiny/llama"`);
  expect(await visible("key-form")).toBe(false);
  await page.type("#text", "Hi");
  await page.keyboard.press("Enter");
  await finished();
  expect(await answers()).toEqual([await textAlone(model, promptOf("Hi"), 40)]);
});

/** The relative luminance of WCAG 2, of a color as the browser computes it. */
const LUMINANCE = `(css) => {
  const [r, g, b] = css.match(/[\\d.]+/g).map((own) => own / 255);
  const linear = (own) => (own <= 0.04045 ? own / 12.92 : ((own + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}`;

describe.each(["light", "dark"])("the page works in %s", (scheme) => {
  test.each([320, 1280])("%d pixels wide: nothing is cut off, and everything is readable", async (width) => {
    await page.setViewport({ width, height: 640 });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await open();
    await page.keyboard.type("w".repeat(150));
    await page.keyboard.press("Enter");
    await finished();
    expect(await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")).toBeLessThanOrEqual(0);
    expect(await page.evaluate("document.documentElement.scrollHeight - window.innerHeight")).toBeLessThanOrEqual(0);
    const hidden = await page.$$eval("main, article", (all) => all.map((own) => own.scrollWidth - own.clientWidth));
    expect(Math.max(...hidden)).toBeLessThanOrEqual(0);
    const inside = await page.$$eval("button, textarea, article", (all) =>
      all.filter((own) => own.checkVisibility()).map((own) => own.getBoundingClientRect().right),
    );
    expect(Math.max(...inside)).toBeLessThanOrEqual(width);
    const contrasts = (await page.evaluate(`(() => {
      const luminance = ${LUMINANCE};
      const paper = (own) => {
        const { backgroundColor } = getComputedStyle(own);
        return /, 0\\)|transparent/.test(backgroundColor) ? paper(own.parentElement) : backgroundColor;
      };
      return [...document.querySelectorAll("h1, article, label, button, textarea, #state, #help")].map((own) => {
        const [a, b] = [getComputedStyle(own).color, paper(own)].map(luminance).toSorted((x, y) => y - x);
        return (a + 0.05) / (b + 0.05);
      });
    })()`)) as number[];
    expect(contrasts.length).toBeGreaterThan(6);
    expect(Math.min(...contrasts)).toBeGreaterThanOrEqual(4.5);
    const dark = (await page.evaluate(
      `(${LUMINANCE})(getComputedStyle(document.body).backgroundColor) < 0.5`,
    )) as boolean;
    expect(dark).toBe(scheme === "dark");
    expect(problems).toEqual([]);
  });
});

test("the page may connect only to its server", async () => {
  const response = await fetch(server.url);
  const policy = response.headers.get("content-security-policy")!;
  expect(policy).toContain("default-src 'none'");
  expect(policy).toMatch(/script-src 'sha256-[^ ;]+'; style-src 'sha256-[^ ;]+'; connect-src 'self'$/);
  expect(policy).not.toContain("unsafe");
  expect(response.headers.get("x-content-type-options")).toBe("nosniff");
  await open();
  const refused = await page.evaluate(`fetch("http://127.0.0.1:9/").then(() => "came", () => "refused")`);
  expect(refused).toBe("refused");
  expect(problems.join()).toContain("Content Security Policy");
  expect((await fetch(server.url, { method: "POST" })).status).toBe(405);
  expect((await fetch(server.url, { headers: { Host: "evil.example" } })).status).toBe(403);
});
