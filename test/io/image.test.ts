/** Images: reading files with known pixels, writing, and files that are damaged or too large. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import {
  ArgumentError,
  DTypeError,
  FileError,
  FileFormatError,
  io,
  ShapeError,
  type Tensor,
  tensor,
} from "../../src/index.ts";
import { testFolder } from "../support/folder.ts";
import { chunk, hollowPng, png } from "../support/png.ts";

const { path: folder } = testFolder("pictures");

/** Numbers of a simple sequence, from 0 to 255. */
const bytes = (count: number, seed = 1): Uint8Array =>
  Uint8Array.from({ length: count }, (_, at) => ((at + seed) * 2654435761) >>> 24);
const flat = (x: Tensor): number[] => Array.from(x.dataSync() as Uint8Array);
const failure = async (run: Promise<unknown>): Promise<unknown> =>
  run.then(() => "nothing failed").catch((cause) => cause);

/** [C, H, W] from pixels with channels last. */
const channelsFirst = (pixels: readonly number[], channels: number): number[] =>
  Array.from({ length: channels }, (_, own) => pixels.filter((_value, at) => at % channels === own)).flat();

describe("loadImage", () => {
  const [width, height] = [5, 3];
  const rgb = bytes(width * height * 3);
  const rgba = bytes(width * height * 4);

  test("pixels of a PNG are read with channels first and last", async () => {
    const file = png(rgb, { width, height, channels: 3 });
    const [first, last] = [await io.loadImage(file), await io.loadImage(file, { channels: "last" })];
    expect([first.dtype, first.shape, last.shape]).toEqual(["uint8", [3, 3, 5], [3, 5, 3]]);
    expect([flat(last), flat(first)]).toEqual([[...rgb], channelsFirst([...rgb], 3)]);
  });

  test("alpha exists if the mode has it, and is opaque if the file has none", async () => {
    const [opaque, clear] = [png(rgb, { width, height, channels: 3 }), png(rgba, { width, height, channels: 4 })];
    const read = async (file: Uint8Array, mode: io.ImageMode) =>
      flat(await io.loadImage(file, { mode, channels: "last" }));
    expect(await read(clear, "rgba")).toEqual([...rgba]);
    expect(await read(clear, "rgb")).toEqual([...rgba].filter((_, at) => at % 4 !== 3));
    expect((await read(opaque, "rgba")).filter((_, at) => at % 4 === 3)).toEqual(Array(15).fill(255));
    expect((await read(clear, "grayAlpha")).filter((_, at) => at % 2 === 1)).toEqual(
      [...rgba].filter((_, at) => at % 4 === 3),
    );
  });

  test("gray is 0.299 R + 0.587 G + 0.114 B to the nearest", async () => {
    const many = bytes(3 * 1024);
    const x = await io.loadImage(png(many, { width: 32, height: 32, channels: 3 }), { mode: "gray" });
    const exact = (at: number) => 0.299 * many[3 * at] + 0.587 * many[3 * at + 1] + 0.114 * many[3 * at + 2];
    expect(x.shape).toEqual([1, 32, 32]);
    // The factors are rounded to 2⁻¹⁶, which moves a result by less than 255 · 2⁻¹⁶.
    for (const [at, value] of flat(x).entries()) expect(Math.abs(value - exact(at))).toBeLessThan(0.5 + 255 / 2 ** 16);
  });

  test.each([
    ["gray", 1],
    ["grayAlpha", 2],
    ["rgb", 3],
    ["rgba", 4],
  ] as const)('a file that is %s keeps its channels with "unchanged"', async (mode, channels) => {
    const pixels = bytes(6 * channels);
    const file = png(pixels, { width: 3, height: 2, channels });
    const x = await io.loadImage(file, { mode: "unchanged", channels: "last" });
    expect([x.shape, flat(x)]).toEqual([[2, 3, channels], [...pixels]]);
    expect(flat(await io.loadImage(file, { mode, channels: "last" }))).toEqual([...pixels]);
  });

  test("every gray is the same gray in all channels", async () => {
    const pixels = Uint8Array.from({ length: 256 }, (_, at) => at);
    const x = await io.loadImage(png(pixels, { width: 16, height: 16, channels: 1 }));
    expect(flat(x)).toEqual([...pixels, ...pixels, ...pixels]);
  });

  test("16 bits are truncated to 8", async () => {
    const pixels = bytes(2 * 3 * 4);
    const x = await io.loadImage(png(pixels, { width: 2, height: 2, channels: 3, bits: 16 }), { channels: "last" });
    expect(flat(x)).toEqual([...pixels].filter((_, at) => at % 2 === 0));
  });

  test("16 bits of gray are gray", async () => {
    const file = png(Uint8Array.of(7, 9, 200, 1), { width: 2, height: 1, channels: 1, bits: 16 });
    const x = await io.loadImage(file, { mode: "unchanged" });
    expect([x.shape, flat(x)]).toEqual([
      [1, 1, 2],
      [7, 200],
    ]);
  });

  // The rotations and reflections of [[1, 2, 3], [4, 5, 6]] that a camera may record.
  test.each([
    [1, [2, 3], [1, 2, 3, 4, 5, 6]],
    [2, [2, 3], [3, 2, 1, 6, 5, 4]],
    [3, [2, 3], [6, 5, 4, 3, 2, 1]],
    [4, [2, 3], [4, 5, 6, 1, 2, 3]],
    [5, [3, 2], [1, 4, 2, 5, 3, 6]],
    [6, [3, 2], [4, 1, 5, 2, 6, 3]],
    [7, [3, 2], [6, 3, 5, 2, 4, 1]],
    [8, [3, 2], [3, 6, 2, 5, 1, 4]],
  ] as const)("EXIF orientation %i rotates the image", async (orientation, shape, turned) => {
    const file = png(Uint8Array.of(1, 2, 3, 4, 5, 6), { width: 3, height: 2, channels: 1, orientation });
    const [x, plain] = [
      await io.loadImage(file, { mode: "gray" }),
      await io.loadImage(file, { mode: "gray", orient: false }),
    ];
    expect([x.shape, flat(x)]).toEqual([[1, ...shape], [...turned]]);
    expect([plain.shape, flat(plain)]).toEqual([
      [1, 2, 3],
      [1, 2, 3, 4, 5, 6],
    ]);
  });

  test("a path is read, and bytes may change after the call", async () => {
    const file = png(rgb, { width, height, channels: 3 });
    writeFileSync(join(folder, "a.png"), file);
    const pending = io.loadImage(file);
    file.fill(0);
    expect(flat(await pending)).toEqual(flat(await io.loadImage(join(folder, "a.png"))));
  });
});

describe("saveImage and encodeImage", () => {
  const x = tensor(bytes(3 * 4 * 6), { dtype: "uint8", shape: [3, 4, 6] });

  test.each([
    ["png", {}],
    ["webp", { lossless: true }],
  ] as const)("%s keeps every pixel, in any order of axes", async (format, options) => {
    const path = join(folder, `b.${format}`);
    await io.saveImage(path, x, options);
    expect(flat(await io.loadImage(path))).toEqual(flat(x));
    await io.saveImage(path, x.permute([1, 2, 0]), { ...options, channels: "last" });
    expect(flat(await io.loadImage(path))).toEqual(flat(x));
    expect(flat(await io.loadImage(await io.encodeImage(x, { format, ...options })))).toEqual(flat(x));
    expect(readdirSync(folder).filter((name) => name.startsWith("b."))).toContain(`b.${format}`);
  });

  test.each([1, 2, 4])("a PNG of %i channels round-trips", async (channels) => {
    const own = tensor(bytes(channels * 6), { dtype: "uint8", shape: [channels, 2, 3] });
    const file = await io.encodeImage(own, { format: "png" });
    expect(file[25]).toBe([0, 0, 4, 2, 6][channels]); // the color type of the header
    expect(flat(await io.loadImage(file, { mode: "unchanged" }))).toEqual(flat(own));
  });

  test("a matrix is saved as gray", async () => {
    const own = tensor([[0, 100, 255]], { dtype: "uint8" });
    const read = await io.loadImage(await io.encodeImage(own, { format: "png" }), { mode: "unchanged" });
    expect([read.shape, flat(read)]).toEqual([
      [1, 1, 3],
      [0, 100, 255],
    ]);
  });

  test("JPEG is close, and closer for a higher quality", async () => {
    const ramp = Uint8Array.from({ length: 3 * 32 * 32 }, (_, at) => (at % 32) * 8);
    const own = tensor(ramp, { dtype: "uint8", shape: [3, 32, 32] });
    const off = async (quality: number) => {
      const read = await io.loadImage(await io.encodeImage(own, { format: "jpeg", quality }));
      return Math.max(...flat(read).map((value, at) => Math.abs(value - ramp[at])));
    };
    const [low, high] = [await off(10), await off(95)];
    expect(high).toBeLessThan(8);
    expect(low).toBeGreaterThan(high);
  });

  test.each([
    ["floats", () => io.encodeImage(x.to("float32"), { format: "png" }), DTypeError],
    [
      "five channels",
      () => io.encodeImage(tensor(bytes(5), { dtype: "uint8", shape: [5, 1, 1] }), { format: "png" }),
      ShapeError,
    ],
    ["a vector", () => io.encodeImage(tensor(bytes(5), { dtype: "uint8" }), { format: "png" }), ShapeError],
    [
      "no pixels",
      () => io.encodeImage(tensor([], { dtype: "uint8" }).reshape([3, 0, 4]), { format: "png" }),
      ShapeError,
    ],
    ["another ending", () => io.saveImage(join(folder, "a.bmp"), x), ArgumentError],
    ["a quality of 0", () => io.saveImage(join(folder, "a.jpg"), x, { quality: 0 }), ArgumentError],
    [
      "a side too long for WebP",
      () => io.encodeImage(tensor(bytes(16384), { dtype: "uint8", shape: [1, 16384] }), { format: "webp" }),
      ArgumentError,
    ],
    ["a folder that is not there", () => io.saveImage(join(folder, "none", "a.png"), x), FileError],
  ] as const)("saveImage rejects %s", async (_, call, Class) => {
    expect(await failure(call())).toBeInstanceOf(Class);
  });
});

describe("files that are not images", () => {
  const codeOf = async (source: string | Uint8Array, options?: io.LoadImageOptions) => {
    const cause = await failure(io.loadImage(source, options));
    expect(cause === "nothing failed" || cause instanceof FileFormatError || cause instanceof FileError).toBe(true);
    return cause instanceof Error && "code" in cause ? cause.code : "none";
  };
  const gray = tensor(bytes(8 * 8), { dtype: "uint8", shape: [8, 8] });
  const formats = ["png", "jpeg", "webp"] as const;

  test.each(formats)("a %s file that is truncated anywhere is rejected", async (format) => {
    const file = await io.encodeImage(gray, { format, lossless: true });
    for (let end = 0; end < file.length; end += 1 + (end >> 5)) {
      const code = await codeOf(file.subarray(0, end));
      // A PNG without its last chunk, which is empty, has every pixel.
      const isWhole = format === "png" && end >= file.length - 12;
      if (isWhole) expect([end, ["damaged", "none"].includes(code as string)]).toEqual([end, true]);
      else expect([end, ["damaged", "unknownFormat"].includes(code as string)]).toEqual([end, true]);
    }
  });

  test.each(formats)("a %s file with one altered byte is an image or an error", async (format) => {
    const file = await io.encodeImage(gray, { format });
    for (let at = 0; at < file.length; at += 1 + (file.length >> 7)) {
      const altered = Uint8Array.from(file);
      altered[at] ^= 1 << (at % 8);
      expect(["none", "damaged", "unknownFormat", "tooManyPixels"]).toContain((await codeOf(altered)) as string);
    }
  });

  test("a few bytes that claim billions of pixels are rejected", async () => {
    expect(await codeOf(hollowPng(60_000, 60_000))).toBe("tooManyPixels");
    const small = png(bytes(12), { width: 2, height: 2, channels: 3 });
    expect([await codeOf(small, { maxPixels: 3 }), await codeOf(small, { maxPixels: 4 })]).toEqual([
      "tooManyPixels",
      "none",
    ]);
  });

  test("an image with less data than it claims, and text chunks that expand to gigabytes, are rejected", async () => {
    expect(await codeOf(hollowPng(100, 100))).toBe("damaged");
    const start = png(bytes(3), { width: 1, height: 1, channels: 3 });
    const broken = Buffer.concat([start.subarray(0, 33), chunk("iCCP", bytes(200)), start.subarray(33)]);
    expect(["none", "damaged"]).toContain((await codeOf(broken)) as string);
  });

  test.each([
    ["a drawing that loads files", '<svg xmlns="http://www.w3.org/2000/svg"><image href="/etc/passwd"/></svg>'],
    ["text", "hello"],
    ["a PDF", "%PDF-1.7"],
    ["a BMP", "BM      "],
    ["nothing", ""],
  ])("rejects %s before it is decoded", async (_, text) => {
    expect(await codeOf(new TextEncoder().encode(text))).toBe("unknownFormat");
  });

  test("missing files, and paths that are not files, are errors", async () => {
    mkdirSync(join(folder, "folder.png"), { recursive: true });
    expect(await codeOf(join(folder, "none.png"))).toBe("notFound");
    expect(["isFolder", "notAFile"]).toContain((await codeOf(join(folder, "folder.png"))) as string);
    if (process.platform === "linux") expect(await codeOf("/dev/zero")).toBe("notAFile");
  });
});

test("without the package, the error names it and the command", () => {
  const program = `
    const fail = () => { throw new Error("no such package"); };
    Bun.plugin({ name: "none", setup: (build) => void build.module("sharp", fail) });
    const { io, PackageError } = await import("./src/index.ts");
    const cause = await io.loadImage("a.png").catch((error) => error);
    console.log(cause instanceof PackageError, cause.code, cause.package, cause.message);
  `;
  const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", program], { cwd: packageRoot });
  expect([stdout.toString(), stderr.toString()]).toEqual([
    "true packageMissing sharp [loadImage] expected the package sharp, which decodes and encodes images, to be " +
      "installed: bun add sharp@0.35.5\n",
    "",
  ]);
});
