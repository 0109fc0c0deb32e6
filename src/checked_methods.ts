/** Every public method rejects surplus arguments. */
import { DeviceBuffer } from "./backend/metal/buffer.ts";
import { MetalContext } from "./backend/metal/context.ts";
import { MetalKernel } from "./backend/metal/kernel.ts";
import { refuseSurplus } from "./core/surplus.ts";
import * as data from "./data/index.ts";
import * as diffusion from "./diffusion/index.ts";
import * as distributed from "./distributed/index.ts";
import * as distributions from "./distributions/index.ts";
import * as io from "./io/index.ts";
import * as nn from "./nn/index.ts";
import { Function as Differentiable, FunctionContext } from "./ops/gradient/function.ts";
import * as optim from "./optim/index.ts";
import * as quant from "./quant/index.ts";
import { Generator } from "./random/generator.ts";
import { Tensor } from "./tensor/tensor.ts";
import * as text from "./text/index.ts";

refuseSurplus([
  ...[data, diffusion, distributed, distributions, io, nn, optim, quant, text].flatMap((namespace) =>
    Object.values<unknown>(namespace),
  ),
  ...[DeviceBuffer, Differentiable, FunctionContext, Generator, MetalContext, MetalKernel, Tensor],
]);
