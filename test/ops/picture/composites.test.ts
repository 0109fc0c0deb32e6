/**
 * Operations on images and views: the same bits for all layouts of the operands, and gradients of gradients. Their
 * results are compared with PyTorch's in the fixtures.
 */
import { describe, expect, test } from "bun:test";
import { enableGrad, isGradEnabled } from "../../../src/autograd/modes.ts";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import * as o from "../../../src/ops/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { checkFindings, tested } from "../run.ts";

const wave = (shape: readonly number[], step: number, dtype: "float64" | "float32" = "float64"): Tensor => {
  const size = shape.reduce((product, own) => product * own, 1);
  const values = Float64Array.from({ length: size }, (_, at) => Math.sin((at + 1) * step));
  return o.tensor(values, { shape, dtype });
};

interface Row {
  readonly compute: (x: Tensor, y: Tensor) => Tensor;
  readonly x: readonly number[];
  readonly y?: readonly number[];
}

const grid = [1, 2, 2, 2];
const rows: Readonly<Record<string, Row>> = {
  unfold: { compute: (x) => o.unfold(x, [2, 3], { padding: 1, stride: 2 }), x: [1, 2, 3, 4] },
  fold: { compute: (x) => o.fold(x, [3, 4], 2, { stride: [1, 2] }), x: [8, 4] },
  pixelShuffle: { compute: (x) => o.pixelShuffle(x, 2), x: [4, 2, 1] },
  pixelUnshuffle: { compute: (x) => o.pixelUnshuffle(x, 2), x: [1, 2, 4] },
  channelShuffle: { compute: (x) => o.channelShuffle(x, 2), x: [1, 4, 2] },
  "pad reflect": { compute: (x) => o.pad(x, [2, 1, 1, 0], "reflect"), x: [1, 3, 4] },
  "pad replicate": { compute: (x) => o.pad(x, [2, 1, 1, 5], "replicate"), x: [1, 3, 4] },
  "pad circular": { compute: (x) => o.pad(x, [2, 1, 1, 0], "circular"), x: [1, 3, 4] },
  "interpolate nearest": { compute: (x) => o.interpolate(x, 7), x: [1, 2, 4] },
  "interpolate bilinear": { compute: (x) => o.interpolate(x, { size: 5, mode: "bilinear" }), x: [1, 1, 3, 4] },
  "interpolate bicubic": {
    compute: (x) => o.interpolate(x, { size: [4, 2], mode: "bicubic", antialias: true }),
    x: [1, 1, 3, 4],
  },
  gridSample: { compute: (x, y) => o.gridSample(x, y), x: [1, 2, 3, 4], y: grid },
  "gridSample bicubic": {
    compute: (x, y) => o.gridSample(x, y, { mode: "bicubic", paddingMode: "reflection" }),
    x: [1, 1, 3, 4],
    y: grid,
  },
  affineGrid: { compute: (x) => o.affineGrid(x, [2, 1, 2, 3]), x: [2, 2, 3] },
  lpPool1d: { compute: (x) => o.lpPool1d(o.add(x, 2) as Tensor, 3, 2, 1), x: [1, 2, 5] },
  adaptiveMaxPool2d: { compute: (x) => o.adaptiveMaxPool2d(x, [2, 3]), x: [1, 3, 4] },
  maxUnpool1d: { compute: (x) => o.maxUnpool1d(x, o.tensor([[0n, 3n, 4n]]), 2), x: [1, 3] },
  ctcLoss: { compute: (x) => o.ctcLoss(o.logSoftmax(x, -1), o.tensor([[1n, 1n]]), [4], [2]), x: [4, 1, 3] },
  diagEmbed: { compute: (x) => o.diagEmbed(x, 1), x: [2, 3] },
  asStrided: { compute: (x) => o.asStrided(o.contiguous(x), [3, 2], [1, 2]), x: [2, 3] },
  "asStrided of what repeats": { compute: (x) => o.asStrided(o.expand(x, [2, 3]), [3, 2], [1, 0]), x: [3] },
  slidingWindows: { compute: (x) => o.slidingWindows(x, 1, 3, 1), x: [2, 5] },
  rot90: { compute: (x) => o.rot90(x), x: [2, 3] },
  broadcastTensors: { compute: (x) => o.broadcastTensors(x, o.zeros(2, 3))[0], x: [2, 1] },
  indexReduce: { compute: (x, y) => o.indexReduce(x, 0, o.tensor([1n, 1n]), y, "prod"), x: [2, 3], y: [2, 3] },
};

/** The same elements with the axes in the opposite order in memory. */
function turned(x: Tensor): Tensor {
  const back = x.shape.map((_, axis) => x.shape.length - 1 - axis);
  return o.permute(o.contiguous(o.permute(x, back)), back);
}

describe.each(tested)("functions of pictures on %s", (backend) => {
  test("the layout of the operands changes no bit", () => {
    if (backend === "metal") metalContext().configure("check", true);
    withStrict(true, () =>
      withBackend(backend, () => {
        const differ = Object.entries(rows).filter(([, { compute, x, y = [] }]) => {
          const operands = [wave(x, 0.7, "float32"), wave(y, 1.3, "float32")] as const;
          const bits = (own: Tensor) => Buffer.from(o.contiguous(own).dataSync().slice().buffer).toString("hex");
          return bits(compute(...operands)) !== bits(compute(turned(operands[0]), turned(operands[1])));
        });
        expect(differ.map(([name]) => name)).toEqual([]);
      }),
    );
    if (backend === "metal") checkFindings({ name: "pictures" });
  });
});

test.each(Object.entries(rows))(
  "gradients and second gradients of %s equal finite differences",
  (_name, { compute, x, y = [] }) => {
    withBackend("cpu", () => {
      const operands = [wave(x, 0.7), wave(y, 1.3)];
      const varied = y.length > 0 ? operands : operands.slice(0, 1);
      for (const own of varied) own.requiresGrad = true;
      const cubed = (a: Tensor, b: Tensor = operands[1]): Tensor => {
        const result = compute(a, b);
        return o.mul(result, o.mul(result, result)) as Tensor;
      };
      gradcheck((a, b) => cubed(a, b), varied);
      for (const which of varied.keys()) {
        const first = (...given: Tensor[]): Tensor => {
          const createGraph = isGradEnabled(); // finite differences need no graph
          const output = enableGrad(() => cubed(given[0], given[1]));
          const gradOutputs = [o.full(output.shape, 0.75, { dtype: "float64" })];
          return grad([output], given, { gradOutputs, createGraph })[which];
        };
        gradcheck(first, varied);
      }
    });
  },
);
