/** The networks: results and gradients of `diffusers` and `transformers`, block by block, with drawn configs. */
import { describe, expect, test } from "bun:test";
import { autoencoderOptions, textEncoderOptions, unetOptions } from "../../src/diffusion/configs.ts";
import { fill } from "../../src/diffusion/files.ts";
import { diffusion, keep, type nn, type Tensor, tensor } from "../../src/index.ts";
import { Settings } from "../../src/nn/models/loading/settings.ts";
import { weight } from "../nn/models/encoder/oracle.ts";
import { testFolder } from "../support/folder.ts";
import { type Digest, distance, readFixture, theirName, writePart } from "./oracle.ts";

interface Case {
  readonly kind: "unet" | "vae" | "text";
  readonly config: Readonly<Record<string, unknown>>;
  readonly x?: number[];
  readonly context?: number[];
  readonly timesteps?: number[];
  readonly tokens?: number[][];
  readonly outputs: Readonly<Record<string, Digest>>;
  readonly gradients: Readonly<Record<string, Digest>>;
}
const cases = readFixture<Case[]>("networks.json");
const { path: folder } = testFolder("networks");

const settings = (config: object) => new Settings(undefined, new Map(Object.entries(config)));
const models = {
  unet: (config: object) => new diffusion.UNet(unetOptions(settings(config))),
  vae: (config: object) => new diffusion.Autoencoder(autoencoderOptions(settings(config))),
  text: (config: object) => new diffusion.TextEncoder(textEncoderOptions(settings(config))),
} as const;

/** Runs a network, and returns its results, those of its blocks, and its inputs, by name. */
function run({ kind, x, context, timesteps, tokens }: Case, model: nn.Module) {
  const found = new Map<string, Tensor>();
  for (const [name, module] of model.namedModules())
    module.registerForwardHook((_, __, result) => {
      if (!Array.isArray(result)) found.set(theirName(name), keep(result as Tensor));
    });
  const input = (name: string, shape: number[] | undefined) => {
    const drawn = weight(name, shape ?? [])
      .mul(3)
      .detach();
    drawn.requiresGrad = true;
    return drawn;
  };
  const inputs = { ...(x && { x: input("x", x) }), ...(context && { context: input("context", context) }) };
  if (kind === "unet")
    found.set("out", (model as diffusion.UNet).forward(inputs.x!, tensor(timesteps!), inputs.context));
  else if (kind === "vae") {
    const vae = model as diffusion.Autoencoder;
    const { mean, logVariance } = vae.encode(inputs.x!);
    found.set("mean", mean).set("logVariance", logVariance).set("out", vae.decode(mean));
  } else found.set("out", (model as diffusion.TextEncoder).forward(tensor(tokens!, { dtype: "int64" })));
  return { found, inputs };
}

describe("results and gradients match those of diffusers", () => {
  test.each(cases.map((each, at) => [`${each.kind} ${at}`, each] as const))(
    "%s matches diffusers",
    async (name, each) => {
      const place = `${folder}/${name}`;
      await writePart(place, "part", { config: each.config, model: models[each.kind](each.config) });
      const model = models[each.kind](each.config);
      await fill(model, `${place}/part`, "float32");
      const { found, inputs } = run(each, model);
      const far: unknown[] = [];
      const check = (key: string, got: Tensor | null | undefined, want: Digest) => {
        const error = got ? distance(key, got, want) : Infinity;
        if (!(error < 1e-4)) far.push([key, error]);
      };
      for (const [key, want] of Object.entries(each.outputs)) check(key, found.get(key), want);
      const out = found.get("out")!;
      out
        .mul(weight("loss", [...out.shape]))
        .sum()
        .backward();
      const parameters = new Map([...model.namedParameters()].map(([key, value]) => [theirName(key), value]));
      for (const [key, want] of Object.entries(each.gradients))
        check(key, (inputs[key as "x"] ?? parameters.get(key))?.grad, want);
      expect(far).toEqual([]);
      expect(Object.keys(each.outputs).length).toBeGreaterThan(1);
    },
  );
});
