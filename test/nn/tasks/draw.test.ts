/** Pictures of what image models find. */
import { expect, test } from "bun:test";
import { io, nn, tensor } from "../../../src/index.ts";
import { testFolder } from "../../support/folder.ts";

const folder = testFolder("draw");

test("labels have the colors of PASCAL VOC, also in a PNG file", async () => {
  const map = tensor(
    [
      [0, 1, 2],
      [3, 15, 255],
    ],
    { dtype: "int32" },
  );
  const drawn = nn.drawSegmentation(map);
  // red, green and blue of labels by the devkit's VOClabelcolormap
  const colors = [
    [0, 0, 0],
    [128, 0, 0],
    [0, 128, 0],
    [128, 128, 0],
    [192, 128, 128],
    [224, 224, 192],
  ];
  expect(drawn.permute([1, 2, 0]).reshape([6, 3]).toArray()).toEqual(colors);
  await io.saveImage(folder.file("map.png"), drawn);
  expect((await io.loadImage(folder.file("map.png"))).toArray()).toEqual(drawn.toArray());
});

test("the least depth is black, and the largest white", () => {
  expect(
    nn
      .drawDepth(
        tensor([
          [1, 2],
          [3, 1.5],
        ]),
      )
      .toArray(),
  ).toEqual([
    [
      [0, 128],
      [255, 64],
    ],
  ]);
  expect(nn.drawDepth(tensor([[7, 7]])).toArray()).toEqual([[[0, 0]]]);
  expect(() => nn.drawDepth(tensor([[1, Number.NaN]]))).toThrow("expected finite depths");
  expect(() => nn.drawDepth(tensor([1]))).toThrow("expected [height, width]");
});

test("boxes of objects are drawn as SVG, which sharp renders", async () => {
  const box = { left: 8, top: 16, right: 40, bottom: 48 };
  const objects = [{ label: "<cat> & dog", score: 0.5, box }];
  const svg = nn.drawObjects(objects, { width: 480, height: 480 });
  expect(svg).toContain('<rect x="8" y="16" width="32" height="32"');
  expect(svg).toContain("&lt;cat&gt; &amp; dog 0.50");
  const { default: sharp } = await import("sharp");
  const { data, info } = await sharp(Buffer.from(svg)).raw().toBuffer({ resolveWithObject: true });
  const pixel = (x: number, y: number) => [...data.subarray(info.channels * (y * info.width + x)).subarray(0, 4)];
  expect(pixel(8, 32)).toEqual([128, 0, 0, 255]);
  expect(pixel(24, 32)).toEqual([0, 0, 0, 0]);
  expect(() => nn.drawObjects([{ label: "a" } as nn.DetectedObject], { width: 1, height: 1 })).toThrow("without a box");
  expect(() => nn.drawObjects(objects, {} as nn.DrawObjectsOptions)).toThrow("the width and the height");
});
