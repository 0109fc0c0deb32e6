/** Bun's own matchers compare tensors by their contents, without any import. */
import { describe, expect, test } from "bun:test";
import { deepStrictEqual } from "node:assert";
import { packageRoot } from "../../src/core/paths.ts";
import { mul, nn, noGrad, sum, tensor, zeros } from "../../src/index.ts";
import { bunWords } from "../support/program.ts";

const [one, other] = [() => tensor([1, 2, 3]), () => tensor([1, 2, 4])];
const { NaN: nan } = Number;
/** For each way of comparing, whether it treats two values as equal. */
const areEqual = (a: unknown, b: unknown): boolean[] => [
  passes(() => expect(a).toEqual(b)),
  passes(() => expect(a).toStrictEqual(b)),
  passes(() => expect([a]).toContainEqual(b)),
  Bun.deepEquals(a, b),
  passes(() => deepStrictEqual(a, b)),
];
const [all, none] = [new Array(5).fill(true), new Array(5).fill(false)];

function passes(body: () => void): boolean {
  try {
    body();
    return true;
  } catch {
    return false;
  }
}

describe("tensors are equal by dtype, shape and elements", () => {
  test("other properties do not affect equality", () => {
    expect(areEqual(one(), one())).toEqual(all);
    expect(areEqual(one(), other())).toEqual(none);
    expect(areEqual(one(), tensor([1n, 2n, 3n]))).toEqual(none);
    expect(areEqual(one(), one().to("float64"))).toEqual(none);
    expect(areEqual(one(), tensor([[1, 2, 3]]))).toEqual(none);
    expect(areEqual(zeros([0, 2]), zeros([0, 3]))).toEqual(none);
    expect(areEqual(tensor([nan]), tensor([nan]))).toEqual(all);
    expect(areEqual(tensor([[1, 2]]).T, tensor([[1], [2]]))).toEqual(all);
  });

  test("a history, a gradient and a retained gradient make no difference", () => {
    const w = tensor([1, 2, 3], { requiresGrad: true });
    expect(areEqual(w, one())).toEqual(all);
    sum(mul(w, w)).backward();
    expect(areEqual(w.grad, tensor([2, 4, 6]))).toEqual(all);
    expect(areEqual(w.grad, tensor([2, 4, 7]))).toEqual(none);
    expect(areEqual(mul(w, 1), one())).toEqual(all);
  });

  test("tensors are compared inside lists, maps, objects and instances of classes", () => {
    for (const holding of [
      (x: unknown) => [x],
      (x: unknown) => ({ deep: [{ x }] }),
      (x: unknown) => new Map([["x", x]]),
      (x: unknown) => Object.assign(new (class Own {})(), { x }),
    ]) {
      expect(holding(one())).toEqual(holding(one()));
      expect(holding(one())).not.toEqual(holding(other()));
    }
    const layer = (value: number) => {
      const own = new nn.Linear(2, 1, { bias: false });
      noGrad(() => own.weight.fill_(value));
      return own;
    };
    expect(layer(1)).toEqual(layer(1));
    expect(layer(1)).not.toEqual(layer(2));
  });

  test("no other value equals a tensor", () => {
    for (const value of [[1, 2, 3], new Float32Array([1, 2, 3]), null, undefined, {}, 1])
      expect(areEqual(one(), value)).toEqual(none);
    const gone = one();
    gone.dispose();
    expect(gone).not.toEqual(one());
    expect(gone).toEqual(gone);
  });

  test("a failure shows both tensors", () => {
    let message = "";
    try {
      expect(one()).toEqual(other());
    } catch (error) {
      message = Bun.stripANSI((error as Error).message);
    }
    expect(message).toContain('"dtype": "float32"');
    expect(message).toMatch(/-\s+4,\n\+\s+3,/);
  });

  test("tensors are compared with their current elements, also after a change in place", () => {
    const x = one();
    expect(x).toEqual(one());
    x.add_(1);
    expect(x).toEqual(tensor([2, 3, 4]));
    expect(x).not.toEqual(one());
  });
});

test("the suite has the matchers of tensors everywhere", () => {
  expect(one()).toHaveShape([3]);
  expect(one()).not.toBeCloseToTensor(other());
});

test("outside of tests, a tensor's only enumerable property prevents cloning", () => {
  const program = `import { tensor } from "./src/index.ts";
    console.log(JSON.stringify([Object.keys(tensor([1])), { ...tensor([1]) }]));`;
  for (const [NODE_ENV, printed] of [
    ["production", '[["notCloneable"],{}]'],
    [
      "test",
      '[["notCloneable","compared","contents"],' +
        '{"compared":"by contents","contents":{"dtype":"float32","shape":[1],"elements":[1]}}]',
    ],
  ]) {
    const { stdout } = Bun.spawnSync([...bunWords, "-e", program], {
      cwd: packageRoot,
      env: { ...process.env, NODE_ENV },
    });
    expect(stdout.toString().trim()).toBe(printed);
  }
});
