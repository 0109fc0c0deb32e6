/** Transforms of images compared with formulas in float64, pixel by pixel, and their random numbers. */
import { describe, expect, test } from "bun:test";
import { data, manualSeed, type Tensor, tensor } from "../../src/index.ts";
import { errorOf } from "../support/errors.ts";

const t = data.transforms;

/** A channel's rows. */
type Plane = readonly (readonly number[])[];
/** An image as lists: channels, rows, pixels. */
type Image = readonly Plane[];

/** Bytes that look like noise. */
const noise = (channels: number, height: number, width: number, seed = 1): Image =>
  Array.from({ length: channels }, (_, c) =>
    Array.from({ length: height }, (_, y) =>
      Array.from({ length: width }, (_, x) => ((seed + c * 977 + y * 131 + x * 17) * 2654435761) >>> 24),
    ),
  );
const bytesOf = (image: Image) => tensor(image as number[][][], { dtype: "uint8" });
const floatsOf = (image: Image) => tensor(image as number[][][], { dtype: "float64" }).div(255);
const listOf = (x: Tensor) => x.to("float64").toArray() as unknown as number[][][];
const flat = (x: Tensor | Image): number[] => (Array.isArray(x) ? x : listOf(x as Tensor)).flat(2) as number[];

function expectNear(got: Tensor, expected: Image, off: number): void {
  expect(got.shape.slice(-2)).toEqual([expected[0].length, expected[0][0].length]);
  const [own, exact] = [flat(got), flat(expected)];
  expect(own).toHaveLength(exact.length);
  for (const [at, value] of exact.entries())
    if (!(Math.abs(own[at] - value) <= off)) expect(`pixel ${at}: ${own[at]}`).toBe(`pixel ${at}: ${value}`);
}

/** Tolerances. Bytes: half a step for rounding, plus float32's error at 255. */
const [BYTE, DOUBLE] = [0.5 + 1e-3, 1e-12];

/** A formula for colors from 0 to `white`, the same in both dtypes. */
function expectColors(
  change: data.transforms.Transform,
  image: Image,
  formula: (rgb: number[], white: number) => number[],
) {
  for (const [x, white, off] of [
    [bytesOf(image), 255, BYTE],
    [floatsOf(image), 1, DOUBLE],
  ] as const) {
    const own = listOf(x);
    const result = own.map((plane) => plane.map((row) => [...row]));
    for (const [y, row] of own[0].entries())
      for (const at of row.keys()) {
        const changed = formula(
          own.map((plane) => plane[y][at]),
          white,
        );
        for (const [c, value] of changed.entries()) result[c][y][at] = Math.min(Math.max(value, 0), white);
      }
    const got = change(x);
    expect(got.dtype).toBe(x.dtype);
    expectNear(got, result, off);
  }
}

describe("transforms change the values of pixels", () => {
  test("toFloat and normalize compute their formulas", () => {
    const image = noise(3, 4, 5);
    const [mean, std] = [
      [0.485, 0.456, 0.406],
      [0.229, 0.224, 0.225],
    ];
    const got = t.compose([t.toFloat(), t.normalize(mean, std)])(bytesOf(image));
    const exact = image.map((plane, c) => plane.map((row) => row.map((v) => (v / 255 - mean[c]) / std[c])));
    expect(got.dtype).toBe("float32");
    expectNear(got, exact, 1e-6);
    expectNear(
      t.normalize([0.5], [2])(floatsOf(image)),
      image.map((p) => p.map((r) => r.map((v) => (v / 255 - 0.5) / 2))),
      DOUBLE,
    );
    expect(t.toFloat("float16")(bytesOf(image)).dtype).toBe("float16");
    expect(t.toFloat()(floatsOf(image)).dtype).toBe("float32");
  });
});

describe("transforms change colors as torchvision does", () => {
  const image = noise(3, 9, 7);
  const gray = ([r, g, b]: number[]) => 0.2989 * r + 0.587 * g + 0.114 * b;

  test.each([0, 0.4, 1, 1.7])("adjustBrightness equals torchvision's, factor %p", (factor) => {
    expectColors(t.adjustBrightness(factor), image, (rgb) => rgb.map((v) => factor * v));
  });

  test.each([0, 0.4, 1.7])("adjustSaturation equals torchvision's, factor %p", (factor) => {
    expectColors(t.adjustSaturation(factor), image, (rgb) => rgb.map((v) => factor * v + (1 - factor) * gray(rgb)));
  });

  test.each([0, 0.4, 1.7])("adjustContrast equals torchvision's, factor %p", (factor) => {
    const pixels = image[0].flatMap((row, y) => row.map((_, x) => image.map((plane) => plane[y][x])));
    const mean = pixels.reduce((sum, rgb) => sum + gray(rgb), 0) / pixels.length / 255;
    expectColors(t.adjustContrast(factor), image, (rgb, white) =>
      rgb.map((v) => factor * v + (1 - factor) * mean * white),
    );
  });

  /** torchvision's `_rgb2hsv` and `_hsv2rgb`, for one color. */
  function turned([r, g, b]: number[], shift: number): number[] {
    const [max, min] = [Math.max(r, g, b), Math.min(r, g, b)];
    const s = max === 0 ? 0 : (max - min) / max;
    const span = max === min ? 1 : max - min;
    const [rc, gc, bc] = [(max - r) / span, (max - g) / span, (max - b) / span];
    const sixth = max === r ? bc - gc : max === g ? 2 + rc - bc : 4 + gc - rc;
    const h = (((sixth / 6 + 1 + shift) % 1) + 1) % 1;
    const i = Math.floor(h * 6);
    const f = h * 6 - i;
    const [p, q, u] = [max * (1 - s), max * (1 - s * f), max * (1 - s * (1 - f))];
    // biome-ignore format: a table
    return [[max, u, p], [q, max, p], [p, max, u], [p, q, max], [u, p, max], [max, p, q]][i % 6];
  }

  test.each([-0.5, -0.13, 0, 0.25, 0.5])("adjustHue equals torchvision's, shift %p", (shift) => {
    const special: Image = [[[0, 255, 10, 10, 255, 7, 0]], [[0, 255, 10, 200, 0, 7, 9]], [[0, 255, 90, 10, 255, 3, 0]]];
    for (const own of [image, special]) expectColors(t.adjustHue(shift), own, (rgb) => turned(rgb, shift));
  });

  test("gray images keep their color, and colors are converted to gray", () => {
    const own = noise(1, 3, 4);
    for (const change of [t.adjustHue(0.3), t.adjustSaturation(0)])
      expect(flat(change(bytesOf(own)))).toEqual(flat(own));
    expectNear(
      t.adjustContrast(0)(bytesOf(own)),
      own.map((p) => p.map((r) => r.map(() => flat(own).reduce((a, b) => a + b) / 12))),
      BYTE,
    );
    const sums = image[0].map((row, y) => row.map((_, x) => gray(image.map((plane) => plane[y][x]))));
    expectNear(t.grayscale()(bytesOf(image)), [sums], BYTE);
    expectNear(t.grayscale(3)(bytesOf(image)), [sums, sums, sums], BYTE);
  });

  test("jitter applies its changes one after the other, in an order drawn from the seed", () => {
    const context = (seed: number) => ({ epoch: 0, seed: BigInt(seed) });
    const x = floatsOf(image);
    const one = t.colorJitter({ brightness: [0.5, 0.5] })(x, context(1));
    expectNear(one, listOf(t.adjustBrightness(0.5)(x)), DOUBLE);
    const both = t.colorJitter({ brightness: [1.8, 1.8], saturation: [0.2, 0.2] });
    const [first, second] = [t.adjustBrightness(1.8), t.adjustSaturation(0.2)];
    const orders = [second(first(x)), first(second(x))].map((own) => JSON.stringify(flat(own)));
    const seen = Array.from({ length: 20 }, (_, seed) => orders.indexOf(JSON.stringify(flat(both(x, context(seed))))));
    expect(new Set(seen)).toEqual(new Set([0, 1]));
    const wide = Array.from({ length: 60 }, (_, seed) =>
      Math.max(...flat(t.colorJitter({ brightness: 0.3 })(tensor([[[0.5]]]), context(seed)))),
    );
    expect([Math.min(...wide) >= 0.35, Math.min(...wide) < 0.38]).toEqual([true, true]);
    expect([Math.max(...wide) <= 0.65, Math.max(...wide) > 0.62]).toEqual([true, true]);
  });
});

describe("transforms change sizes of images", () => {
  const image = noise(2, 6, 9);
  const at = (own: Image, y: number, x: number, padded = 0) => own.map((plane) => plane[y]?.[x] ?? padded);

  test("centerCrop cuts the middle, and pads images that are too small", () => {
    const middle = image.map((plane) => plane.slice(1, 5).map((row) => row.slice(2, 7)));
    expect(flat(t.centerCrop([4, 5])(bytesOf(image)))).toEqual(flat(middle));
    // Half of an odd remainder is rounded to even: (6 − 3) / 2 = 1.5 becomes 2, (9 − 4) / 2 = 2.5 becomes 2.
    expect(flat(t.centerCrop([3, 4])(bytesOf(image)))).toEqual(
      flat(image.map((plane) => plane.slice(2, 5).map((row) => row.slice(2, 6)))),
    );
    const wide = t.centerCrop([9, 4])(bytesOf(image));
    expect(wide.shape).toEqual([2, 9, 4]);
    for (let y = 0; y < 9; y++) expect(listOf(wide).map((plane) => plane[y][1])).toEqual(at(image, y - 1, 3));
  });

  test("resize has its sizes, and at half the size each pixel is the mean of four", () => {
    const shape = (size: number | readonly [number, number], options?: data.transforms.ResizeOptions) =>
      t.resize(size, options)(bytesOf(image)).shape;
    expect([shape(4), shape(12), shape([3, 2])]).toEqual([
      [2, 4, 6],
      [2, 12, 18],
      [2, 3, 2],
    ]);
    expect(shape(4, { maxSize: 5 })).toEqual([2, 3, 5]);
    expect(t.resize(4)(bytesOf(image).permute([0, 2, 1])).shape).toEqual([2, 6, 4]);
    const half = noise(3, 4, 6);
    const mean = half.map((plane) =>
      [0, 1].map((y) =>
        [0, 1, 2].map(
          (x) => [0, 1, 2, 3].reduce((sum, own) => sum + plane[2 * y + (own >> 1)][2 * x + (own % 2)], 0) / 4,
        ),
      ),
    );
    expectNear(t.resize([2, 3], { antialias: false })(bytesOf(half)), mean, BYTE);
    expect(flat(t.resize([4, 6])(bytesOf(half)))).toEqual(flat(half));
  });

  test("resize with a filter uses a triangle as wide as two pixels of the result", () => {
    const half = noise(1, 6, 6);
    const weights = (own: number) => {
      const middle = 2 * own + 1;
      const raw = Array.from({ length: 6 }, (_, j) => Math.max(0, 1 - Math.abs((j + 0.5 - middle) / 2)));
      const sum = raw.reduce((a, b) => a + b);
      return raw.map((w) => w / sum);
    };
    const exact = [0, 1, 2].map((y) =>
      [0, 1, 2].map((x) =>
        weights(y).reduce((sum, wy, j) => sum + weights(x).reduce((own, wx, i) => own + wy * wx * half[0][j][i], 0), 0),
      ),
    );
    expectNear(t.resize([3, 3])(bytesOf(half)), [exact], BYTE);
  });

  test("pad adds a value around the image, or repeats it", () => {
    const x = tensor([[[1, 2, 3]]], { dtype: "uint8" });
    expect(listOf(t.pad([1, 2, 0, 1], { value: 9 })(x))).toEqual([
      [
        [9, 1, 2, 3, 9, 9],
        [9, 9, 9, 9, 9, 9],
      ],
    ]);
    expect(listOf(t.pad([2, 1, 0, 0], { mode: "reflect" })(x))).toEqual([[[3, 2, 1, 2, 3, 2]]]);
    expect(t.pad(1)(x).shape).toEqual([1, 3, 5]);
  });

  test("randomCrop returns a part, from every position", () => {
    const own: Image = [Array.from({ length: 4 }, (_, y) => Array.from({ length: 3 }, (_, x) => 10 * y + x))];
    const places = Array.from({ length: 80 }, (_, seed) => {
      const part = listOf(t.randomCrop([3, 2])(bytesOf(own), { epoch: 0, seed: BigInt(seed) }))[0];
      const [top] = part[0];
      expect(part).toEqual([0, 10, 20].map((dy) => [top + dy, top + dy + 1]));
      return top;
    });
    expect([...new Set(places)].toSorted((a, b) => a - b)).toEqual([0, 1, 10, 11]);
    const padded = t.randomCrop(6, { padding: [2, 1, 2, 0], value: 5 })(bytesOf(own), { epoch: 0, seed: 1n });
    expect(
      listOf(padded)[0]
        .slice(2)
        .map((row) => row.slice(2, 5)),
    ).toEqual(own[0] as number[][]);
    expect(listOf(padded)[0][0]).toEqual(Array(6).fill(5));
  });

  test("areas and ratios of randomResizedCrop are within their ranges", () => {
    // Each pixel contains its row and column, so a crop shows from where it was taken.
    const [height, width] = [40, 60];
    const own = tensor(
      [0, 1].map((c) => Array.from({ length: height }, (_, y) => Array.from({ length: width }, (_, x) => (c ? x : y)))),
      { dtype: "float64" },
    );
    const [areas, ratios]: [number[], number[]] = [[], []];
    for (let seed = 0; seed < 40; seed++) {
      const change = t.randomResizedCrop(120, { scale: [0.2, 0.5], ratio: [0.5, 2], mode: "nearest" });
      const [rows, columns] = listOf(change(own, { epoch: 0, seed: BigInt(seed) }));
      const [h, w] = [rows.at(-1)![0] - rows[0][0] + 1, columns[0].at(-1)! - columns[0][0] + 1];
      areas.push((h * w) / (height * width));
      ratios.push(w / h);
    }
    expect([Math.min(...areas) > 0.17, Math.min(...areas) < 0.25, Math.max(...areas) < 0.53]).toEqual([
      true,
      true,
      true,
    ]);
    expect([Math.max(...areas) > 0.45, Math.min(...ratios) > 0.47, Math.max(...ratios) < 2.1]).toEqual([
      true,
      true,
      true,
    ]);
    expect([Math.min(...ratios) < 0.7, Math.max(...ratios) > 1.4]).toEqual([true, true]);
    // No crop with 80 % of the area is three times as wide as high. The largest crop of that ratio, in the middle,
    // replaces it.
    const never = t.randomResizedCrop([20, 60], { scale: [0.8, 0.9], ratio: [3, 4], mode: "nearest" });
    expect(listOf(never(own, { epoch: 0, seed: 1n }))[0].map(([y]) => y)).toEqual(
      Array.from({ length: 20 }, (_, y) => y + 10),
    );
  });

  test("randomResizedCrop of a ratio that does not fit takes the largest part in the middle", () => {
    const row = tensor([Array.from({ length: 40 }, () => Array.from({ length: 60 }, (_, x) => x))], {
      dtype: "float64",
    });
    const never = t.randomResizedCrop([40, 12], { scale: [0.8, 0.9], ratio: [0.2, 0.3], mode: "nearest" });
    expect(listOf(never(row, { epoch: 0, seed: 1n }))[0][39]).toEqual(Array.from({ length: 12 }, (_, x) => x + 24));
  });

  test("flips occur with their probability", () => {
    const x = tensor([[[1, 2], [3, 4]]], { dtype: "uint8" }); // biome-ignore format: a picture
    expect(listOf(t.randomHorizontalFlip(1)(x))).toEqual([[[2, 1], [4, 3]]]); // biome-ignore format: a picture
    expect(listOf(t.randomVerticalFlip(1)(x))).toEqual([[[3, 4], [1, 2]]]); // biome-ignore format: a picture
    for (const flip of [t.randomHorizontalFlip, t.randomVerticalFlip]) {
      const count = (p: number) =>
        Array.from({ length: 200 }, (_, seed) => flip(p)(x, { epoch: 0, seed: BigInt(seed) })).filter(
          (own) => flat(own)[0] !== 1,
        ).length;
      expect([count(0), count(1)]).toEqual([0, 200]);
      expect(Math.abs(count(0.3) - 60)).toBeLessThan(20); // three standard deviations are 19.4
    }
  });
});

describe("affine transforms move pixels correctly", () => {
  const image = noise(2, 7, 9);

  /** Returns a pixel, or interpolates between four; beyond the border is the fill. */
  function sample(plane: Plane, y: number, x: number, mode: "nearest" | "bilinear", fill: number): number {
    const at = (row: number, column: number) => plane[row]?.[column] ?? fill;
    if (mode === "nearest") return at(Math.round(y), Math.round(x));
    const [top, left] = [Math.floor(y), Math.floor(x)];
    const [dy, dx] = [y - top, x - left];
    return (
      (1 - dy) * ((1 - dx) * at(top, left) + dx * at(top, left + 1)) +
      dy * ((1 - dx) * at(top + 1, left) + dx * at(top + 1, left + 1))
    );
  }

  /** The forward map about the middle, inverted by Cramer's rule: T · R(angle) · Shear · Scale. */
  function mapped(
    own: Image,
    { angle = 0, translate = [0, 0], scale = 1, shear = [0, 0] }: data.transforms.AffineOptions,
    mode: "nearest" | "bilinear",
    fill: number,
  ): Image {
    const [rotation, sx, sy] = [angle, shear[0], shear[1]].map((degrees) => (degrees * Math.PI) / 180) as [
      number,
      number,
      number,
    ];
    // R · Shear of torchvision's documentation: [[cos(a − sy)/cos(sy), −cos(a − sy)·tan(sx)/cos(sy) − sin(a)], …]
    const a = (scale * Math.cos(rotation - sy)) / Math.cos(sy);
    const b = scale * ((-Math.cos(rotation - sy) * Math.tan(sx)) / Math.cos(sy) - Math.sin(rotation));
    const c = (scale * Math.sin(rotation - sy)) / Math.cos(sy);
    const d = scale * ((-Math.sin(rotation - sy) * Math.tan(sx)) / Math.cos(sy) + Math.cos(rotation));
    const determinant = a * d - b * c;
    const [height, width] = [own[0].length, own[0][0].length];
    return own.map((plane) =>
      plane.map((row, y) =>
        row.map((_, x) => {
          const [u, v] = [x - (width - 1) / 2 - translate[0], y - (height - 1) / 2 - translate[1]];
          const [fromX, fromY] = [(d * u - b * v) / determinant, (-c * u + a * v) / determinant];
          return sample(plane, fromY + (height - 1) / 2, fromX + (width - 1) / 2, mode, fill);
        }),
      ),
    );
  }

  test.each([
    { angle: 30 },
    { angle: -75.5, translate: [2, -1] },
    { scale: 1.7, translate: [0.5, 0.25] },
    { shear: [12, 0], angle: 5 },
    { shear: [10, 20], scale: 0.6 },
  ] as const)("affine %p is correct with bilinear samples", (motion) => {
    for (const fill of [0, 0.75]) {
      const got = t.affine({ ...motion, mode: "bilinear", fill })(floatsOf(image));
      expectNear(got, mapped(listOf(floatsOf(image)), motion, "bilinear", fill), 1e-10);
    }
    const bytes = t.affine({ ...motion, mode: "bilinear", fill: 200 })(bytesOf(image));
    expectNear(bytes, mapped(image, motion, "bilinear", 200), BYTE);
  });

  test("affine maps can take the nearest pixel", () => {
    const motion = { angle: 33, scale: 1.1 } as const;
    expectNear(t.affine({ ...motion, fill: 7 })(bytesOf(image)), mapped(image, motion, "nearest", 7), 0);
  });

  test("rotate is counterclockwise, and the same for each image of a batch", () => {
    const x = tensor([[[1, 2, 3], [4, 5, 6], [7, 8, 9]]], { dtype: "uint8" }); // biome-ignore format: a picture
    expect(listOf(t.rotate(90)(x))[0]).toEqual([[3, 6, 9], [2, 5, 8], [1, 4, 7]]); // biome-ignore format: a picture
    const two = tensor([listOf(x), listOf(x)] as number[][][][], { dtype: "float64" });
    const batch = t.rotate(20, { mode: "bilinear" })(two);
    expect(batch.shape).toEqual([2, 1, 3, 3]);
    expect(batch.select(0, 1).toArray() as unknown).toEqual(
      t.rotate(20, { mode: "bilinear" })(two.select(0, 1)).toArray(),
    );
  });

  test("random rotations and motions are within their ranges, in both directions", () => {
    // The new position of one white pixel gives the angle. It is far enough from the center to detect a degree.
    const size = 201;
    const angleOf = (x: Tensor) => {
      const plane = listOf(x)[0];
      let [sum, sx, sy] = [0, 0, 0];
      for (const [y, row] of plane.entries())
        for (const [at, value] of row.entries()) [sum, sx, sy] = [sum + value, sx + value * at, sy + value * y];
      return [sx / sum - 100, sy / sum - 100] as const;
    };
    const dot = tensor([
      Array.from({ length: size }, (_, y) =>
        Array.from({ length: size }, (_, x) => Number(Math.hypot(x - 180, y - 100) < 3)),
      ),
    ]);
    const angles = Array.from({ length: 24 }, (_, seed) => {
      const [x, y] = angleOf(t.randomRotation([10, 40], { mode: "bilinear" })(dot, { epoch: 0, seed: BigInt(seed) }));
      return (Math.atan2(-y, x) * 180) / Math.PI;
    });
    expect([
      Math.min(...angles) > 9.5,
      Math.min(...angles) < 16,
      Math.max(...angles) > 34,
      Math.max(...angles) < 40.5,
    ]).toEqual(Array(4).fill(true));
    const shifts = Array.from({ length: 24 }, (_, seed) => {
      const [x, y] = angleOf(
        t.randomAffine(0, { translate: [0.05, 0.02], mode: "bilinear" })(dot, { epoch: 0, seed: BigInt(seed) }),
      );
      return [Math.round(x - 80), Math.round(y)] as const;
    });
    const [xs, ys] = [shifts.map(([x]) => x), shifts.map(([, y]) => y)];
    expect([Math.max(...xs) <= 10, Math.max(...xs) > 5, Math.min(...xs) >= -10, Math.min(...xs) < -5]).toEqual(
      Array(4).fill(true),
    );
    expect([Math.max(...ys) <= 4, Math.max(...ys) > 1, Math.min(...ys) >= -4, Math.min(...ys) < -1]).toEqual(
      Array(4).fill(true),
    );
  });

  test("shifts are fractions of the side that they apply to", () => {
    const white = tensor([Array.from({ length: 9 }, () => Array(90).fill(1) as number[])]);
    const shift = t.randomAffine(0, { translate: [0, 0.12] }); // shifts by at most a row
    const rows = Array.from({ length: 20 }, (_, seed) => flat(shift(white, { epoch: 0, seed: BigInt(seed) })));
    expect(new Set(rows.map((own) => own.reduce((a, b) => a + b) / 90))).toEqual(new Set([8, 9]));
  });

  test("a random affine map equals the map that it draws", () => {
    const fixed = { scale: [0.8, 0.8], shear: [5, 5, -3, -3], mode: "bilinear" } as const;
    const got = t.randomAffine([12, 12], fixed)(floatsOf(image), { epoch: 0, seed: 4n });
    expectNear(got, mapped(listOf(floatsOf(image)), { angle: 12, scale: 0.8, shear: [5, -3] }, "bilinear", 0), 1e-10);
    expectNear(
      t.randomAffine(0, { shear: [8, 8], mode: "bilinear" })(floatsOf(image)),
      mapped(listOf(floatsOf(image)), { shear: [8, 0] }, "bilinear", 0),
      1e-10,
    );
  });

  test("gradients flow through affine maps", () => {
    const x = floatsOf(noise(3, 7, 9)).detach();
    x.requiresGrad = true;
    t.compose([t.rotate(30, { mode: "bilinear" }), t.adjustContrast(0.5), t.resize([3, 3])])(x)
      .sum()
      .backward();
    expect(x.grad!.abs().sum().item()).toBeGreaterThan(1);
  });
});

describe("transforms draw random numbers by seed", () => {
  const image = bytesOf(noise(3, 8, 8));
  const change = t.compose([
    t.randomCrop(6, { padding: 1 }),
    t.randomHorizontalFlip(),
    t.colorJitter({ brightness: 0.5, hue: 0.2 }),
    t.randomRotation(20),
  ]);
  const bits = (x: Tensor) => flat(x).join();

  test("random transforms depend on the seed only, not on earlier draws", () => {
    const context = { epoch: 3, seed: 99n };
    const first = bits(change(image, context));
    manualSeed(5);
    change(image);
    expect(bits(change(image, context))).toBe(first);
    const seeds = Array.from({ length: 12 }, (_, seed) => bits(change(image, { epoch: 0, seed: BigInt(seed) })));
    expect(new Set(seeds).size).toBe(12);
  });

  test("without a context, random numbers come from the default generator", () => {
    manualSeed(7);
    const [first, second] = [bits(change(image)), bits(change(image))];
    manualSeed(7);
    expect([bits(change(image)), bits(change(image))]).toEqual([first, second]);
    expect(first).not.toBe(second);
  });

  test("equal transforms in sequence draw different numbers", () => {
    const twice = t.compose([t.randomRotation([1, 179]), t.randomRotation([1, 179])]);
    const once = (seed: bigint) => bits(t.randomRotation([1, 179])(image, { epoch: 0, seed }));
    const flips = t.compose([t.randomHorizontalFlip(), t.randomHorizontalFlip()]);
    const moved = Array.from(
      { length: 40 },
      (_, seed) => bits(flips(image, { epoch: 0, seed: BigInt(seed) })) !== bits(image),
    );
    // Two flips with the same random number would cancel each other.
    expect(moved.filter(Boolean).length).toBeGreaterThan(8);
    expect(bits(twice(image, { epoch: 0, seed: 1n }))).not.toBe(once(1n));
  });

  test("an item of a loader is the same with any number of threads, and after a resumption", async () => {
    const url = new URL("./augmented.ts", import.meta.url);
    const run = async (workers: number, batch = 0) => {
      using set = await data.openWorkerDataset<Tensor>(url, { workers, options: { length: 10 } });
      const loader = new data.DataLoader(set, { batchSize: 2, shuffle: true, seed: 4 });
      loader.setState({ epoch: 1, batch, seed: 4n });
      return (await Array.fromAsync(loader)).map(bits);
    };
    const { default: make } = (await import("./augmented.ts")) as typeof import("./augmented.ts");
    const here = new data.DataLoader(make({ length: 10 }), { batchSize: 2, shuffle: true, seed: 4 });
    here.setState({ epoch: 1, batch: 0, seed: 4n });
    const own = (await Array.fromAsync(here)).map((x) => bits(x as Tensor));
    expect(await run(1)).toEqual(own);
    expect(await run(3)).toEqual(own);
    expect(await run(2, 3)).toEqual(own.slice(3));
  });
});

describe("transforms reject invalid arguments", () => {
  const [image, one] = [bytesOf(noise(3, 4, 4)), tensor([1])];
  test.each([
    ["a vector", () => t.resize(2)(one), "notAnImage"],
    ["a value that is not a tensor", () => t.resize(2)("a" as never), "notAnImage"],
    ["integers of 32 bits", () => t.adjustBrightness(1)(image.to("int32")), "notAnImage"],
    ["bytes to normalize", () => t.normalize([0], [1])(image), "notFloats"],
    ["means of other channels", () => t.normalize([0, 1], [1, 1])(image.to("float32")), "channelsDiffer"],
    ["a std of 0", () => t.normalize([0], [0]), "invalidOption"],
    ["two channels to color", () => t.adjustHue(0.1)(bytesOf(noise(2, 2, 2))), "notAnImage"],
    ["a part larger than the image", () => t.randomCrop(5)(image), "tooSmall"],
    ["maxSize with two sides", () => t.resize([2, 2], { maxSize: 3 }), "unusedOption"],
    ["a shear of a right angle", () => t.affine({ shear: [90, 0] }), "invalidOption"],
    ["a context without a seed", () => t.randomHorizontalFlip()(image, { epoch: 0 } as never), "invalidContext"],
  ] as const)("%s is rejected", (_, call, code) => {
    expect(errorOf(call)).toEqual(expect.objectContaining({ code }));
  });
});
