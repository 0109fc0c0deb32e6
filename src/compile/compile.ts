import { gradEnabled } from "../autograd/modes.ts";
import { searchedFor } from "../backend/anomaly.ts";
import type { BackendName } from "../backend/names.ts";
import { isAnyInUse } from "../backend/overrides.ts";
import { getBackend, isStrict } from "../backend/policy.ts";
import { whyUnavailable } from "../backend/registry.ts";
import { environment } from "../core/environment.ts";
import { aFunction, aNumber, aPath, flag } from "../core/kinds.ts";
import { count } from "../core/options.ts";
import { type Kind, named, operand, parameters } from "../core/parameters.ts";
import { currentCapture } from "../observe/capture.ts";
import { setCompiler } from "../observe/compiler.ts";
import { observer } from "../observe/observer.ts";
import { detach } from "../ops/gradient/backward.ts";
import { Generator } from "../random/generator.ts";
import { batchLevels } from "../tensor/batched.ts";
import { Tensor } from "../tensor/tensor.ts";
import { cpuSeam } from "./cpu_replay.ts";
import { explain } from "./explain.ts";
import { metalSeam } from "./metal/replay.ts";
import { RUN_PLAINLY, type Seam, unsaved } from "./replay.ts";
import { type CompileState, State } from "./state.ts";
import { isPlain, type Layout, layoutOf, leavesOf, treeOf, valueIn } from "./tree.ts";
import { Variant } from "./variant.ts";

/** Options of {@link compile}. */
export interface CompileOptions {
  /**
   * The modules, optimizers and tensors that the function changes in place, in arrays at any depth. Default: none.
   */
  state?: CompileState | undefined;
  /** The maximum number of programs, for different layouts of arguments. Default 8; the oldest is dropped. */
  variants?: number | undefined;
  /**
   * Whether to fuse operations. On cpu, a chain of elementwise operations runs on blocks that fit the L1 cache, or on
   * parts of a matrix product's result; on metal, a generated kernel computes a chain, a product with the operations
   * that follow, or independent products. Default true.
   */
  fuse?: boolean | undefined;
  /**
   * Whether to fuse operations even if this may change the last bits of results. On cpu, sums and other reductions of
   * rows of 2 to 64 elements are fused; on metal, a generated kernel may compute a product and a sum with one rounding.
   * Requires `fuse`. Default false.
   */
  fast?: boolean | undefined;
  /**
   * A folder to which the Metal Shading Language of generated kernels is written, one file per kernel. It is created if
   * necessary. Only programs on metal have generated kernels. Default: none is written.
   */
  dump?: string | undefined;
}

/** A function from {@link compile}. */
export interface CompiledFunction<Arguments extends readonly unknown[], Result> {
  (...values: Arguments): Result;
  /** The number of programs. */
  readonly variants: number;
  /** Returns the programs as text: calls, fusions, bytes and memory, and why calls ran plainly. */
  explain(): string;
  /**
   * Writes the program of the last call to a file, with the state and the constants. `loadProgram` runs it without this
   * code, with bitwise the same results as this function.
   *
   * @throws {CompileError} `unsaved` if there is no program yet, or it calls an optimizer, sets gradients or uses a
   * cache. @throws {FileError}
   */
  save(path: string): Promise<void>;
  /** Forgets the programs and frees their memory. The next call records again. */
  reset(): void;
}

const anyState: Kind<CompileState> = {
  expected: "modules, optimizers and tensors",
  parse: (value) => (typeof value === "object" && value !== null ? (value as CompileState) : undefined),
};

const compileParameters = parameters("compile", {
  fn: operand(aFunction<(...values: never[]) => unknown>()),
  state: named(anyState),
  variants: named(aNumber(count), 8),
  fuse: named(flag, true),
  fast: named(flag, false),
  dump: named(aPath),
});

const saveParameters = parameters("CompiledFunction.save", { path: operand(aPath) });

/**
 * Returns a function that does the same as `fn`, and after two equal calls replays its operations as one native call.
 * Results have the same bits as those of `fn`, random numbers included. They require no gradient.
 *
 * @param fn a synchronous function of tensors. Its arguments and results may be arrays and plain objects with tensors.
 * Other arguments, such as numbers, select a program by their value
 * @param options `state`: everything that `fn` changes in place
 *
 * @example
 * const step = compile(
 *   (x: Tensor, y: Tensor) => {
 *     const loss = crossEntropy(model.forward(x), y);
 *     loss.backward();
 *     optimizer.step();
 *     optimizer.zeroGrad();
 *     return loss;
 *   },
 *   { state: [model, optimizer] },
 * );
 *
 * @throws {ArgumentError} for state of another kind, and for an optimizer that can't be compiled. Calls throw a
 * {@link CompileError} if `fn` can't be recorded: `read`, `writes`, `notState`, `random`, `seeded`, `async`, `changes`,
 * `diverged`. @throws {FileError} if `dump` can't be written.
 */
export function compile<Arguments extends readonly unknown[], Result>(
  fn: (...values: Arguments) => Result,
  options?: CompileOptions,
): CompiledFunction<Arguments, Result>;
export function compile(...values: unknown[]): CompiledFunction<readonly unknown[], unknown> {
  const { fn, state = [], ...options } = compileParameters(values);
  const compiled = new Compiled(fn, new State(state), options);
  const call = (...given: readonly unknown[]): unknown => compiled.call(given);
  Object.defineProperty(call, "variants", { get: () => compiled.variants.length });
  return Object.assign(call, {
    explain: () => explain(compiled.variants, compiled.reasons),
    save: (...given: unknown[]) => compiled.save(given),
    reset: () => compiled.reset(),
  }) as CompiledFunction<readonly unknown[], unknown>;
}

/** Whether calls of the cpu dylib are recorded for `check:sanitize`, which cannot replay compiled programs. */
const isRecorded = environment("ORCHARD_CPU_RECORD") !== undefined;

setCompiler((fn, state, fuse) => compile(fn, { state: state as CompileState, variants: 1, fuse }));

class Compiled {
  /** The variants, the most recently used one first. */
  variants: Variant[] = [];
  /** Why calls ran plainly or were recorded, with the number of calls. */
  readonly reasons = new Map<string, number>();

  constructor(
    private readonly fn: (...values: never[]) => unknown,
    private readonly state: State,
    private readonly options: {
      readonly variants: number;
      readonly fuse: boolean;
      readonly fast: boolean;
      readonly dump?: string | undefined;
    },
  ) {}

  call(values: readonly unknown[]): unknown {
    if (currentCapture() !== null) return this.fn(...(values as never[])); // this call is part of another recording
    const why = this.whyPlain(values);
    if (why !== undefined) return this.runPlainly(values, why);
    const modes = (gradEnabled.get() ? 1 : 0) | (isStrict() ? 2 : 0) | (getBackend() === "metal" ? 4 : 0);
    const variant = this.variantFor(values, modes);
    if (typeof variant === "string") return this.runPlainly(values, variant);
    const result = variant.run(values);
    return result === RUN_PLAINLY ? this.runPlainly(values, variant.whyPlain) : result;
  }

  private whyPlain(values: readonly unknown[]): string | undefined {
    const backend = getBackend();
    if (!(backend in seams)) return `the backend is ${backend}`;
    if (isAnyInUse()) return "an override or a route is active";
    if (searchedFor.get()) return "anomalies are searched for";
    if (observer) return "operations are recorded";
    if (isRecorded) return "calls are recorded";
    if (whyUnavailable(backend) !== undefined) return `the ${backend} backend is not available`;
    if (batchLevels.get().length > 0) return "vmap is active";
    for (let at = 0; at < values.length; at++) if (needsGradient(values[at])) return "an argument requires a gradient";
    return this.whyUncompared(values) ?? this.state.unsupported();
  }

  /**
   * Returns why arguments can't be compared with recorded ones: an object such as a Map or a class's instance may have
   * other contents in each call.
   */
  private whyUncompared(values: unknown): string | undefined {
    if (typeof values !== "object" || values === null || Tensor.isTensor(values)) return undefined;
    if (!Array.isArray(values) && !isPlain(values)) {
      const isKnown = values instanceof Generator || this.state.has(values);
      return isKnown ? undefined : `an argument is an object of ${values.constructor?.name ?? "a class"}`;
    }
    if (Array.isArray(values)) {
      for (let at = 0; at < values.length; at++) {
        const why = this.whyUncompared(values[at]);
        if (why !== undefined) return why;
      }
      return undefined;
    }
    for (const key in values) {
      const why = this.whyUncompared((values as Record<string, unknown>)[key]);
      if (why !== undefined) return why;
    }
    return undefined;
  }

  /** Returns the variant for these arguments, and creates it if necessary. Returns a reason if they cannot have one. */
  private variantFor(values: readonly unknown[], modes: number): Variant | string {
    const [latest] = this.variants;
    let why = latest?.mismatch(values, modes);
    if (latest && why === undefined) return latest;
    for (const variant of this.variants.slice(1)) {
      if (variant.mismatch(values, modes) !== undefined) continue;
      this.variants = [variant, ...this.variants.filter((each) => each !== variant)];
      return variant;
    }
    why = `recorded: ${why ?? "first call"}`;
    const inputs = treeOf(values, layoutOf);
    const seam = seams[getBackend()]!;
    const unusable = leavesOf(treeOf(values, (tensor) => tensor)).some((tensor) => !isUsable(tensor, seam));
    if (unusable) return "an argument is in the memory of another device, or disposed";
    this.count(why);
    const made = new Variant(this.fn, this.state, {
      inputs,
      modes,
      seam,
      isFused: this.options.fuse,
      isFast: this.options.fast,
      dump: this.options.dump,
    });
    made.mismatch(values, modes); // mismatch also finds the tensors in values
    for (const dropped of this.variants.slice(this.options.variants - 1)) dropped.dispose();
    this.variants = [made, ...this.variants].slice(0, this.options.variants);
    return made;
  }

  private runPlainly(values: readonly unknown[], why: string): unknown {
    this.count(`plain: ${why}`);
    const result = this.fn(...(values as never[]));
    if (why === "an argument requires a gradient" || result instanceof Promise) return result;
    const tree = treeOf(result, (tensor) => tensor);
    return valueIn(tree, (tensor) => (tensor.edge === null ? tensor : detach(tensor)));
  }

  private count(why: string): void {
    this.reasons.set(why, (this.reasons.get(why) ?? 0) + 1);
  }

  async save(values: readonly unknown[]): Promise<void> {
    const { path } = saveParameters(values);
    const latest = this.variants[0];
    if (!latest?.program) throw unsaved("it is not recorded yet; call it until explain() counts a replay");
    await latest.save(path);
  }

  reset(): void {
    for (const variant of this.variants) variant.dispose();
    this.variants = [];
  }
}

/** The backends whose calls can be recorded. */
const seams: Readonly<Partial<Record<BackendName, Seam>>> = { cpu: cpuSeam, metal: metalSeam };

const isUsable = (tensor: Tensor, seam: Seam): boolean =>
  !tensor.isDisposed && !tensor.storage.isClosed && seam.accepts(tensor);

const needsGradient = (value: unknown): boolean =>
  typeof value === "object" &&
  value !== null &&
  leavesOf(treeOf(value, (tensor) => tensor)).some(({ requiresGrad }) => requiresGrad);

export type { Layout };
