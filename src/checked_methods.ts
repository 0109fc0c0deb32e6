/** Makes methods of public classes reject surplus arguments: of those in no namespace, except Tensor's. */
import { DeviceBuffer } from "./backend/metal/buffer.ts";
import { MetalContext } from "./backend/metal/context.ts";
import { MetalKernel } from "./backend/metal/kernel.ts";
import { refuseSurplus } from "./core/surplus.ts";
import { Function as Differentiable, FunctionContext } from "./ops/gradient/function.ts";
import * as quant from "./quant/index.ts";
import { Generator } from "./random/generator.ts";

refuseSurplus([
  ...Object.values<unknown>(quant),
  DeviceBuffer,
  Differentiable,
  FunctionContext,
  Generator,
  MetalContext,
  MetalKernel,
]);
