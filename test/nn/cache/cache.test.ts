/** Cached keys and values give the same results as recomputing them; a full cache drops the oldest token. */
import { describe, expect, test } from "bun:test";
import {
  amax,
  arange,
  Generator,
  logicalAnd,
  memory,
  nn,
  noGrad,
  randn,
  ShapeError,
  type Tensor,
  tidy,
  withBackend,
} from "../../../src/index.ts";
import { collectGarbage } from "../../support/garbage.ts";
import { attention, weightsOf } from "../composed.ts";

const options = () => ({ dtype: "float64", generator: new Generator(3) }) as const;
const shape = { heads: 4, keyValueHeads: 2, causal: true } as const;
const make = () => new nn.MultiHeadAttention({ ...options(), width: 8, ...shape, rotary: { base: 100 } }).eval();
const input = (tokens: number, batch = 2) =>
  randn([batch, tokens, 8], { dtype: "float64", generator: new Generator(1) });

const distance = (a: Tensor, b: Tensor): number => Number(amax(a.sub(b).abs()).item());

/** The results of consecutive parts of the input, joined again. */
function inParts(
  layer: nn.MultiHeadAttention,
  x: Tensor,
  sizes: readonly number[],
  cache: nn.AttentionCache,
): Tensor[] {
  let start = 0;
  return sizes.map((size) => {
    const part = x.narrow(1, start, size);
    start += size;
    return noGrad(() => layer.forward(part, { cache }));
  });
}

describe.each(["cpu", "reference"] as const)(
  "AttentionCache on %s gives the results of all tokens at once",
  (backend) => {
    test.each([
      { name: "token by token", sizes: [1, 1, 1, 1, 1, 1, 1] },
      { name: "a prompt, then tokens", sizes: [4, 1, 1, 1] },
      { name: "in chunks", sizes: [2, 3, 2] },
    ])("$name: tokens in parts have the same results as all tokens at once", ({ sizes }) =>
      withBackend(backend, () => {
        const [layer, x] = [make(), input(7)];
        const whole = layer.forward(x);
        using cache = new nn.AttentionCache(7);
        let start = 0;
        for (const part of inParts(layer, x, sizes, cache)) {
          expect(distance(part, whole.narrow(1, start, part.shape[1]))).toBeLessThan(1e-14);
          start += part.shape[1];
        }
        expect([cache.position, cache.length]).toEqual([7, 7]);
      }),
    );

    test("a full cache is a sliding window", () =>
      withBackend(backend, () => {
        const [tokens, limit] = [11, 4];
        const [layer, x] = [make(), input(tokens, 1)];
        const place = arange(0, tokens);
        const behind = place.unsqueeze(1).sub(place) as Tensor;
        const mask = logicalAnd(behind.ge(0), behind.lt(limit));
        const wanted = attention(x, weightsOf(layer.namedParameters()), { ...shape, base: 100, mask });
        using cache = new nn.AttentionCache(limit);
        const parts = inParts(layer, x, [3, ...new Array<number>(tokens - 3).fill(1)], cache);
        expect(distance(parts[0], wanted.narrow(1, 0, 3))).toBeLessThan(1e-14);
        for (const [at, part] of parts.slice(1).entries())
          expect(distance(part, wanted.narrow(1, at + 3, 1))).toBeLessThan(1e-14);
        expect([cache.position, cache.length]).toEqual([tokens, limit]);
      }));
  },
);

describe("AttentionCache", () => {
  const keysAndValues = (tokens: number, value = 1) => {
    const keys = randn([1, 2, tokens, 4]).mul(0).add(value) as Tensor;
    return { keys, values: keys.neg() };
  };

  test("AttentionCache grows in steps, up to its limit, and keeps its contents", () => {
    using cache = new nn.AttentionCache(200);
    const rooms: number[] = [];
    for (let at = 0; at < 200; at++)
      tidy(() => {
        const { keys, values } = cache.append(keysAndValues(1, at + 1));
        rooms.push(keys.strides[1] / 4);
        expect(keys.shape).toEqual([1, 2, at + 1, 4]);
        const written = Array.from({ length: at + 1 }, (_, place) => place + 1);
        expect(keys.select(3, 3).select(1, 1).select(0, 0).toArray()).toEqual(written);
        expect(values.neg().select(3, 0).select(1, 0).select(0, 0).toArray()).toEqual(written);
      });
    expect([...new Set(rooms)]).toEqual([64, 128, 200]);
  });

  test("AttentionCache rejects several tokens beyond its limit, and accepts one", () => {
    using cache = new nn.AttentionCache(4);
    cache.append(keysAndValues(3));
    expect(() => cache.append(keysAndValues(2))).toThrow(ShapeError);
    expect(() => cache.append(keysAndValues(2))).toThrow("expected at most 1 tokens, got 2");
    expect(cache.append(keysAndValues(1)).keys.shape[2]).toBe(4);
    expect(cache.append(keysAndValues(1)).keys.shape[2]).toBe(4);
    expect(cache.position).toBe(5);
  });

  test("reset() keeps the memory, dispose() releases it", async () => {
    await collectGarbage(); // garbage of other tests is collected now, not between two readings
    const before = memory().host.liveBytes;
    const cache = new nn.AttentionCache(64 * 1024);
    const fill = () => tidy(() => void cache.append({ keys: randn([1, 2, 4096, 4]), values: randn([1, 2, 4096, 4]) }));
    fill();
    const held = memory().host.liveBytes;
    expect(held - before).toBe(2 * 4 * 2 * 4096 * 4);
    cache.reset();
    fill();
    expect([memory().host.liveBytes, cache.position]).toEqual([held, 4096]);
    cache.dispose();
    expect([memory().host.liveBytes, cache.position]).toEqual([before, 0]);
  });

  test("a limit of 0 is rejected", () => {
    expect(() => new nn.AttentionCache(0)).toThrow("expected limit to be a whole number of at least 1, got 0");
    expect(() => new nn.KeyValueCache(0, 3)).toThrow(
      "expected layers to be a whole number of at least 1 and at most 65536, got 0",
    );
  });
});
