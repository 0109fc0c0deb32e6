/** The loss curve: its contents, that it is well-formed, and that the PNG is the same picture, text included. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { drawCurve, type Point, toPng } from "../../src/train/curve.ts";
import { CURVE_FILES, CurveFiles } from "../../src/train/listeners/curve.ts";
import { testFolder } from "../support/folder.ts";
import { stepEvent } from "./events.ts";

const points = (count: number, loss: (step: number) => number): Point[] =>
  Array.from({ length: count }, (_, k) => ({ step: k + 1, loss: loss(k + 1) }));

/** The points of a path, in pixels. */
const pathIn = (svg: string, kind: string): (readonly [number, number])[] => {
  const d = new RegExp(`<path class="${kind}" d="([^"]*)"`).exec(svg)![1];
  return [...d.matchAll(/([\d.]+),([\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)] as const);
};
const lastText = (svg: string, name: string) => new RegExp(`>${name} ([\\d.]+)<`).exec(svg)?.[1];

describe("the picture shows the losses", () => {
  const svg = drawCurve({ training: points(100, (step) => 1 + 3 / step), heldOut: [{ step: 50, loss: 1.5 }] });

  test("the picture has a point for each step, later ones further right, and smaller losses further down", () => {
    const drawn = pathIn(svg, "training");
    expect(drawn).toHaveLength(100);
    expect(drawn.every(([x], k) => k === 0 || x > drawn[k - 1][0])).toBe(true);
    expect(drawn.every(([, y], k) => k === 0 || y >= drawn[k - 1][1])).toBe(true);
  });

  test("the axis of losses starts at 0, so that half the height is half the loss", () => {
    const flat = drawCurve({ training: points(2, (step) => 4 * (3 - step)), heldOut: [] }); // the losses are 8 and 4
    const [[, high], [, half]] = pathIn(flat, "training") as [readonly [number, number], readonly [number, number]];
    const bottom = 540 - 48;
    expect((bottom - half) / (bottom - high)).toBeCloseTo(0.5, 2);
  });

  test("the picture labels the last losses, and marks held-out ones", () => {
    expect([lastText(svg, "training"), lastText(svg, "held out")]).toEqual(["1.030", "1.500"]);
    expect(svg.match(/<circle class="held-out"/g)).toHaveLength(1);
  });

  test("the running mean starts without a bias", () => {
    const constant = pathIn(drawCurve({ training: points(300, () => 2), heldOut: [] }), "smoothed");
    expect(new Set(constant.map(([, y]) => y)).size).toBe(1);
  });

  test("the picture of a long run has at most 2,000 points, to the last step", () => {
    const drawn = pathIn(drawCurve({ training: points(100_001, () => 1), heldOut: [] }), "training");
    expect(drawn.length).toBeLessThanOrEqual(2000);
    expect(drawn.at(-1)![0]).toBe(960 - 24);
  });

  test.each([
    ["nothing", []],
    ["one step", points(1, () => 3)],
    ["NaN and infinity", [...points(2, () => 3), { step: 3, loss: Number.NaN }, { step: 4, loss: Infinity }]],
  ])("the picture of %s has no coordinate that is not a number", (_, training) => {
    const drawn = drawCurve({ training, heldOut: [] });
    expect(drawn).not.toContain("NaN");
    expect(drawn).not.toContain("Infinity");
  });
});

describe("a curve is drawn as a PNG picture", () => {
  test("the picture is 1920 × 1080 pixels", async () => {
    const png = await toPng(drawCurve({ training: points(10, () => 1), heldOut: [] }));
    expect(Buffer.from(png.subarray(1, 4)).toString()).toBe("PNG");
    const header = new DataView(png.buffer, png.byteOffset);
    expect([header.getUint32(16), header.getUint32(20)]).toEqual([1920, 1080]);
  });

  test("the text is drawn on a machine without fonts", async () => {
    const text = (content: string) =>
      toPng(`<svg xmlns="http://www.w3.org/2000/svg" width="960" height="540" font-family="Inter">${content}</svg>`);
    expect(Bun.hash(await text('<text y="50">loss</text>'))).not.toBe(Bun.hash(await text("")));
  });
});

describe("a run's folder has pictures of its losses", () => {
  const { path: folder } = testFolder("curve");
  const file = (kind: keyof typeof CURVE_FILES) => Bun.file(join(folder, CURVE_FILES[kind]));

  test("the SVG exists after an evaluation, the PNG at the end, including earlier sessions", async () => {
    const files = new CurveFiles(folder, { training: points(3, () => 2), heldOut: [] });
    files.on(stepEvent(4));
    expect(await file("svg").exists()).toBe(false);
    files.on({ kind: "evaluation", step: 4, loss: 6, bitsPerByte: 2 });
    expect(pathIn(await file("svg").text(), "training")).toHaveLength(4);
    expect(await file("png").exists()).toBe(false);
    await files.close();
    expect(file("png").size).toBeGreaterThan(1000);
  });
});
