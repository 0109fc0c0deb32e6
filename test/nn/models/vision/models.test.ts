/** Compares image encoders with `transformers`: results and gradients, for drawn configs and sizes of images. */
import { describe, expect, test } from "bun:test";
import { backward, indexSelect, mul, nn, noGrad, sum, type Tensor, tensor } from "../../../../src/index.ts";
import { placesIn } from "../../../../src/nn/models/loading/vision/names.ts";
import { testFolder } from "../../../support/folder.ts";
import { errorOf, weight } from "../weights.ts";
import { answerOf, type Case, cases, tokens, writeModel } from "./oracle.ts";

const CLOSE = 2e-5;
const folder = testFolder("vision");
type Model = nn.VisionEncoder | nn.DualEncoder | nn.ObjectDetector;

const kept = (states: Tensor): Tensor => {
  const count = states.shape[1];
  return indexSelect(states, 1, tensor([0, Math.floor(count / 2), count - 1], { dtype: "int32" }));
};

/** Computes a result by its name in the fixture. */
function outputOf(model: Model, output: string, pixels: Tensor): Tensor {
  if ("boxHead" in model) return model.forward(pixels)[output as "logits" | "boxes"];
  if (output === "pooled") return model.embedImages(pixels);
  if ("text" in model) return output === "texts" ? model.embedTexts(tokens) : model.forward(pixels, tokens);
  if (output === "logits") return model.forward(pixels);
  return kept(model.hiddenStates(pixels, output === "states" ? {} : { blocks: -1 }));
}

const load = async (path: string) => (await nn.loadModel<Model>(path, { dtype: "float32" })).model;
const pixelsOf = ({ image }: Case): Tensor => weight("pixels", [2, 3, ...image]);

describe.each(cases)("vision models: %s", (name, own) => {
  test(`${own.config.architectures[0]} equals transformers with images of ${own.image.join(" x ")}`, async () => {
    const path = folder.file(name);
    await writeModel(path, name, own);
    const model = await load(path);
    const pixels = pixelsOf(own);
    const isGradient = (output: string) => output.startsWith("gradient.");
    const wrong = own.outputs.flatMap((output): string[] => {
      if (isGradient(output)) return [];
      const error = errorOf(
        noGrad(() => outputOf(model, output, pixels)),
        answerOf(name, output),
      );
      return error < CLOSE ? [] : [`${output}: off by ${error}`];
    });
    expect(wrong).toEqual([]);
    expect(gradientErrors(model, name, own)).toEqual([]);
    const shapesOf = (of: Model) => [...of.namedParameters()].map(([key, { shape }]) => [key, shape]);
    expect(shapesOf(nn.createModel<Model>(own.config))).toEqual(shapesOf(model));
  });
});

test.each(cases.filter(([name]) => name.endsWith(".0")))(
  "%s in float16 gives nearly the same results",
  async (name, own) => {
    const path = folder.file(`half ${name}`);
    await writeModel(path, name, own);
    const { model } = await nn.loadModel<Model>(path, { dtype: "float16" });
    const [output] = own.outputs as [string];
    const got = noGrad(() => outputOf(model, output, pixelsOf(own).to("float16")));
    expect(got.dtype).toBe("float16");
    expect(errorOf(got, answerOf(name, output))).toBeLessThan(0.02);
  },
);

function gradientErrors(model: Model, name: string, own: Case): string[] {
  const first = outputOf(model, own.outputs[0], pixelsOf(own));
  backward(sum(mul(first, weight("cotangent", first.shape))));
  const gradients = new Map(
    placesIn(model).flatMap(({ path, names }) => {
      const { weight: of } = model.namedModules().get(path) as unknown as { weight: Tensor };
      return names.flatMap((each) => [each, `${each}.weight`].map((key) => [key, of.grad] as const));
    }),
  );
  return own.outputs.flatMap((output): string[] => {
    const key = /^gradient\.(.*)/.exec(output)?.[1];
    if (key === undefined) return [];
    const error = errorOf(gradients.get(key)!, answerOf(name, output));
    return error < CLOSE ? [] : [`${output}: off by ${error}`];
  });
}
