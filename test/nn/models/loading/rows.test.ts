/**
 * Drawn models of every architecture compared with `transformers`: logits, the following tokens with and without a
 * cache, batches of texts of two lengths, and saved states. See scripts/fixtures/models/drawn.py. To test other draws:
 * `bun run fixtures --seed 7 drawn`.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { Generator, io, nn, noGrad, randn, type Tensor, tensor, withBackend } from "../../../../src/index.ts";
import { Decoder } from "../../../../src/nn/models/decoder/decoder.ts";
import { type ArchitectureName, architectures, rowOf } from "../../../../src/nn/models/loading/architectures.ts";
import { encoderArchitectures } from "../../../../src/nn/models/loading/encoder/architectures.ts";
import { encoderDecoderRows } from "../../../../src/nn/models/loading/encoder_decoder/architectures.ts";
import { testFolder } from "../../../support/folder.ts";
import { repeats } from "../../../support/repeats.ts";
import { errorOf, greedy, numbers, writeHashed } from "./oracle.ts";
import { answers, drawn } from "./rows_of.ts";

const folder = testFolder("rows");

test("docs/models.md lists every architecture", () => {
  const page = readFileSync(join(packageRoot, "docs", "models.md"), "utf8");
  const [, table] = /## Architectures\n(.*?)\n## /s.exec(page)!;
  const listed = [
    ...table.matchAll(/^\| (?:`(?:gemma3|gemma3n|gemma4|kimi_k2|llama4|qwen3_5|qwen3_5_moe)`, )?`(\w+)` \|/gm),
  ].map(([, name]) => name);
  expect(listed.slice(1).toSorted()).toEqual(Object.keys(architectures).toSorted());
});

test("README.md counts the architectures", () => {
  const count = (table: object) => Object.keys(table).length;
  const rows = (page: string) =>
    [...readFileSync(join(packageRoot, "docs", page), "utf8").matchAll(/^\| (`.*?) \|/gm)].flatMap(([, names]) =>
      [...names.matchAll(/`[a-z][\w.-]*`/g)].map(([name]) => name),
    );
  // SAM 2's two types are one architecture; the image encoders of CLIP, SigLIP and InternVL are parts of others
  const parts = /_vision_model|_vision`|sam2_video/;
  const [, images] = /## Architectures\n(.*?)\n## /s.exec(
    readFileSync(join(packageRoot, "docs", "vision.md"), "utf8"),
  )!;
  const types = [...images.matchAll(/^\| (`[^|]*)\|/gm)].flatMap(([, names]) => names.match(/`\w+`/g)!);
  const ofImages = types.filter((name) => name !== "`model_type`" && !parts.test(name)).length;
  const readme = readFileSync(join(packageRoot, "README.md"), "utf8");
  for (const text of [
    `[${count(architectures)} architectures of language models](docs/models.md)`,
    `${count(encoderArchitectures)} of [text encoders](docs/encoders.md)`,
    `${ofImages} for [images](docs/vision.md)`,
    `${count(encoderDecoderRows)} for [translation](docs/translation.md)`,
    `${rows("vision-chat.md").filter((name) => !["`model_type`"].includes(name)).length} for [chats about images]`,
  ])
    expect(readme).toContain(text);
});

const CLOSE = 1e-5;
const TOKENS = 12;
/** The number of tokens that are generated after a text, with a cache and without, and after each text of a batch. */
const following = repeats({ usual: 16, all: 64 });
const followingUncached = repeats({ usual: 6, all: 64 }); // the time is quadratic
const followingInBatch = repeats({ usual: 6, all: 16 });

/** Architectures with models whose layers all have windows, so that a dynamic rotation applies to none. */
const differsBeyondContext: readonly ArchitectureName[] = ["olmo3"];

const models = Object.entries(drawn).flatMap(([name, all]) =>
  all.map((own, index) => [`${name} ${index}`, name as ArchitectureName, own] as const),
);

test("every architecture has drawn models", () =>
  expect(Object.keys(drawn).toSorted()).toEqual(Object.keys(architectures).toSorted()));

describe.each(models)("a drawn model: %s", (title, name, { key, seed, short, config, shapes }) => {
  const answer = (part: string): Tensor => answers[`${key}.${part}`];
  const path = folder.file(title.replace(" ", "."));
  // properties that depend little on the config are tested only with the first one
  const isFirst = title.endsWith(" 0");
  let model: Decoder;
  beforeAll(async () => {
    mkdirSync(path);
    writeFileSync(join(path, "config.json"), JSON.stringify(config));
    await writeHashed(path, shapes, rowOf(name).normsFromOne === true, `${seed}.`);
    ({ model } = await nn.loadModel(path, { dtype: "float32" }));
  });

  test.each(isFirst ? (["cpu", "reference"] as const) : (["cpu"] as const))(
    "logits equal those of transformers on %s",
    (backend) => {
      const logits = withBackend(backend, () => noGrad(() => model.forward(answer("tokens"))));
      expect(errorOf(logits, answer("logits"))).toBeLessThan(CLOSE);
    },
  );

  test("the logits of a single token equal those of transformers", () => {
    const logits = noGrad(() => model.forward(answer("tokens").narrow(1, 0, 1)));
    expect(errorOf(logits, answer("firstLogits"))).toBeLessThan(CLOSE);
  });

  const ways = [
    [following, true],
    [followingUncached, false],
  ] as const;
  test.each(ways.filter(([, useCache]) => useCache || isFirst))(
    "%d tokens equal those of transformers, with a cache: %p",
    (count, useCache) => {
      // where a rotation depends on the length, cached keys keep an earlier one; 24 tokens cross the context
      const uncached = answers[`${key}.uncached`] as Tensor | undefined;
      const some = uncached && !differsBeyondContext.includes(name) ? Math.max(count, 24) : count;
      const want = numbers((!useCache && uncached) || answer("greedy")).slice(0, some);
      expect(greedy(model, answer("tokens"), some, { useCache })).toEqual([want]);
    },
  );

  test("a text in parts has the same logits", () => {
    using cache = model.newCache();
    let first = 0;
    for (const count of [7, 1, 4]) {
      const got = noGrad(() => model.forward(answer("tokens").narrow(1, first, count), { cache }));
      expect(errorOf(got, answer("logits").narrow(0, first, count))).toBeLessThan(CLOSE);
      first += count;
    }
  });

  test("a batch with padding has the same logits as its rows", () => {
    const padding = [0, TOKENS - short];
    const logits = noGrad(() => model.forward(answer("paddedTokens"), { padding }));
    expect(errorOf(logits.narrow(0, 1, 1).narrow(1, TOKENS - short, short), answer("paddedLogits"))).toBeLessThan(
      CLOSE,
    );
    const want = [0, 1].map((row) => numbers(answer("padded").narrow(0, row, 1)).slice(0, followingInBatch));
    for (const useCache of isFirst ? [true, false] : [true])
      expect(greedy(model, answer("paddedTokens"), followingInBatch, { padding, useCache })).toEqual(want);
  });

  if (!isFirst) return;

  test("a cache in float16 gives nearly the same logits", () => {
    using cache = model.newCache({ format: "float16" });
    const part = (first: number, count: number) =>
      noGrad(() => model.forward(answer("tokens").narrow(1, first, count), { cache }));
    part(0, 10);
    for (const at of [10, 11]) expect(errorOf(part(at, 1), answer("logits").narrow(0, at, 1))).toBeLessThan(0.05);
  });

  test("texts of two lengths at once have the tokens of each alone", async () => {
    const texts = [0, 1].map((row) => numbers(answer("paddedTokens").narrow(0, row, 1)).slice(row * (TOKENS - short)));
    const batcher = new nn.Batcher(model);
    const streams = texts.map((text) => batcher.submit(text, { maxTokens: 16, temperature: 0 }));
    const got = await Promise.all(streams.map((stream) => Array.fromAsync(stream, ({ token }) => token)));
    expect(got).toEqual([0, 1].map((row) => numbers(answer("padded").narrow(0, row, 1))));
  });

  test("a saved state loads with the same logits", async () => {
    const file = join(path, "state.safetensors");
    await io.saveSafetensors(file, model.stateDict());
    const copy = new Decoder(model.description).eval();
    copy.loadStateDict(io.loadSafetensors(file));
    const [got, want] = [copy, model].map((each) => noGrad(() => each.forward(answer("tokens"))));
    expect(errorOf(got, want)).toBe(0);
  });
});

test.each([[["mlp", "full_attention", "linear_attention"]], [["moe", "linear_attention", "mlp", "full_attention"]]])(
  "a cache counts tokens if the first block has neither attention nor a state: %p",
  async (kinds) => {
    const model = nn
      .createModel<Decoder>({
        model_type: "nemotron_h",
        layers_block_type: kinds,
        vocab_size: 31,
        hidden_size: 16,
        intermediate_size: 20,
        num_attention_heads: 2,
        num_key_value_heads: 1,
        head_dim: 8,
        mamba_num_heads: 4,
        mamba_head_dim: 4,
        ssm_state_size: 4,
        n_groups: 2,
        n_routed_experts: 4,
        moe_intermediate_size: 12,
        moe_shared_expert_intermediate_size: 12,
        max_position_embeddings: 64,
      })
      .eval();
    const generator = new Generator(5);
    noGrad(() => {
      for (const own of model.parameters()) own.copy_(randn([...own.shape], { generator }).mul(0.5) as Tensor);
    });
    const rows = [
      [1, 2, 3, 4, 5],
      [0, 0, 6, 7, 8],
    ];
    const [cached, whole] = [true, false].map((useCache) =>
      greedy(model, tensor(rows, { dtype: "int32" }), 12, { padding: [0, 2], useCache }),
    );
    expect(cached).toEqual(whole);
  },
);
