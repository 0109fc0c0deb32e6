/** Resizes byte images like Pillow and PyTorch: columns first, rounded to bytes, then rows. */
import { expect, test } from "bun:test";
import { interpolate, tensor } from "../../../src/index.ts";
import { repeats } from "../../support/repeats.ts";
import { seed } from "../../support/some.ts";
import { Random } from "../samples.ts";

test.each(["bilinear", "bicubic"] as const)("%s equals Pillow for drawn sizes", (mode) => {
  const random = new Random(seed);
  let others = 0;
  for (let round = 0; round < repeats({ usual: 20, all: 400 }); round++) {
    const [rows, columns, newRows, newColumns] = Array.from({ length: 4 }, () => random.integer(2, 12));
    const antialias = round % 2 === 0;
    const values = Array.from({ length: rows * columns }, () => random.integer(0, 255));
    const x = tensor(values, { dtype: "uint8" }).reshape([1, 1, rows, columns]);
    const resized = (picture: typeof x, size: [number, number]) => interpolate(picture, { size, mode, antialias });
    const whole = resized(x, [newRows, newColumns]).toArray();
    const byColumns = resized(resized(x, [rows, newColumns]), [newRows, newColumns]).toArray();
    const byRows = resized(resized(x, [newRows, columns]), [newRows, newColumns]).toArray();
    expect(whole).toEqual(byColumns);
    if (JSON.stringify(byRows) !== JSON.stringify(whole)) others++;
  }
  expect(others).toBeGreaterThan(0); // the order of the axes matters
});
