/** The public surface of the package, and nothing else. */

export { enableGrad, isGradEnabled, noGrad } from "./autograd/modes.ts";
export { AutogradError } from "./autograd/node.ts";
export type { BackwardOptions } from "./autograd/pass.ts";
export { AnomalyError, detectAnomaly } from "./backend/anomaly.ts";
export { type Codepath, codepaths, resetCodepaths } from "./backend/codepaths.ts";
export { formatCodepaths } from "./backend/format_codepaths.ts";
export { type BindingValue, type BufferSlice, type OutputRequest, output } from "./backend/metal/arguments.ts";
export { DeviceBuffer, type DeviceBufferOptions, type NumericArray } from "./backend/metal/buffer.ts";
export {
  type DeviceInfo,
  type FaultKind,
  MetalContext,
  type MetalContextOptions,
  metalContext,
} from "./backend/metal/context.ts";
export type { Size } from "./backend/metal/encode.ts";
export {
  type ApplyOptions,
  type KernelResult,
  MetalKernel,
  type MetalKernelOptions,
  metalKernel,
  type RunOptions,
} from "./backend/metal/kernel.ts";
export type {
  GridShape,
  KernelBackward,
  KernelTensors,
  KernelValue,
  KernelValues,
  ResultShape,
  ShapesOf,
  Sizes,
} from "./backend/metal/kernel_options.ts";
export { type KernelArguments, kernelOverride } from "./backend/metal/kernel_override.ts";
export type { KernelRules, KernelVmapInfo } from "./backend/metal/kernel_rules.ts";
export type { MetalStatistics } from "./backend/metal/layouts.ts";
export type { LibrarySource, PipelineBinding, PipelineInfo } from "./backend/metal/pipeline.ts";
export type { Counters, DispatchCounters, Finding, MetalReport } from "./backend/metal/report.ts";
export type { ScalarValue } from "./backend/metal/scalars.ts";
export { type BackendName, backendNames } from "./backend/names.ts";
export {
  type KernelOverride,
  type OverrideBody,
  type OverrideCall,
  type OverrideHandle,
  type OverrideOptions,
  override,
  overrides,
  type RouteHandle,
  route,
  routes,
  withOverride,
  withRoute,
} from "./backend/overrides.ts";
export { getBackend, isStrict, setBackend, setStrict, withBackend, withStrict } from "./backend/policy.ts";
export { type CompiledFunction, type CompileOptions, compile } from "./compile/compile.ts";
export { CompileError } from "./compile/errors.ts";
export { type LoadedProgram, loadProgram } from "./compile/saved/load.ts";
export type { CompileState } from "./compile/state.ts";
export * from "./core/errors.ts";
export * as data from "./data/index.ts";
export * as diffusion from "./diffusion/index.ts";
export * as distributed from "./distributed/index.ts";
export * as distributions from "./distributions/index.ts";
export * as fft from "./fft/index.ts";
export * as linalg from "./linalg/index.ts";
export * as metrics from "./metrics/index.ts";
export * as nn from "./nn/index.ts";
export * as io from "./onnx/namespace.ts";
export { type AutocastDType, autocast } from "./ops/autocast/autocast.ts";
export { backward, detach, type GradOptions, grad, valueAndGrad } from "./ops/gradient/backward.ts";
export { Function, type FunctionClass, FunctionContext, type VmapInfo } from "./ops/gradient/function.ts";
export { GradcheckError, type GradcheckOptions, gradcheck } from "./ops/gradient/gradcheck.ts";
export * from "./ops/index.ts";
export * as optim from "./optim/index.ts";
export * from "./quant/index.ts";
export { Generator, type GeneratorState, manualSeed } from "./random/generator.ts";
export * as signal from "./signal/index.ts";
export type {
  Complex,
  ComplexDType,
  DataOf,
  DType,
  ElementOf,
  FloatDType,
  IntegerDType,
  RealOf,
} from "./tensor/dtype.ts";
export type { TensorJson } from "./tensor/json.ts";
export type { AllocationHint } from "./tensor/memory.ts";
export type { Scalar } from "./tensor/promotion.ts";
export { setMemoryFraction, setMemoryLimit } from "./tensor/reserve.ts";
export type { Shape, TensorShape } from "./tensor/shape.ts";
export { type ArrayOfRank, type GradientHook, type NestedArray, type SizesOfRank, Tensor } from "./tensor/tensor.ts";
export { keep, tidy } from "./tensor/tidy.ts";
export { type LiveMemory, type MemoryUsage, memory, resetPeakMemory } from "./tensor/usage.ts";
export * as text from "./text/index.ts";
export * as transforms from "./transforms/index.ts";

import "./backend/presence.ts";
import "./ops/methods.ts";
import "./checked_methods.ts";
import "./checked_namespaces.ts";
