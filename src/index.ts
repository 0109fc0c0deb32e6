export { type BindingValue, type BufferSlice, type OutputRequest, output } from "./backend/metal/arguments.ts";
export { DeviceBuffer, type DeviceBufferOptions, type NumericArray } from "./backend/metal/buffer.ts";
export {
  type DeviceInfo,
  type FaultKind,
  MetalContext,
  type MetalContextOptions,
  metalContext,
} from "./backend/metal/context.ts";
export {
  type KernelResult,
  MetalKernel,
  type MetalKernelOptions,
  metalKernel,
  type RunOptions,
  type Size,
} from "./backend/metal/kernel.ts";
export type { MetalStatistics } from "./backend/metal/layouts.ts";
export type { LibrarySource, PipelineBinding, PipelineInfo } from "./backend/metal/pipeline.ts";
export type { Counters, DispatchCounters, Finding, MetalReport } from "./backend/metal/report.ts";
export type { ScalarValue } from "./backend/metal/scalars.ts";
export * from "./errors.ts";
