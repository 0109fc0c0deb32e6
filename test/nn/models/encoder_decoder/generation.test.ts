/** Compares generation with `transformers`: greedy decoding and beam search with drawn options. */
import { describe, expect, test } from "bun:test";
import { nn, type Tensor } from "../../../../src/index.ts";
import { testFolder } from "../../../support/folder.ts";
import { answers, lengths, load, models, type Options, writeModel } from "./oracle.ts";

const folder = testFolder("generations");
const given = answers["tokens"] as Tensor;
const texts = lengths.map((length, row) => Array.from(given.select(0, row).dataSync(), Number).slice(0, length));

/** Converts options of transformers' `generate`. */
function optionsOf(options: Options): nn.GenerateBatchOptions {
  const read = <T>(name: string) => options[name] as T | undefined;
  return {
    numBeams: read("num_beams"),
    numReturnSequences: read("num_return_sequences"),
    maxTokens: read("max_new_tokens"),
    minTokens: read("min_new_tokens"),
    lengthPenalty: read("length_penalty"),
    earlyStopping: read("early_stopping"),
    noRepeatNgramSize: read("no_repeat_ngram_size"),
    repetitionPenalty: read("repetition_penalty"),
    forcedBeginToken: read("forced_bos_token_id"),
    forcedEndToken: read("forced_eos_token_id"),
    badWords: read("bad_words_ids"),
    stopTokens: [read<number | number[]>("eos_token_id")!].flat(),
  };
}

describe.each(models.map((model, index) => [`${index} ${model.config["model_type"]}`, model] as const))(
  "generation by encoder-decoder models: %s",
  (name, described) => {
    test("tokens and scores equal those of transformers", async () => {
      const model = await load(await writeModel(folder.file(name), described));
      model.generation = {};
      for (const { options, tokens, scores } of described.generations) {
        const results = (await nn.generateBatch(model, texts, optionsOf(options))).flat();
        expect([options, results.map((result) => result.tokens)]).toEqual([options, tokens as number[][]]);
        for (const [at, score] of (scores ?? []).entries()) expect(results[at].score).toBeCloseTo(score, 3);
      }
    });
  },
);
