/** Decoding steps as programs: one native call per token. */
import { getBackend } from "../../backend/policy.ts";
import { OrchardError } from "../../core/errors.ts";
import { type Compiled, compiler } from "../../observe/compiler.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { KeyValueCache } from "../cache/cache.ts";
import type { LanguageModel } from "../models/language_model.ts";

/** Texts with fewer tokens do not repay the recording of two tokens. */
const LEAST_TOKENS = 16;

/** @internal Feeds single tokens to a model with a cache. Results are bit-identical to plain calls. */
export class CompiledStep implements Disposable {
  private step: Compiled<[Tensor], Tensor> | null;

  private constructor(
    private readonly model: LanguageModel,
    private readonly cache: KeyValueCache,
  ) {
    // on metal, compiling generated kernels may take longer than a text
    const fuse = getBackend() !== "metal";
    this.step = compiler()!((tokens: Tensor) => this.plain(tokens), [model, cache], fuse);
  }

  /** Returns null if a text of this many tokens is generated sooner without a program. */
  static of(model: LanguageModel, cache: KeyValueCache, tokens: number): CompiledStep | null {
    return compiler() && tokens >= LEAST_TOKENS ? new CompiledStep(model, cache) : null;
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
