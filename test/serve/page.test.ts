/** The page to talk to a model, in a real browser. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Browser, Page } from "puppeteer-core";
import { setBackend } from "../../src/index.ts";
import type { ModelServer } from "../../src/serve/server.ts";
import { launchChromium, newPage } from "../support/chromium.ts";
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
  server = start({ limits: { tokens: 40 } }, model, greedy);
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

const open = () => page.goto(server.url, { waitUntil: "networkidle0" });
const articles = (kind: string) => page.$$eval(`article.${kind}`, (all) => all.map(({ textContent }) => textContent));
const until = (condition: string) => page.waitForFunction(condition);
const finished = () => until(`/\\d+ tokens in/.test(document.querySelector("#state").textContent)`);
const visible = (id: string) => page.$eval(`#${id}`, (element) => element.checkVisibility());
const promptOf = (...said: string[]) =>
  `${said.map((text, at) => `<${at % 2 === 0 ? "user" : "assistant"}>${text}\n`).join("")}<assistant>`;

test("Enter sends, the answer streams, and the next message knows what was said", async () => {
  await open();
  expect(await page.$eval("#model", ({ textContent }) => textContent)).toBe("tiny/llama");
  const goOn = holdAfter(model, 6);
  await page.keyboard.type("Hi"); // the field has the focus
  await page.keyboard.press("Enter");
  await until(`document.querySelector("article.assistant")?.textContent.length > 0`);
  expect([await visible("stop"), await visible("send")]).toEqual([true, false]);
  goOn();
  await finished();
  expect([await visible("stop"), await visible("send")]).toEqual([false, true]);
  const first = await textAlone(model, promptOf("Hi"), 40);
  expect(await articles("assistant")).toEqual([first]);
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
  expect(await articles("assistant")).toEqual([first, second]);
  expect(asked.every((url) => url.startsWith(server.url) || url.startsWith("data:"))).toBe(true);
  expect(problems).toEqual([]);
});

test.each(["the button", "Escape", "a new chat"])("%s stops an answer, on the server too", async (way) => {
  const goOn = holdAfter(model, 6);
  await open();
  await page.keyboard.type("Hi");
  await page.keyboard.press("Enter");
  await until(`document.querySelector("article.assistant")?.textContent.length > 0`);
  if (way === "Escape") await page.keyboard.press("Escape");
  else await page.click(way === "a new chat" ? "#reset" : "#stop");
  await until(`document.querySelector("#send").checkVisibility()`);
  expect(await page.$eval("#state", ({ textContent }) => textContent)).toBe(way === "a new chat" ? "" : "stopped");
  const lengths = (await articles("assistant")).map((answer) => answer!.length);
  if (way === "a new chat") expect(lengths).toEqual([]);
  else expect([lengths.length, lengths[0]! > 0, lengths[0]! < 40]).toEqual([1, true, true]);
  await showsFigures(server, /texts_total\{outcome="left"\} 1\n/);
  goOn();
  const figures = await showsFigures(server, /texts_active 0\n/);
  expect(Number(/generated_tokens_total (\d+)\n/.exec(figures)?.[1])).toBeLessThan(10);
  if (way !== "a new chat") await page.click("#reset");
  expect(await articles("assistant")).toEqual([]);
  await page.keyboard.type("Hi");
  await page.keyboard.press("Enter");
  await finished();
  expect(await articles("assistant")).toEqual([await textAlone(model, promptOf("Hi"), 40)]);
  expect(problems).toEqual([]);
});

test("a mistake is shown, and the chat goes on without it", async () => {
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
  expect(await articles("assistant")).toEqual([await textAlone(model, promptOf("Hi"), 40)]);
});

test("a server with a key: the page asks for it", async () => {
  await server.close(0);
  server = start({ key: "secret", limits: { tokens: 40 } }, model, greedy);
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
  expect(await articles("assistant")).toEqual([await textAlone(model, promptOf("Hi"), 40)]);
});

/** The relative luminance of WCAG 2, of a colour as the browser computes it. */
const LUMINANCE = `(css) => {
  const [r, g, b] = css.match(/[\\d.]+/g).map((own) => own / 255);
  const linear = (own) => (own <= 0.04045 ? own / 12.92 : ((own + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}`;

describe.each(["light", "dark"])("%s", (scheme) => {
  test.each([320, 1280])("%d pixels wide: nothing is cut off, and everything can be read", async (width) => {
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

test("the page may do nothing but ask its server", async () => {
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
