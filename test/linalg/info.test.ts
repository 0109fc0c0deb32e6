/**
 * When the error of a factorization is thrown: at the call if it is known by then, else when a dependent tensor is
 * read.
 */
import { describe, expect, test } from "bun:test";
import { metalContext } from "../../src/backend/metal/context.ts";
import { whyUnavailable } from "../../src/backend/registry.ts";
import { LinAlgError } from "../../src/core/errors.ts";
import { cholesky } from "../../src/linalg/cholesky/cholesky.ts";
import { toDType } from "../../src/ops/copy/cast.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { add, mul } from "../../src/ops/elementwise/arithmetic.ts";
import { backward } from "../../src/ops/gradient/backward.ts";
import { sum } from "../../src/ops/reduction/sum.ts";
import { reshape } from "../../src/ops/view/reshape.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { errorOf } from "../support/errors.ts";
import { on } from "./run.ts";

const message =
  "[cholesky] the matrix at [1, 0] of the batch is not positive definite: its leading minor of order 2 is not";
/** A batch [2, 1] of 2 x 2 matrices, the second of which has no factor. */
const batch = (): Tensor => reshape(tensor([4, 2, 2, 5, 1, 2, 2, 1]), [2, 1, 2, 2]);
const good = (): Tensor => reshape(tensor([4, 2, 2, 5]), [2, 2]);

function expectProblem(error: unknown): void {
  expect(error).toBeInstanceOf(LinAlgError);
  const { message: text, batch: where, pivot } = error as LinAlgError;
  expect([text, where, pivot]).toEqual([message, [1, 0], 2]);
}

test.each(["cpu", "reference"] as const)("a matrix without a factor is an error at the call on %s", (backend) => {
  on(backend, true, () => expectProblem(errorOf(() => cholesky(batch()))));
});

describe.if(whyUnavailable("metal") === undefined)("the error of a factorization on metal", () => {
  const onMetal = <Result>(body: () => Result): Result => on("metal", true, body);

  test("each read of a dependent tensor throws the error, and nothing else does", async () => {
    const [factor, later, innocent] = onMetal(() => {
      const own = cholesky(batch());
      return [own, mul(add(own, 1), 2), cholesky(good())] as const;
    });
    expect(innocent.toArray()).toEqual([
      [2, 0],
      [1, 2],
    ]);
    for (let time = 0; time < 2; time++) {
      expectProblem(errorOf(() => factor.dataSync()));
      expectProblem(errorOf(() => later.toArray()));
      expectProblem(await factor.data().catch((error: unknown) => error));
    }
    expectProblem(errorOf(() => on("cpu", true, () => add(factor, 1))));
    onMetal(() => expectProblem(errorOf(() => add(factor, 1).dataSync())));
  });

  test("results of other dtypes and layouts have the error too", () => {
    onMetal(() => {
      expectProblem(errorOf(() => cholesky(toDType(batch(), "float16")).dataSync()));
      expectProblem(errorOf(() => cholesky(batch(), { upper: true }).dataSync()));
    });
  });

  test("reading a gradient throws the error too", () => {
    onMetal(() => {
      const a = batch();
      a.requiresGrad = true;
      backward(sum(cholesky(a)));
      expectProblem(errorOf(() => a.grad!.dataSync()));
    });
  });

  test("a call waits for nothing, and its memory is released", () => {
    const context = metalContext();
    onMetal(() => cholesky(good()).dataSync()); // compiles the kernels
    const { commandBuffers, liveBuffers } = context.statistics();
    onMetal(() => {
      const a = good();
      for (let call = 0; call < 30; call++) cholesky(a).dispose();
      expect(context.statistics().commandBuffers - commandBuffers).toBeLessThan(5);
      a.dispose();
    });
    context.wait();
    onMetal(() => cholesky(good()).dataSync());
    Bun.gc(true);
    expect(context.statistics().liveBuffers).toBeLessThan(liveBuffers + 10);
  });

  test("the error names the first matrix of the batch that has no factor", () => {
    onMetal(() => {
      const bad = reshape(tensor([1, 0, 0, 1, 9, 0, 0, -1, -1, 0, 0, 1]), [3, 2, 2]);
      const { batch: where, pivot } = errorOf(() => cholesky(bad).dataSync()) as LinAlgError;
      expect([where, pivot]).toEqual([[1], 2]);
    });
  });
});
