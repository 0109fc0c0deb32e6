/** Compares encoder-decoder models with `transformers`: hidden states, logits, loss and gradients of drawn models. */
import { describe, expect, test } from "bun:test";
import { backward, noGrad, type Tensor, tensor } from "../../../../src/index.ts";
import { testFolder } from "../../../support/folder.ts";
import { errorOf, weight } from "../encoder/oracle.ts";
import { answers, lengths, load, type Model, models, writeModel } from "./oracle.ts";

/** Sums in another order differ by far less. */
const CLOSE = 1e-5;
const folder = testFolder("encoder_decoders");
const [tokens, targets, labels] = ["tokens", "targets", "labels"].map((name) => answers[name]) as [
  Tensor,
  Tensor,
  Tensor,
];
const titled = models.map((model, index) => [`${index} ${model.config["model_type"]}`, model, index] as const);

describe.each(titled)("encoder-decoder models: %s", (_, described, index) => {
  const loaded = writeModel(folder.file(`${index}`), described).then(load);

  test("hidden states and logits equal those of transformers", async () => {
    const model = await loaded;
    noGrad(() => {
      using encoded = model.encode(tokens, { lengths });
      const states = encoded.states.indexSelect(1, tensor([0, 4], { dtype: "int32" }));
      expect(errorOf(states, answers[`${index}.states`])).toBeLessThan(CLOSE);
      expect(errorOf(model.decode(targets, encoded), answers[`${index}.logits`])).toBeLessThan(CLOSE);
    });
  });

  test("a cache gives the same logits, one token at a time", async () => {
    const model = await loaded;
    noGrad(() => {
      using encoded = model.encode(tokens, { lengths });
      using cache = model.newCache();
      const wanted = answers[`${index}.logits`];
      for (let at = 0; at < targets.shape[1]; at++) {
        const logits = model.decode(targets.narrow(1, at, 1), encoded, { cache });
        // M2M100 gives padding a different position, on which later tokens depend only with a cache
        const rows = wanted.narrow(1, at, 1).narrow(0, 0, 1);
        expect(errorOf(logits.narrow(0, 0, 1), rows)).toBeLessThan(CLOSE);
      }
    });
  });

  test("loss and gradients equal those of transformers", async () => {
    const model = await loaded;
    const loss = model.loss(tokens, labels, { lengths });
    expect(loss.item()).toBeCloseTo(described.loss, 4);
    backward(loss);
    expect(wrongGradients(model, described)).toEqual([]);
    model.zeroGrad();
  });
});

/** Names of parameters whose gradients differ from PyTorch's. */
function wrongGradients(model: Awaited<ReturnType<typeof load>>, { weights }: Model): string[] {
  const names = model.huggingFaceNames();
  const found: string[] = [];
  const seen = new Set<string>();
  for (const [path, parameter] of model.namedParameters()) {
    const [, layer, end] = /^(.*)\.([^.]+)$/.exec(path)!;
    const name = `${names.get(layer)}.${end}`;
    const [, probe, sum] = weights[name] ?? [];
    if (probe === undefined || sum === undefined) continue;
    seen.add(name);
    const gradient = parameter.grad!.dataSync() as Float32Array;
    const probes = weight(`${name}.probe`, parameter.shape).dataSync() as Float32Array;
    const got = gradient.reduce((total, value, at) => total + value * probes[at], 0);
    const size = gradient.reduce((total, value) => total + Math.abs(value), 0);
    if (Math.abs(got - probe) > 1e-4 * sum + 1e-6 || Math.abs(size - sum) > 1e-4 * sum + 1e-6) found.push(name);
  }
  const missing = Object.entries(weights).filter(([name, [, probe]]) => probe !== undefined && !seen.has(name));
  return [...found, ...missing.map(([name]) => `no gradient of ${name}`)];
}
