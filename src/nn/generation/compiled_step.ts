/**
 * Decoding steps as programs: one native call per token. `compile` is in a layer above this one, and registers itself.
 */
import { OrchardError } from "../../core/errors.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { KeyValueCache } from "../cache/cache.ts";
import type { LanguageModel } from "../models/language_model.ts";

type Step = (tokens: Tensor) => Tensor;

/** Compiles a function. @param state what the function changes in place */
type Compile = (step: Step, state: readonly [LanguageModel, KeyValueCache]) => Step & { reset(): void };

let compile: Compile | null = null;

/** @internal Sets how steps are compiled. */
export function setStepCompiler(given: Compile): void {
  compile = given;
}

/** Texts with fewer tokens do not repay the recording of two tokens. */
const LEAST_TOKENS = 16;

/** @internal Feeds single tokens to a model with a cache. Results have the bits of plain calls. */
export class CompiledStep implements Disposable {
  private step: ReturnType<Compile> | null;

  private constructor(
    private readonly model: LanguageModel,
    private readonly cache: KeyValueCache,
  ) {
    this.step = compile!((tokens) => this.plain(tokens), [model, cache]);
  }

  /** Returns null if a text of this many tokens is generated sooner without a program. */
  static of(model: LanguageModel, cache: KeyValueCache, tokens: number): CompiledStep | null {
    return compile && tokens >= LEAST_TOKENS ? new CompiledStep(model, cache) : null;
  }

  /** Returns the logits after a token, [1, 1, vocabularySize]. */
  logitsAfter(tokens: Tensor): Tensor {
    if (!this.step) return this.plain(tokens);
    const { position } = this.cache;
    try {
      return this.step(tokens);
    } catch (error) {
      if (!(error instanceof OrchardError) || error.name !== "CompileError") throw error;
      this[Symbol.dispose](); // this model's step can't be compiled
      this.cache.truncate(position);
      return this.plain(tokens);
    }
  }

  private plain(tokens: Tensor): Tensor {
    return this.model.forward(tokens, { cache: this.cache, lastOnly: true });
  }

  [Symbol.dispose](): void {
    this.step?.reset();
    this.step = null;
  }
}
