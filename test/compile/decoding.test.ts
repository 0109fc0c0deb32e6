/** Compiled steps of language models equal plain steps bit for bit, while caches grow, shrink and slide. */
import { describe, expect, spyOn, test } from "bun:test";
import { forgetFailures } from "../../src/backend/failure.ts";
import { metalContext } from "../../src/backend/metal/context.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import { CompileError, compile, manualSeed, nn, noGrad, type Tensor, tensor, withBackend } from "../../src/index.ts";
import { Random } from "../ops/samples.ts";

const sizes = { vocabularySize: 61, contextLength: 160, layers: 2, heads: 2, width: 64 };
const makers: Readonly<Record<string, () => nn.LanguageModel>> = {
  GPT: () => new nn.GPT(sizes),
  "GPT with tied weights": () => new nn.GPT({ ...sizes, tied: true }),
  Llama: () => new nn.Llama({ ...sizes, heads: 4, headWidth: 32, keyValueHeads: 2 }),
  "Llama with a short context": () => new nn.Llama({ ...sizes, contextLength: 40 }),
};

const hasMetal = !environmentFlag("ORCHARD_SKIP_METAL");
const backends = hasMetal ? (["cpu", "metal"] as const) : (["cpu"] as const);

const tokensOf = (rows: readonly (readonly number[])[]): Tensor => tensor(rows as number[][], { dtype: "int32" });

function modelOf(name: string): nn.LanguageModel {
  manualSeed(7);
  return makers[name]().eval() as nn.LanguageModel;
}

describe("a step with a cache in the state is bit-identical to a plain step", () => {
  const names = { cpu: Object.keys(makers), metal: ["GPT", "Llama with a short context"] };
  const formats = { cpu: [undefined, "float16", "q8_0"], metal: [undefined] } as const;
  const cases = backends.flatMap((backend) =>
    names[backend].flatMap((name) => formats[backend].map((of) => [name, of, backend] as const)),
  );
  test.each(cases)("%s, cache %p, on %s", (name, format, backend) =>
    withBackend(backend, () => {
      const model = modelOf(name);
      const run = (isCompiled: boolean) => {
        using cache = model.newCache({ format });
        const step = (tokens: Tensor) => model.forward(tokens, { cache, lastOnly: true });
        const compiled = compile(step, { state: [model, cache] });
        const random = new Random(3);
        const results: unknown[] = [];
        noGrad(() => {
          step(tokensOf([[1, 2, 3]]));
          for (let at = 0; at < 140; at++) {
            if (at === 100) cache.truncate(cache.position - 30);
            if (at === 120) cache.reset();
            const next = Array.from({ length: random.next() < 0.9 || model.contextLength === 40 ? 1 : 2 }, () =>
              random.integer(0, 60),
            );
            results.push((isCompiled ? compiled : step)(tokensOf([next])).toArray());
          }
        });
        const checks = cache.layers.flatMap((layer) => layer.tensors().map(({ storage }) => storage.checks.length));
        expect(Math.max(0, ...checks)).toBeLessThan(3); // passed checks of indices are forgotten
        return { results, explained: compiled.explain() };
      };
      const [plain, compiled] = [run(false), run(true)];
      expect(compiled.results).toEqual(plain.results);
      const replays = [...compiled.explained.matchAll(/(\d+) replays/g)].reduce(
        (sum, [, count]) => sum + Number(count),
        0,
      );
      expect(replays).toBeGreaterThan(90);
    }),
  );

  test("steps of several sequences at different positions are bit-identical to plain steps", () =>
    withBackend("cpu", () => {
      const model = modelOf("Llama");
      const run = (isCompiled: boolean) => {
        const caches = [model.newCache(), model.newCache(), model.newCache()];
        const batch = new nn.KeyValueCacheBatch(caches);
        const step = (tokens: Tensor) => model.forward(tokens, { cache: batch, lastOnly: true });
        const own = isCompiled ? compile(step, { state: [model, batch] }) : step;
        return noGrad(() => {
          for (const [at, cache] of caches.entries()) model.forward(tokensOf([[1, 2, 3, 4].slice(at)]), { cache });
          return Array.from({ length: 70 }, (_, at) => own(tokensOf([[at % 7], [at % 5], [at % 3]])).toArray());
        });
      };
      expect(run(true)).toEqual(run(false));
    }));

  test.each(backends)("a step beyond the context is the plain error, and no program is saved, on %s", (backend) =>
    withBackend(backend, () => {
      const model = new nn.GPT({ ...sizes, contextLength: 8 }).eval() as nn.GPT;
      const cache = model.newCache();
      const step = compile((tokens: Tensor) => model.forward(tokens, { cache }), { state: [model, cache] });
      return noGrad(async () => {
        for (let at = 0; at < 8; at++) step(tokensOf([[at]]));
        expect(() => step(tokensOf([[8]]))).toThrow("expected at most 8 tokens");
        cache.truncate(4);
        for (let at = 0; at < 3; at++) step(tokensOf([[at]]));
        const saved = await step.save("unwritten.program").catch((error: unknown) => error);
        expect(saved).toBeInstanceOf(CompileError);
        expect((saved as CompileError).message).toContain("continues a cache");
      });
    }),
  );

  test.each(backends)("a cache that is not in the state is refused on %s", (backend) =>
    withBackend(backend, () => {
      const model = modelOf("Llama");
      const cache = model.newCache();
      const step = compile((tokens: Tensor) => model.forward(tokens, { cache }), { state: model });
      noGrad(() => {
        model.forward(tokensOf([[1]]), { cache });
        expect(() => step(tokensOf([[1]]))).toThrow(/changes a tensor that is not in its state in place/);
      });
    }),
  );

  test.if(hasMetal)("steps with a cache in another dtype run plainly on metal", () => {
    const model = modelOf("Llama");
    withBackend("metal", () => {
      const cache = model.newCache({ format: "float16" });
      const step = compile((tokens: Tensor) => model.forward(tokens, { cache }), { state: [model, cache] });
      noGrad(() => {
        for (let at = 0; at < 4; at++) step(tokensOf([[at]]));
      });
      expect(cache.position).toBe(4);
      expect(step.explain()).toContain("plain: keys and values are appended to a cache without a fused step");
    });
  });
});

describe("generated tokens are the same with and without programs", () => {
  const listOf = async (tokens: AsyncIterable<number>) => {
    const found: number[] = [];
    for await (const token of tokens) found.push(token);
    return found;
  };
  test.each(Object.keys(makers))("%s", async (name) => {
    const model = modelOf(name);
    model.train();
    const run = (options: nn.GenerateOptions) =>
      withBackend("cpu", () => listOf(nn.generate(model, [1, 2, 3], { maxTokens: 200, seed: 5, ...options })));
    expect(await run({})).toEqual(await run({ compile: false }));
    expect(await run({ cache: "q8_0" })).toEqual(await run({ compile: false, cache: "q8_0" }));
    expect(model.training).toBe(true);
  });

  test.if(hasMetal)("on metal, also if command buffers fail", async () => {
    const model = modelOf("Llama with a short context");
    const options = { maxTokens: 60, seed: 5, temperature: 0 };
    const run = (of: nn.GenerateOptions, disturb?: (at: number) => void) =>
      withBackend("metal", async () => {
        const found: number[] = [];
        for await (const token of nn.generate(model, [1, 2, 3], { ...options, ...of })) {
          found.push(token);
          disturb?.(found.length);
        }
        return found;
      });
    const plain = await run({ compile: false });
    expect(await run({})).toEqual(plain);
    const warn = spyOn(console, "warn").mockImplementation(() => undefined);
    forgetFailures();
    const failing = await run({}, (at) => {
      if (at === 20) metalContext().injectFault("command-buffer", { count: 1 });
    });
    expect(warn.mock.calls.join()).toContain("the results of a compiled call are lost");
    warn.mockRestore();
    forgetFailures();
    metalContext().report({ clear: true });
    expect(failing).toEqual(plain);
  });
});
