/**
 * The memory traffic of losses and embeddings, as the software device counts it. Each pass reads logits once and writes
 * their gradient once. A table's row is read once for each index that selects it, and the table's gradient is written
 * once, whether a row is selected or not. Nothing else is as large.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { metalContext } from "../../../src/backend/metal/context.ts";
import type { DispatchCounters } from "../../../src/backend/metal/report.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import * as library from "../../../src/ops/index.ts";
import { bytesOf } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested } from "../run.ts";

/** Only the software device has counters. */
const isWatched = tested.includes("metal") && metalContext().isSoftware;
const watch = (isOn: boolean): void => {
  for (const setting of ["check", "count"]) metalContext().configure(setting, isOn);
};
afterAll(() => isWatched && watch(false));

const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend("metal", body));

/** The counters of a call's dispatches, by the kernels' names without dtypes. */
function dispatchesOf(compute: () => unknown): Map<string, DispatchCounters["counters"]> {
  const context = metalContext();
  watch(true);
  context.wait();
  context.report({ clear: true });
  on(compute);
  context.wait();
  const { dispatches, findings } = context.report({ clear: true });
  expect(findings).toEqual([]);
  return new Map(
    dispatches.map(({ kernel, counters }) => [kernel.replace(/(_(float|half|u?int|u?long|ushort))+$/, ""), counters]),
  );
}

type Narrow = "float32" | "float16";
/** The elements of the operands' dtype that a kernel reads. The number of other reads is the same for every dtype. */
function elementsRead(kernel: string, compute: (dtype: Narrow) => unknown): number {
  const [wide, narrow] = (["float32", "float16"] as const).map(
    (dtype) => dispatchesOf(() => compute(dtype)).get(kernel)!.device_bytes_read,
  );
  return (wide - narrow) / 2;
}

const SLICES = 6;
const CLASSES = 1003;
const SIZE = SLICES * CLASSES;
const leaf = (shape: readonly number[], dtype: Narrow): Tensor =>
  on(() => library.ones(shape, { dtype, requiresGrad: true }));
const places = (count: number) => on(() => library.ones([count], { dtype: "int64" }));

/** A call that runs only the backward pass. */
function backwardOf(compute: (x: Tensor) => Tensor, x: Tensor): () => unknown {
  const output = on(() => compute(x));
  const gradOutputs = [on(() => library.ones(output.shape, { dtype: output.dtype as Narrow }))];
  return () => grad([output], [x], { gradOutputs });
}

describe.if(isWatched)("crossEntropy reads memory once", () => {
  const targets = isWatched ? places(SLICES) : (undefined as never);
  const forward = (dtype: Narrow, labelSmoothing = 0) =>
    library.crossEntropy(library.ones([SLICES, CLASSES], { dtype }), targets, { labelSmoothing });

  test("crossEntropy reads each logit once, and the target's again; it writes four numbers for each slice", () => {
    const kernels = dispatchesOf(() => forward("float32"));
    const names = [...kernels.keys()].filter((name) => !name.startsWith("fill"));
    expect(names).toEqual(["find_out_of_range", "cross_entropy", "mean_loss"]);
    expect(kernels.get("cross_entropy")!.device_bytes_written).toBe(SLICES * 4 * 4);
    expect(elementsRead("cross_entropy", forward)).toBe(SIZE + SLICES);
    expect(elementsRead("cross_entropy", (dtype) => forward(dtype, 0.5))).toBe(SIZE + SLICES);
  });

  test("the gradient reads each logit once and writes each once, in their dtype", () => {
    const backward = (dtype: Narrow) =>
      backwardOf((x) => library.crossEntropy(x, targets), leaf([SLICES, CLASSES], dtype));
    const runs = { float32: backward("float32"), float16: backward("float16") };
    for (const dtype of ["float32", "float16"] as const) {
      const kernels = dispatchesOf(backward(dtype));
      expect(kernels.get("cross_entropy_gradient")!.device_bytes_written).toBe(SIZE * bytesOf(dtype));
    }
    expect(elementsRead("cross_entropy_gradient", (dtype) => runs[dtype]())).toBe(SIZE);
  });

  test("nothing else that grows with the classes is written, also in 16 bits", () => {
    const x = leaf([SLICES, CLASSES], "float16");
    const kernels = dispatchesOf(() => backwardOf((own) => library.crossEntropy(own, targets), x)());
    const written = [...kernels].flatMap(([name, counters]) =>
      name === "cross_entropy_gradient" ? [] : [counters.device_bytes_written],
    );
    expect(written.length).toBeGreaterThan(3);
    for (const bytes of written) expect(bytes).toBeLessThanOrEqual(SLICES * 16);
  });
});

describe.if(isWatched)("losses of one element each read operands once", () => {
  const losses: Readonly<Record<string, (x: Tensor, target: Tensor) => Tensor>> = {
    mseLoss: library.mseLoss,
    binaryCrossEntropyWithLogits: library.binaryCrossEntropyWithLogits,
  };
  const COUNT = 20_000; // two threadgroups

  test.each(Object.entries(losses))("%s reads each operand once in each pass", (_name, loss) => {
    const compute = (dtype: Narrow) => loss(library.ones([COUNT], { dtype }), library.ones([COUNT], { dtype }));
    const kernels = dispatchesOf(() => compute("float32"));
    expect(kernels.get("loss_sums")!.device_bytes_written).toBe(2 * 4);
    expect(kernels.get("loss_total")!.device_bytes_written).toBe(4);
    expect(elementsRead("loss_sums", compute)).toBe(2 * COUNT);
    const targets = { float32: leaf([COUNT], "float32"), float16: leaf([COUNT], "float16") };
    const runs = (dtype: Narrow) => backwardOf((x) => loss(x, targets[dtype]), leaf([COUNT], dtype));
    const backward = { float32: runs("float32"), float16: runs("float16") };
    expect(elementsRead("loss_gradients", (dtype) => backward[dtype]())).toBe(2 * COUNT);
    // The graph requests both gradients: x's and the target's, each written once.
    expect(dispatchesOf(runs("float32")).get("loss_gradients")!.device_bytes_written).toBe(2 * COUNT * 4);
  });
});

describe.if(isWatched)("embeddings read memory once", () => {
  const [TOTAL, ROWS, WIDTH] = [32, 40, 96];
  const index = isWatched ? places(TOTAL) : (undefined as never);

  test("embedding is one gather, after a check of the indices", () => {
    const kernels = dispatchesOf(() => library.embedding(index, library.ones([ROWS, WIDTH])));
    expect([...kernels.keys()].filter((name) => !name.startsWith("fill"))).toEqual(["find_out_of_range", "gather"]);
    expect(kernels.get("gather")!.device_bytes_written).toBe(TOTAL * WIDTH * 4);
  });

  test("the gradient of embedding reads each gradient once and writes each row once", () => {
    const run = (dtype: Narrow) => backwardOf((weight) => library.embedding(index, weight), leaf([ROWS, WIDTH], dtype));
    const runs = { float32: run("float32"), float16: run("float16") };
    expect(elementsRead("bag_gradient", (dtype) => runs[dtype]())).toBe(TOTAL * WIDTH);
    expect(dispatchesOf(run("float32")).get("bag_gradient")!.device_bytes_written).toBe(ROWS * WIDTH * 4);
  });

  test("an unselected row costs a fill and a check", () => {
    const run = (rows: number) =>
      dispatchesOf(backwardOf((weight) => library.embedding(index, weight), leaf([rows, WIDTH], "float32"))).get(
        "bag_gradient",
      )!;
    const [few, many] = [run(ROWS), run(2 * ROWS)];
    expect(many.device_bytes_written - few.device_bytes_written).toBe(ROWS * WIDTH * 4);
    // The keys of 32 indices are two cache lines, and parameters one or two.
    expect(many.cache_lines_read - few.cache_lines_read).toBeLessThanOrEqual(ROWS * 4);
  });

  test("embeddingBag reads each selected row once and writes the bags, without an intermediate matrix", () => {
    const [bags, length] = [4, 8];
    const square = on(() => library.reshape(index, [bags, length]));
    const compute = (dtype: Narrow) => library.embeddingBag(square, library.ones([ROWS, WIDTH], { dtype }));
    const kernels = dispatchesOf(() => compute("float32"));
    expect([...kernels.keys()].filter((name) => !name.startsWith("fill"))).toEqual(["find_out_of_range", "bag_rows"]);
    expect(kernels.get("bag_rows")!.device_bytes_written).toBe(bags * WIDTH * 4 + bags * 4);
    expect(elementsRead("bag_rows", compute)).toBe(TOTAL * WIDTH);
    const run = (dtype: Narrow) =>
      backwardOf((weight) => library.embeddingBag(square, weight), leaf([ROWS, WIDTH], dtype));
    expect(dispatchesOf(run("float32")).get("bag_gradient")!.device_bytes_written).toBe(ROWS * WIDTH * 4);
  });
});
