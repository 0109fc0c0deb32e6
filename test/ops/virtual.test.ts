/**
 * Tensors of 2⁵² elements that occupy no memory: an operation makes a view of such a tensor, or rejects it before it
 * begins to work.
 */
import { describe, expect, test } from "bun:test";
import { chunk, expand, ones, split, unbind } from "../../src/index.ts";
import { operationNames } from "./calls.ts";
import { tested } from "./run.ts";
import { type Ended, virtualCalls } from "./virtual.ts";

/** Operations that can return views of any size. The valid calls of some also have small results. */
const views = (
  "expand reshape flatten unflatten permute transpose movedim swapaxes squeeze unsqueeze slice narrow select " +
  "diagonal diag asStrided slidingWindows unfold broadcastTensors pixelShuffle pixelUnshuffle channelShuffle " +
  "chunk atleast1d atleast2d atleast3d tensorSplit hsplit vsplit dsplit conj imag real viewAsReal"
).split(" ");

const refusals = [
  /^OutOfMemoryError \[\w+\] .*\b\d+ bytes are refused: .*, and tensors may take \d+ \(of \d+ bytes: .+\)$/,
  /^OutOfMemoryError \[(dataSync|toArray)\] JavaScript can't allocate 18014398509481984 bytes in one block$/,
  /^ShapeError \[\w+\] expected a tensor of at most 2\^40 elements, got \w+\[.+\]/,
  /^ShapeError \[\w+\] expected at most 1048576 views, got \d+ of float32\[67108864, 67108864\]/,
  /^ShapeError \[\w+\] \[.+\] has more elements than a number can count$/,
  /^ArgumentError \[(logspace|combinations)\] expected at most 134217728 (steps|elements in total), got .+/,
  /^ArgumentError \[\w+_\] axis 0 of .+ is expanded, so its elements share memory/,
  /^ShapeError \[viewAsComplex\] expected a last axis of size 2, .+, got float32\[67108864, 67108864\]$/,
  /^ArgumentError \[item\] expected a tensor of one element/,
];

describe.each(tested)("virtual tensors on %s", (backend) => {
  const { outcomes, last, problem } = virtualCalls(backend);

  test("every operation on virtual tensors ends", () => {
    expect([last, problem]).toEqual(["", ""]);
    expect(outcomes.length).toBeGreaterThan(operationNames.length);
  });

  test("every operation returns a view, or throws a typed error that names the operand", () => {
    const isView = ({ ends, outcome }: Ended) => /^(view|VALUE Tensor float32)/.test(outcome) && views.includes(ends);
    const isRefused = ({ outcome }: Ended) => refusals.some((refusal) => refusal.test(outcome));
    expect(outcomes.filter((outcome) => !isView(outcome) && !isRefused(outcome))).toEqual([]);
  });
});

test("at most a million views are created", () => {
  const most = 2 ** 20;
  const x = expand(ones([1]), [most]);
  expect([unbind(x).length, split(x, 1).length, chunk(x, most).length]).toEqual([most, most, most]);
  const more = expand(ones([1]), [most + 1]);
  for (const make of [() => unbind(more), () => split(more, 1), () => chunk(more, most + 1)])
    expect(make).toThrow(/expected at most 1048576 views, got 1048577 of float32\[1048577\]/);
  expect(() => chunk(ones([0]), most + 1)).toThrow("expected at most 1048576 views, got 1048577 of float32[0]");
});
