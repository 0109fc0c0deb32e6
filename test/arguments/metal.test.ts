/** For all kernels, buffers and contexts, the call returns a result or throws an `OrchardError`. */
import { describe, expect, test } from "bun:test";
import { output } from "../../src/backend/metal/arguments.ts";
import { DeviceBuffer } from "../../src/backend/metal/buffer.ts";
import { metalContext } from "../../src/backend/metal/context.ts";
import { MetalKernel, metalKernel } from "../../src/backend/metal/kernel.ts";
import { kernelOverride } from "../../src/backend/metal/kernel_override.ts";
import { whyUnavailable } from "../../src/backend/registry.ts";
import { tensor, zeros } from "../../src/index.ts";
import { failureOf, untypedErrors } from "./each_place.ts";
import type { Call } from "./upper.ts";

const source = `#include <metal_stdlib>
using namespace metal;
kernel void saxpy(device const float *x, device float *y, constant float &a, uint i [[thread_position_in_grid]]) {
    y[i] += a * x[i];
}`;
const name = "saxpy";

type Row = readonly [name: string, call: Call, values: () => readonly unknown[]];

function rows(): Row[] {
  const kernel = metalKernel({ name, source });
  const tensors = metalKernel({ name, source, shapes: { y: "y" } });
  const fallback = metalKernel({ name, source, shapes: { y: "y" }, fallback: () => zeros([2]) });
  const operands = { x: tensor([1, 2]), y: tensor([3, 4]), a: 3 };
  const ofTensors = {
    shapes: { y: [2] },
    dtypes: { y: "float32" },
    strided: ["x"],
    saves: ["x"],
    grid: 2,
    threadgroups: [2, 1],
    threadgroup: 2,
    threadgroupMemory: {},
    backward: () => ({}),
  };
  const buffer = new DeviceBuffer(new Float32Array(4));
  const bindings = () => ({ x: new Float32Array([1, 2]), y: new Float32Array([1, 2]), a: 3 });
  const options = { grid: 2, threadgroup: 2, counters: false, label: "own", threadgroupMemory: {} };
  return [
    ["metalKernel", metalKernel as Call, () => [{ name, source, constants: {}, context: metalContext() }]],
    ["metalKernel of tensors", metalKernel as Call, () => [{ name, source, ...ofTensors, fallback: () => zeros([2]) }]],
    ["MetalKernel", (given) => new MetalKernel(given), () => [{ name, source, headers: {}, macros: {} }]],
    ["run", (own, given) => kernel.run(own, given), () => [bindings(), options]],
    [
      "run, outputs",
      (own, given) => kernel.run(own, given),
      () => [{ ...bindings(), y: output(Float32Array, 2) }, options],
    ],
    ["runAsync", (own, given) => kernel.runAsync(own, given), () => [bindings(), options]],
    ["apply", (own, given) => tensors.apply(own, given), () => [operands, { grid: 2, threadgroup: 2, label: "own" }]],
    ["apply, fallback", (own) => fallback.apply(own), () => [operands]],
    ["encode", (own, given) => kernel.encode(own, given), () => [{ ...bindings(), y: buffer }, options]],
    ["DeviceBuffer", (...given) => construct(given), () => [16, { storage: "shared", label: "own", zero: true }]],
    ["read", (type, from, length) => buffer.read(type, from, length), () => [Float32Array, 0, 2]],
    ["readAsync", (type, from, length) => buffer.readAsync(type, from, length), () => [Float32Array, 0, 2]],
    ["write", (content, from) => buffer.write(content, from), () => [new Float32Array(2), 0]],
    ["fill", (byte, from, length) => buffer.fill(byte, from, length), () => [1, 0, 4]],
    ["copyTo", (target, given) => buffer.copyTo(target, given), () => [buffer, { from: 0, to: 8, byteLength: 8 }]],
    ["moveTo", (storage) => buffer.moveTo(storage), () => ["shared"]],
    ["configure", (setting, value) => metalContext().configure(setting, value), () => ["unknown", 0]],
    ["deviceInfo", (given) => metalContext().deviceInfo(given), () => [{ probe: false }]],
    ["wait", (ticket, timeout) => metalContext().wait(ticket, timeout), () => [0, 1000]],
    ["finished", (ticket, timeout) => metalContext().finished(ticket, timeout), () => [0, 1000]],
    ["trim", (bytes) => metalContext().trim(bytes), () => [0]],
    ["labeled", (label, body) => metalContext().labeled(label, body), () => ["own", () => 1]],
    ["report", (given) => metalContext().report(given), () => [{ clear: false }]],
    ["kernelOverride", kernelOverride as Call, () => [kernel, () => ({ bindings: {}, options: { grid: 1 } })]],
    ["output", output as Call, () => [Float32Array, 4]],
  ];
}

const construct = (given: readonly unknown[]): void =>
  new (DeviceBuffer as new (...own: readonly unknown[]) => DeviceBuffer)(...given).dispose();

describe.skipIf(whyUnavailable("metal") !== undefined)(
  "kernels, buffers and contexts survive hostile arguments",
  () => {
    test("hostile arguments of kernels, buffers and contexts throw typed errors", async () => {
      for (const [operation, call, values] of rows()) {
        const right = await failureOf(() => call(...(values() as never[])));
        if (operation !== "configure") expect([operation, right]).toEqual([operation, undefined]);
        expect([operation, await untypedErrors(call, values)]).toEqual([operation, []]);
      }
    });
  },
);
