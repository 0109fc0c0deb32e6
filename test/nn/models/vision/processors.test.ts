/** Compares image processors with `transformers`: pixels for drawn settings and sizes, with Pillow's rounding. */
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { packageRoot } from "../../../../src/core/paths.ts";
import { io, nn, type Tensor, tensor } from "../../../../src/index.ts";
import { testFolder } from "../../../support/folder.ts";

interface Case {
  readonly file: string;
  readonly contents: { readonly image_processor?: object; readonly image_std?: readonly number[] };
  readonly image: readonly [number, number, number];
}

const fixture = join(packageRoot, "test", "fixtures", "vision", "processors");
const { cases }: { cases: Case[] } = JSON.parse(readFileSync(`${fixture}.json`, "utf8"));
const answers = io.loadSafetensors(`${fixture}.safetensors`);
const folder = testFolder("processors");

function write(name: string, { file, contents }: Pick<Case, "file" | "contents">): string {
  const path = folder.file(name);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, file), JSON.stringify(contents));
  return path;
}

/** The highest bytes of the hashes of `weight`. */
function imageOf(shape: readonly number[]): Tensor {
  const offset = crc32("image");
  const bytes = Uint8Array.from({ length: shape.reduce((product, size) => product * size, 1) }, (_, index) => {
    let h = Math.imul(index + offset, 0x9e3779b1);
    h = Math.imul(h ^ (h >>> 15), 0x85ebca77);
    return (h ^ (h >>> 13)) >>> 24;
  });
  return tensor(bytes, { shape: [...shape] });
}

/** The tolerance: a tenth of the change that one step of a byte causes, plus the precision of the stored result. */
const toleranceOf = ({ rescale = 1, std = [1] }: nn.ImageProcessing, largest: number): number =>
  (0.1 * rescale) / Math.min(...std) + largest / 1024;

test.each(cases.map((own, at) => [at, own] as const))(
  "case %d has the pixels of transformers' processor",
  (at, own) => {
    const processor = nn.loadImageProcessor(write(`${at}`, own));
    const image = imageOf(own.image);
    const want = answers[`${at}`];
    const got = processor.process(image);
    expect(got.shape).toEqual([1, ...want.shape]);
    expect(processor.sizeOf([own.image[1], own.image[2]])).toEqual(want.shape.slice(1) as [number, number]);
    const [a, b] = [got, want].map((x) => Array.from(x.dataSync() as ArrayLike<number>)) as [number[], number[]];
    const largest = Math.max(...b.map(Math.abs));
    const differences = b.map((value, index) => Math.abs(value - a[index]));
    expect(Math.max(...differences)).toBeLessThan(toleranceOf(processor.description, largest));
  },
);
