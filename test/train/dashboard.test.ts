/** The dashboard's page in a real browser: events before and after it was opened. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Browser, Page } from "puppeteer-core";
import { Dashboard } from "../../src/train/dashboard/server.ts";
import type { RunEvent } from "../../src/train/events.ts";
import { launchChromium, newPage } from "../support/chromium.ts";
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
  page = await newPage(browser);
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
const open = () => page.goto(dashboard.url, { waitUntil: "load" });
const textOf = (id: string) => page.$eval(`#${id}`, ({ textContent }) => textContent);
/**
 * Waits until an element's text contains this. Code for the page is text, because this project has only Bun's types.
 */
const shows = (id: string, text: string) =>
  page.waitForFunction(`document.getElementById("${id}")?.textContent?.includes(${JSON.stringify(text)})`);
const countOf = (selector: string) => page.$$eval(selector, ({ length }) => length);

/** Counts the pixels of a chart that have a color near this one. */
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

describe("the page of a run", () => {
  test("a page that is opened during a run shows earlier events", async () => {
    emit(startEvent, ...Array.from({ length: 100 }, (_, k) => stepEvent(k + 1)), {
      kind: "evaluation",
      step: 100,
      loss: 3.702,
      bitsPerByte: 1.234,
    });
    await open();
    await shows("step", "100 of 400");
    await shows("held-out", "1.234");
    const figures = ["state", "loss", "held-out", "speed", "left", "memory", "parameters", "backend"];
    const texts = await Promise.all(figures.map(textOf));
    expect(texts).toEqual(["running", "1.040", "1.234", "45.7K", "1 min 1 s", "3.0 MB", "813K", "cpu"]);
    expect(await colored("loss-chart", blue)).toBeGreaterThan(100);
    expect(await colored("loss-chart", orange)).toBeGreaterThan(0);
  });

  test("the page follows the run", async () => {
    emit(startEvent);
    await open();
    await shows("state", "running");
    expect(await colored("loss-chart", blue)).toBe(0);
    emit(stepEvent(1), stepEvent(2, { bitsPerByte: 2.5 }));
    await shows("step", "2 of 400");
    expect(await textOf("loss")).toBe("2.500");
    emit({ kind: "end", step: 2, reason: "interrupted" });
    await shows("state", "interrupted");
    expect(await colored("loss-chart", blue)).toBeGreaterThan(0);
  });

  test("the page shows samples as text, the latest first, and notes", async () => {
    const sample = (step: number, text: string): RunEvent => ({ kind: "sample", step, prompt: "export ", text });
    emit(startEvent, sample(1, "<b>one</b>"), sample(2, "two"), {
      kind: "note",
      step: 2,
      text: "a checkpoint is broken",
    });
    await open();
    await shows("samples", "two");
    await shows("notes", "a checkpoint is broken");
    expect(await page.$$eval("#samples pre", (all) => all.map(({ textContent }) => textContent))).toEqual([
      "step 2\nexport two",
      "step 1\nexport <b>one</b>",
    ]);
    expect(await countOf("#samples b")).toBe(0);
    expect(await textOf("notes")).toContain("a checkpoint is broken");
  });

  test("the page reports a loss that is not finite, and draws a gap", async () => {
    emit(startEvent, stepEvent(1), stepEvent(2, { loss: Number.NaN, bitsPerByte: Number.NaN }));
    await open();
    await shows("loss", "not finite");
  });

  test("the page says when the process has ended", async () => {
    emit(startEvent);
    await open();
    await shows("state", "running");
    await dashboard.close();
    await shows("state", "the process has ended");
  });
});

describe("charts fit the width of the terminal", () => {
  interface Box {
    readonly left: number;
    readonly top: number;
    readonly width: number;
  }
  const run: readonly RunEvent[] = [
    startEvent,
    ...Array.from({ length: 300 }, (_, k) =>
      stepEvent(k + 1, { bitsPerByte: 2 + (k % 2), residentBytes: 190 * 2 ** 20 }),
    ),
    { kind: "evaluation", step: 300, loss: 7.5, bitsPerByte: 2.5 },
  ];

  /** Opens the page in a window of this width. Returns the positions of the drawings, and their texts. */
  async function opened(width: number) {
    await page.setViewport({ width, height: 900 });
    await page.evaluateOnNewDocument(`
      const write = CanvasRenderingContext2D.prototype.fillText;
      const clear = CanvasRenderingContext2D.prototype.clearRect;
      const written = new Map();
      window.written = (chart) => written.get(document.querySelector("#" + chart + " canvas"));
      CanvasRenderingContext2D.prototype.fillText = function (text, ...position) {
        written.get(this.canvas).push(text);
        return write.call(this, text, ...position);
      };
      CanvasRenderingContext2D.prototype.clearRect = function (...rectangle) {
        written.set(this.canvas, []); // drawn anew
        return clear.call(this, ...rectangle);
      };`);
    emit(...run);
    await open();
    await shows("step", "300 of 400");
    await shows("held-out", "2.500");
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"); // laid out
    const boxes = (await page.$$eval("main canvas", (all) =>
      all.map((each) => {
        const { left, top, width: wide } = each.getBoundingClientRect();
        return { left, top, width: wide };
      }),
    )) as [Box, Box, Box];
    const ticks = async (chart: string) => (await page.evaluate(`window.written("${chart}")`)) as readonly string[];
    const overflow = (await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")) as number;
    return { boxes, ticks, overflow };
  }

  test.each([320, 375, 767])(
    "charts are one below the other in %d columns of pixels, as wide as these",
    async (width) => {
      const { boxes, overflow } = await opened(width);
      expect(overflow).toBeLessThanOrEqual(0);
      const [first, second, third] = boxes;
      expect(new Set(boxes.map(({ left }) => left)).size).toBe(1);
      expect([first.top < second.top, second.top < third.top]).toEqual([true, true]);
      for (const box of boxes) expect(box.width).toBeGreaterThan(width - 40);
    },
  );

  test.each([768, 1280])("charts are two side by side below the loss in %d columns", async (width) => {
    const { boxes, overflow } = await opened(width);
    expect(overflow).toBeLessThanOrEqual(0);
    const [loss, speed, memory] = boxes;
    expect([loss.top < speed.top, speed.top === memory.top, speed.left < memory.left]).toEqual([true, true, true]);
    expect(loss.width).toBeGreaterThan(2 * speed.width);
    for (const box of boxes) expect(box.width).toBeGreaterThan(300);
  });

  test.each([375, 1280])(
    "charts have ticks at round numbers, and axes with their units, in %d columns",
    async (width) => {
      const { ticks } = await opened(width);
      const isRound = (distance: number) => /^[125]e/.test(distance.toExponential());
      const distanceOf = (labels: readonly string[]) => {
        const values = labels.map((label) => Number.parseFloat(label.replace(",", ""))).sort((a, b) => a - b);
        const gaps = values.slice(1).map((value, index) => value - values[index]);
        expect(gaps.length).toBeGreaterThan(0);
        for (const gap of gaps) expect(gap).toBeCloseTo(gaps[0], 9);
        return Number(gaps[0].toPrecision(9));
      };
      const units = { "loss-chart": "bits per byte", "speed-chart": "tokens per second", "memory-chart": "bytes" };
      for (const [chart, unit] of Object.entries(units)) {
        const written = await ticks(chart);
        expect(written.filter((label) => /^[a-z]/.test(label)).toSorted()).toEqual(["step", unit].toSorted());
        const labels = written.filter((label) => !/^[a-z]/.test(label));
        const steps = labels.filter((label) => /^\d+$/.test(label) && Number(label) >= 20);
        const others = labels.filter((label) => !steps.includes(label));
        expect([chart, distanceOf(steps), isRound(distanceOf(steps))]).toEqual([chart, expect.anything(), true]);
        expect([chart, distanceOf(others), isRound(distanceOf(others))]).toEqual([chart, expect.anything(), true]);
      }
      expect(await ticks("memory-chart")).toContain("100 MB");
    },
  );

  test("the loss has a smoothed line, named in the legend, which is steady where the losses are not", async () => {
    await opened(1280);
    const names = await page.$$eval("#loss-chart .u-legend .u-label", (all) =>
      all.map(({ textContent }) => textContent),
    );
    expect(names).toEqual(["step", "training", "smoothed", "held out"]);
    // The losses alternate between 2 and 3: their lines cross the whole band, the smoothed one stays in its middle.
    const rows = (await page.evaluate(`(() => {
      const { width, height } = document.querySelector("#loss-chart canvas");
      const { data } = document.querySelector("#loss-chart canvas").getContext("2d").getImageData(0, 0, width, height);
      const isNear = (at) => (value, k) => Math.abs(data[at + k] - value) < 8;
      const isBlue = (at) => [59, 130, 246].every(isNear(at)) && data[at + 3] > 240;
      const x = Math.floor(0.9 * width);
      return Array.from({ length: height }, (_, y) => y).filter((y) => isBlue(4 * (y * width + x)));
    })()`)) as readonly number[];
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.at(-1)! - rows[0]).toBeLessThan(8);
  });
});

test("the page of a long run receives a part of its steps, from the first to the last", async () => {
  emit(startEvent, ...Array.from({ length: 20_000 }, (_, k) => stepEvent(k + 1)));
  await open();
  await shows("step", "20000 of 400");
});

test("the error for a port in use names it", () => {
  const other = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => undefined } });
  expect(() => new Dashboard(other.port)).toThrow(`the dashboard cannot use port ${other.port}`);
  other.stop();
});

test("other paths are not found", async () => {
  const url = new URL(dashboard.url);
  url.pathname = "/nothing";
  expect((await fetch(url)).status).toBe(404);
});
