/** Compares classifiers that are not BERT's with `transformers`: scripts/fixtures/models/heads.py. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { io, nn, noGrad, tensor } from "../../../../src/index.ts";
import { Encoder } from "../../../../src/nn/models/encoder/encoder.ts";
import { type ArchitectureName, architectures, rowOf } from "../../../../src/nn/models/loading/architectures.ts";
import { testFolder } from "../../../support/folder.ts";
import { errorOf, writeHashed } from "../loading/oracle.ts";

interface Case {
  readonly config: {
    readonly model_type: string;
    readonly architectures: readonly [string];
    readonly id2label?: Readonly<Record<string, string>>;
  };
  readonly shapes: Readonly<Record<string, number[]>>;
}

const CLOSE = 1e-5;
const fixture = join(packageRoot, "test", "fixtures", "encoders", "heads");
const { cases }: { cases: readonly Case[] } = JSON.parse(readFileSync(`${fixture}.json`, "utf8"));
const answers = io.loadSafetensors(`${fixture}.safetensors`);
const lengths = Array.from(answers["lengths"].dataSync(), Number);
const folder = testFolder("heads");
const named = cases.map((own, at) => [`${at} ${own.config.architectures[0]}`, at, own] as const);

async function load(name: string, { config, shapes }: Case, changes: object = {}): Promise<nn.Encoder> {
  const path = folder.file(name);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, "config.json"), JSON.stringify({ ...config, ...changes }));
  const { model_type: type } = config;
  await writeHashed(path, shapes, type in architectures && rowOf(type as ArchitectureName).normsFromOne === true);
  return (await nn.loadModel<nn.Encoder>(path, { dtype: "float32" })).model;
}

/** The results of a model: of texts, or of the tokens 0 and 5. */
function logitsOf(model: nn.Encoder, { config }: Case) {
  const tokens = answers[config.model_type.endsWith("bart") ? "texts" : "tokens"];
  const logits = noGrad(() => model.forward(tokens, { lengths }));
  return logits.rank === 2 ? logits : logits.indexSelect(1, tensor([0, 5], { dtype: "int32" }));
}

describe.each(named)("%s", (_, at, own) => {
  test("logits equal those of transformers", async () => {
    const model = await load(`${at}`, own);
    const want = answers[`${at}.logits`];
    const got = logitsOf(model, own);
    expect(got.shape).toEqual(want.shape);
    expect(errorOf(got, want)).toBeLessThan(CLOSE);
    expect(model.task).toBe(want.rank === 2 ? "classify" : "tag");
  });

  test("every parameter has Hugging Face's name of its weight", async () => {
    const model = await load(`${at}.names`, own);
    const paths = [...model.namedParameters()].map(([path]) => path.replace(/\.\w+$/, ""));
    const names = model.huggingFaceNames();
    expect(paths.filter((path) => !names.has(path) && !path.includes(".experts."))).toEqual([]);
  });
});

const find = (className: string): Case => cases.find(({ config }) => config.architectures[0] === className)!;

test("labels have the names of the config", async () => {
  for (const name of ["LlamaForSequenceClassification", "MBartForSequenceClassification"]) {
    const own = find(name);
    const model = await load(`labels.${name}`, own);
    expect<unknown>(model.labels?.names).toEqual(Object.values(own.config.id2label ?? {}));
    expect(model).toBeInstanceOf(Encoder);
  }
  const discriminator = await load("discriminator", find("ElectraForPreTraining"));
  expect(discriminator.labels?.names).toEqual(["O", "replaced"]);
});

test("other classes of BART are rejected", () =>
  expect(
    load("answers", find("BartForSequenceClassification"), { architectures: ["BartForQuestionAnswering"] }),
  ).rejects.toThrow("expected a model that generates texts"));
