/**
 * The dashboard's page in a real browser: what it shows of events that came before it was opened, and of those that
 * come after.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Browser, Page } from "puppeteer-core";
import { Dashboard } from "../../src/train/dashboard/server.ts";
import type { RunEvent } from "../../src/train/events.ts";
import { launchChromium } from "../support/chromium.ts";
import { startEvent, stepEvent } from "./events.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await launchChromium();
});
afterAll(() => browser.close());

let dashboard: Dashboard;
let page: Page;
let problems: string[];

beforeEach(async () => {
  dashboard = new Dashboard();
  page = await browser.newPage();
  problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
});
afterEach(async () => {
  await page.close();
  await dashboard.close();
  expect(problems).toEqual([]);
});

const emit = (...events: readonly RunEvent[]) => {
  for (const event of events) dashboard.on(event);
};
const open = () => page.goto(dashboard.url, { waitUntil: "networkidle0" });
const textOf = (id: string) => page.$eval(`#${id}`, ({ textContent }) => textContent);
/**
 * Waits until an element's text has this in it. What runs in the page is text: this project's types are those of Bun.
 */
const shows = (id: string, text: string) =>
  page.waitForFunction(`document.getElementById("${id}")?.textContent?.includes(${JSON.stringify(text)})`);
const countOf = (selector: string) => page.$$eval(selector, ({ length }) => length);

/** Pixels of a chart that have a color near this one. */
const colored = (chart: string, color: readonly [number, number, number]): Promise<number> =>
  page.evaluate(`(() => {
    const canvas = document.querySelector("#${chart} canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const matches = (at) => (value, k) => Math.abs(data[at + k] - value) < 24;
    const isNear = (at) => ${JSON.stringify(color)}.every(matches(at)) && data[at + 3] > 128;
    return Array.from({ length: data.length / 4 }, (_, pixel) => isNear(4 * pixel)).filter(Boolean).length;
  })()`) as Promise<number>;
const blue = [59, 130, 246] as const;
const orange = [234, 88, 12] as const;

describe("a page", () => {
  test("that is opened during a run shows what has happened", async () => {
    emit(startEvent, ...Array.from({ length: 100 }, (_, k) => stepEvent(k + 1)), {
      kind: "evaluation",
      step: 100,
      loss: 1.234,
    });
    await open();
    await shows("step", "100 of 400");
    const figures = ["state", "loss", "held-out", "speed", "left", "memory", "parameters", "backend"];
    const texts = await Promise.all(figures.map(textOf));
    expect(texts).toEqual(["running", "1.040", "1.234", "45.7K", "1 min 1 s", "3.0 MB", "813K", "cpu"]);
    expect(await colored("loss-chart", blue)).toBeGreaterThan(100);
    expect(await colored("loss-chart", orange)).toBeGreaterThan(0);
  });

  test("follows the run", async () => {
    emit(startEvent);
    await open();
    await shows("state", "running");
    expect(await colored("loss-chart", blue)).toBe(0);
    emit(stepEvent(1), stepEvent(2, { loss: 2.5 }));
    await shows("step", "2 of 400");
    expect(await textOf("loss")).toBe("2.500");
    emit({ kind: "end", step: 2, reason: "interrupted" });
    await shows("state", "interrupted");
    expect(await colored("loss-chart", blue)).toBeGreaterThan(0);
  });

  test("shows samples as text, the latest first, and notes", async () => {
    const sample = (step: number, text: string): RunEvent => ({ kind: "sample", step, prompt: "export ", text });
    emit(startEvent, sample(1, "<b>one</b>"), sample(2, "two"), {
      kind: "note",
      step: 2,
      text: "a checkpoint is broken",
    });
    await open();
    await shows("samples", "two");
    expect(await page.$$eval("#samples pre", (all) => all.map(({ textContent }) => textContent))).toEqual([
      "step 2\nexport two",
      "step 1\nexport <b>one</b>",
    ]);
    expect(await countOf("#samples b")).toBe(0);
    expect(await textOf("notes")).toContain("a checkpoint is broken");
  });

  test("says that a loss is not finite, and draws a gap", async () => {
    emit(startEvent, stepEvent(1), stepEvent(2, { loss: Number.NaN }));
    await open();
    await shows("loss", "not finite");
  });

  test("says when the process has ended", async () => {
    emit(startEvent);
    await open();
    await shows("state", "running");
    await dashboard.close();
    await shows("state", "the process has ended");
  });
});

test("a long run's page is given a part of its steps, from the first to the last", async () => {
  emit(startEvent, ...Array.from({ length: 20_000 }, (_, k) => stepEvent(k + 1)));
  await open();
  await shows("step", "20000 of 400");
});

test("a port that is taken is an error which names it", () => {
  const other = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => undefined } });
  expect(() => new Dashboard(other.port)).toThrow(`the dashboard cannot use port ${other.port}`);
  other.stop();
});

test("other paths are not found", async () => {
  const url = new URL(dashboard.url);
  url.pathname = "/nothing";
  expect((await fetch(url)).status).toBe(404);
});
