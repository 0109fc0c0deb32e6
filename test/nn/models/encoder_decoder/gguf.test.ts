/** Compares GGUF files of T5 with folders of the same models: scripts/fixtures/models/t5_gguf.py. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { io, nn, noGrad, type Tensor } from "../../../../src/index.ts";
import { testFolder } from "../../../support/folder.ts";
import { errorOf } from "../encoder/oracle.ts";
import { answers, lengths, load, type Model, models, writeModel } from "./oracle.ts";

interface File {
  readonly index: number;
  readonly config: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, string | number>>;
  /** The shape of an untied head. */
  readonly head: Model["weights"];
  /** The name of each tensor in the checkpoint. */
  readonly tensors: Readonly<Record<string, string>>;
}
const path = join(packageRoot, "test", "fixtures", "encoder_decoders", "gguf.json");
const files: readonly File[] = JSON.parse(readFileSync(path, "utf8"));
const folder = testFolder("t5_gguf");
const [tokens, targets] = ["tokens", "targets"].map((name) => answers[name]) as [Tensor, Tensor];

test.each(files.map((file) => [`${file.index} ${file.config["model_type"]}`, file] as const))(
  "%s: logits equal those of the folder",
  async (name, file) => {
    const model = models[file.index];
    const own = folder.file(name.replace(" ", "."));
    const expected = await load(
      await writeModel(own, { ...model, weights: { ...model.weights, ...file.head } }, file.config),
    );
    const state = io.loadSafetensors(join(own, "model.safetensors"));
    const named = Object.entries(file.tensors).map(([key, from]) => [key, state[from]] as const);
    await io.saveGguf(`${own}.gguf`, Object.fromEntries(named), { metadata: file.metadata });
    const loaded = await nn.loadModel<nn.EncoderDecoder>(`${own}.gguf`, { dtype: "float32" });
    expect(loaded.source).toBe("gguf");
    noGrad(() => {
      const logits = [expected, loaded.model].map((each) => {
        using encoded = each.encode(tokens, { lengths });
        return each.decode(targets, encoded);
      });
      expect(errorOf(logits[1], logits[0])).toBeLessThan(1e-6);
    });
    const prompts = [
      [5, 6, 7, 2],
      [9, 2],
    ];
    const options = { maxTokens: 6, numBeams: 2 };
    const [want, got] = await Promise.all(
      [expected, loaded.model].map((each) => nn.generateBatch(each, prompts, options)),
    );
    expect(got.map((rows) => rows.map((row) => row.tokens))).toEqual(want.map((rows) => rows.map((row) => row.tokens)));
  },
);

test.each(files.map((file) => [`${file.index} ${file.config["model_type"]}`, file] as const))(
  "%s: a file of the encoder alone gives the states of the whole model's encoder",
  async (name, file) => {
    const model = models[file.index];
    const own = folder.file(`${name.replace(" ", ".")}.alone`);
    const whole = await load(
      await writeModel(own, { ...model, weights: { ...model.weights, ...file.head } }, file.config),
    );
    const state = io.loadSafetensors(join(own, "model.safetensors"));
    const isOfEncoder = (key: string) => key.startsWith("enc.") || key === "token_embd.weight";
    const named = Object.entries(file.tensors).flatMap(([key, from]) => (isOfEncoder(key) ? [[key, state[from]]] : []));
    const renamed = Object.entries(file.metadata).map(([key, value]) => [key.replace(/^t5\./, "t5encoder."), value]);
    const metadata = { ...Object.fromEntries(renamed), "general.architecture": "t5encoder" };
    await io.saveGguf(`${own}.gguf`, Object.fromEntries(named) as Record<string, Tensor>, { metadata });
    const { model: alone } = await nn.loadModel<nn.Encoder>(`${own}.gguf`, { dtype: "float32" });
    const [got, expected] = noGrad(() =>
      [alone, whole.encoder].map((each) => each.hiddenStates(tokens, { lengths }).narrow(1, 0, Math.min(...lengths))),
    );
    expect(errorOf(got, expected)).toBeLessThan(1e-6);
    expect((await nn.embed(alone, [[5, 6, 7]])).shape).toEqual([1, expected.shape[2]]);
  },
);
