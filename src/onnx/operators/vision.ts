/** Operators for object detection and for sampling images. */
import { tupleOf } from "../../core/tuples.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import * as ops from "../../ops/index.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Call, numbersOf, type Operators } from "../call.ts";
import { NodeProblem } from "../errors.ts";
import { listOf } from "./axes.ts";

const sampleModes: Readonly<Record<string, "bilinear" | "nearest" | "bicubic">> = {
  bilinear: "bilinear",
  linear: "bilinear",
  nearest: "nearest",
  bicubic: "bicubic",
  cubic: "bicubic",
};

function gridSample(call: Call): Tensor {
  const mode = sampleModes[call.attributes.text("mode", "linear")];
  const paddingMode = call.attributes.text("padding_mode", "zeros");
  if (!mode || !["zeros", "border", "reflection"].includes(paddingMode))
    throw new NodeProblem(
      `mode ${call.attributes.text("mode", "linear")} with padding ${paddingMode} is not supported`,
    );
  return ops.gridSample(call.tensor(0), call.tensor(1), {
    mode,
    paddingMode: paddingMode as "zeros" | "border" | "reflection",
    alignCorners: call.attributes.flag("align_corners"),
  });
}

/** A detected box, as two corners. */
interface Box {
  readonly low: readonly [number, number];
  readonly high: readonly [number, number];
}

/** Reads a box from two corners in any order, or from its center and size. */
function boxAt(values: readonly number[], at: number, isCentered: boolean): Box {
  const [a, b, c, d] = tupleOf(values.slice(at * 4, at * 4 + 4), 4);
  if (isCentered) return { low: [a - c / 2, b - d / 2], high: [a + c / 2, b + d / 2] };
  return { low: [Math.min(a, c), Math.min(b, d)], high: [Math.max(a, c), Math.max(b, d)] };
}

/** Returns the intersection over union of two boxes. */
function overlap(a: Box, b: Box): number {
  const side = (at: 0 | 1) => Math.max(Math.min(a.high[at], b.high[at]) - Math.max(a.low[at], b.low[at]), 0);
  const area = ({ low, high }: Box) => (high[0] - low[0]) * (high[1] - low[1]);
  const both = side(0) * side(1);
  const union = area(a) + area(b) - both;
  return union > 0 ? both / union : 0;
}

/** Of overlapping boxes, keeps the one with the highest score. Results are [batch, class, box]. */
function nonMaxSuppression(call: Call): Tensor {
  const [boxes, scores] = [call.tensor(0), call.tensor(1)];
  const [most, threshold] = [call.number(2) ?? 0, call.number(3) ?? 0];
  const least = call.number(4);
  const isCentered = call.attributes.flag("center_point_box");
  const [batches, classes, count] = scores.sizes(3);
  const [corners, values] = [numbersOf(boxes), numbersOf(scores)];
  const chosen: bigint[] = [];
  for (let batch = 0; batch < batches; batch++)
    for (let group = 0; group < classes; group++) {
      const start = (batch * classes + group) * count;
      const order = Array.from({ length: count }, (_, at) => at)
        .filter((at) => least === undefined || values[start + at] > least)
        .sort((a, b) => values[start + b] - values[start + a]);
      const kept: { readonly at: number; readonly box: Box }[] = [];
      for (const at of order) {
        if (kept.length >= most) break;
        const box = boxAt(corners, batch * count + at, isCentered);
        if (kept.every((each) => overlap(each.box, box) <= threshold)) kept.push({ at, box });
      }
      for (const { at } of kept) chosen.push(BigInt(batch), BigInt(group), BigInt(at));
    }
  return tensor(chosen, { dtype: "int64", shape: [chosen.length / 3, 3] });
}

/** One sample of a region: four places in a plane, and their weights. */
type Sample = readonly (readonly [place: number, weight: number])[];

/** Means or maxima of bilinear samples in each cell of each region. */
function roiAlign(call: Call): Tensor {
  const [x, rois] = [call.tensor(0), numbersOf(call.tensor(1))];
  const batches = call.numbers(2);
  const { attributes } = call;
  const [height, width] = [attributes.number("output_height", 1), attributes.number("output_width", 1)];
  const isMaximum = attributes.choice("mode", ["avg", "max"], "avg") === "max";
  const coordinates = ["half_pixel", "output_half_pixel"] as const;
  const isHalfPixel =
    call.opset >= 16 && attributes.choice("coordinate_transformation_mode", coordinates, "half_pixel") === "half_pixel";
  const [channels, rows, columns] = tupleOf(x.shape.slice(1), 3);
  const regions = batches.map((batch, region) => {
    const plane = ops.reshape(ops.select(x, 0, batch), [channels, rows * columns]);
    const corners = rois
      .slice(region * 4, region * 4 + 4)
      .map((value) => value * attributes.number("spatial_scale", 1) - (isHalfPixel ? 0.5 : 0));
    const cells = samplesOf(
      corners,
      [height, width],
      [rows, columns],
      attributes.number("sampling_ratio", 0),
      isHalfPixel,
    );
    return ops.reshape(pooled(plane, cells, isMaximum), [channels, height, width]);
  });
  return regions.length === 0
    ? ops.zeros([0, channels, height, width], { dtype: x.dtype })
    : ops.stack(regions, { dim: 0 });
}

/** The samples of each cell, row by row. */
function samplesOf(
  [left, top, right, bottom]: readonly number[],
  cells: readonly [rows: number, columns: number],
  size: readonly [rows: number, columns: number],
  ratio: number,
  isHalfPixel: boolean,
): Sample[][] {
  const extents = [bottom - top, right - left].map((extent) => (isHalfPixel ? extent : Math.max(extent, 1)));
  const grids = extents.map((extent, at) => (ratio > 0 ? ratio : Math.ceil(extent / cells[at])));
  const along = (at: 0 | 1, start: number, cell: number): number[] =>
    listOf(grids[at], (sample) => {
      const bin = extents[at] / cells[at];
      return start + cell * bin + ((sample + 0.5) * bin) / grids[at];
    });
  return listOf(cells[0] * cells[1], (at) => {
    const ys = along(0, top, Math.floor(at / cells[1]));
    const xs = along(1, left, at % cells[1]);
    return ys.flatMap((y) => xs.map((x) => bilinear(y, x, size)));
  });
}

function bilinear(y: number, x: number, [rows, columns]: readonly [number, number]): Sample {
  if (y < -1 || y > rows || x < -1 || x > columns) return [];
  const around = (value: number, size: number): readonly [number, number, number] => {
    const at = Math.min(Math.max(value, 0), size - 1);
    const low = Math.min(Math.floor(at), size - 1);
    return [low, Math.min(low + 1, size - 1), at - low];
  };
  const [top, bottom, fy] = around(y, rows);
  const [left, right, fx] = around(x, columns);
  return [
    [top * columns + left, (1 - fy) * (1 - fx)],
    [top * columns + right, (1 - fy) * fx],
    [bottom * columns + left, fy * (1 - fx)],
    [bottom * columns + right, fy * fx],
  ];
}

/** Reduces the samples of each cell, for all channels at once. */
function pooled(plane: Tensor, cells: readonly Sample[][], isMaximum: boolean): Tensor {
  const columns = cells.map((samples) => {
    const taps = samples.flat();
    if (taps.length === 0) return ops.zeros([plane.shape[0]], { dtype: plane.dtype });
    const places = tensor(
      taps.map(([place]) => BigInt(place)),
      { dtype: "int64", shape: [taps.length] },
    );
    const weights = tensor(
      taps.map(([, weight]) => weight),
      { dtype: "float32", shape: [taps.length] },
    );
    const parts = ops.mul(ops.indexSelect(plane, 1, places), weights.to(plane.dtype));
    return isMaximum ? ops.amax(parts, { dim: 1 }) : ops.div(ops.sum(parts, { dim: 1 }), Math.max(samples.length, 1));
  });
  return ops.stack(columns, { dim: 1 });
}

/** Maxima over a grid of cells of each region, whose rows are [batch, left, top, right, bottom]. */
function maxRoiPool(call: Call): Tensor {
  const [x, rois] = [call.tensor(0), numbersOf(call.tensor(1))];
  const [height, width] = call.attributes.numbers("pooled_shape") as readonly [number, number];
  const scale = call.attributes.number("spatial_scale", 1);
  const [channels, rows, columns] = tupleOf(x.shape.slice(1), 3);
  const results = Array.from({ length: rois.length / 5 }, (_, region) => {
    const [batch, ...corners] = rois.slice(region * 5, region * 5 + 5) as [number, ...number[]];
    const [left, top, right, bottom] = tupleOf(
      corners.map((value) => Math.round(value * scale)),
      4,
    );
    const plane = ops.select(x, 0, batch);
    const range = (at: number, cells: number, low: number, high: number, size: number) => {
      const extent = Math.max(high - low + 1, 1) / cells;
      const limit = (value: number) => Math.min(Math.max(value, 0), size);
      return [limit(Math.floor(at * extent) + low), limit(Math.ceil((at + 1) * extent) + low)] as const;
    };
    const cells = listOf(height * width, (at) => {
      const [y0, y1] = range(Math.floor(at / width), height, top, bottom, rows);
      const [x0, x1] = range(at % width, width, left, right, columns);
      if (y1 <= y0 || x1 <= x0) return ops.zeros([channels], { dtype: x.dtype });
      const part = ops.narrow(ops.narrow(plane, 1, y0, y1 - y0), 2, x0, x1 - x0);
      return ops.amax(part, { dim: [1, 2] });
    });
    return ops.reshape(ops.stack(cells, { dim: 1 }), [channels, height, width]);
  });
  return ops.stack(results, { dim: 0 });
}

export const vision: Operators = {
  AffineGrid: (call) =>
    ops.affineGrid(call.tensor(0), call.numbers(1), { alignCorners: call.attributes.flag("align_corners") }),
  GridSample: gridSample,
  MaxRoiPool: maxRoiPool,
  NonMaxSuppression: nonMaxSuppression,
  RoiAlign: roiAlign,
};
