/** Queries, keys and values with quantized weights as one operation. */
import { describe, expect, test } from "bun:test";
import { codepaths, Generator, nn, noGrad, randn, type Tensor } from "../../../src/index.ts";
import { DecoderAttention } from "../../../src/nn/models/decoder/attention.ts";
import { LoraLinear } from "../../../src/nn/quantized/lora_linear.ts";
import { on } from "../../quant/fixtures.ts";
import { numbers } from "../../quant/products.ts";

const sizes = { heads: 4, keyValueHeads: 2, headWidth: 16, queryKeyValueBias: true, outputBias: false };
const x = randn([2, 3, 64], { generator: new Generator(9) });

const made = (exclude: readonly string[] = [], precision: "exact" | "fast" = "exact"): DecoderAttention => {
  const layer = new DecoderAttention({ width: 64, eps: 1e-5, attention: sizes, generator: new Generator(5) });
  nn.quantizeModel(layer, { format: "q8_0", exclude: [...exclude] });
  for (const own of layer.modules()) if (own instanceof nn.QuantizedLinear) own.precision = precision;
  return layer.eval();
};

const callsOf = (start: string) =>
  codepaths()
    .filter(({ operation, reason }) => operation.startsWith("quantizedProjections") && reason.startsWith(start))
    .reduce((sum, { calls }) => sum + calls, 0);

/** The fused calls, the separate calls with their reason, and the result. */
function run(layer: DecoderAttention, reason = "three layers", own = x) {
  const before = [callsOf("preferred"), callsOf(reason)] as const;
  const values = numbers(on("cpu", () => noGrad(() => layer.forward(own))));
  return { together: callsOf("preferred") - before[0], apart: callsOf(reason) - before[1], values };
}

describe("queries, keys and values are computed in one operation", () => {
  test.each(["exact", "fast"] as const)("%s: one operation gives the same bits as three", (precision) => {
    const layer = made([], precision);
    const own = run(layer);
    expect([own.together, own.apart]).toEqual([1, 0]);
    const seen: Tensor[] = [];
    const remove = layer.key!.registerForwardHook((_, _inputs, output) => void seen.push(output as Tensor));
    const hooked = run(layer, "three layers: key has hooks");
    expect([hooked.together, hooked.apart, seen.length]).toEqual([0, 1, 1]);
    expect(hooked.values).toEqual(own.values);
    remove();
    expect(run(layer).together).toBe(1);
  });

  test("separate products are used if the layers differ, and codepaths() says why", () => {
    const fast = made();
    (fast.value as nn.QuantizedLinear).precision = "fast";
    expect(run(fast, "three layers: query is exact, key is exact, value is fast").apart).toBe(1);
    expect(run(made(["key"]), "three layers: key is a Linear").apart).toBe(1);
    const adapted = made();
    Object.assign(adapted, {
      query: new LoraLinear(adapted.query as nn.QuantizedLinear, { rank: 1, scale: 1, dropout: 0 }),
    });
    expect(run(adapted, "three layers: query is a LoraLinear").apart).toBe(1);
    const plain = new DecoderAttention({ width: 64, eps: 1e-5, attention: sizes });
    expect(run(plain)).toMatchObject({ together: 0, apart: 0 });
  });

  test.each(["x", "a bias"] as const)(
    "if %s needs a gradient, separate products compute it for all three layers",
    (which) => {
      const [own, layer] = [x.clone(), made()];
      for (const parameter of layer.parameters()) parameter.requiresGrad = false;
      const asked = which === "x" ? own : layer.key!.bias!;
      asked.requiresGrad = true;
      const reason = "three layers: x or a bias needs a gradient";
      const before = callsOf(reason);
      on("cpu", () => layer.forward(own).sum().backward());
      expect(callsOf(reason) - before).toBe(1);
      expect(asked.grad!.shape).toEqual([...asked.shape]);
    },
  );
});
