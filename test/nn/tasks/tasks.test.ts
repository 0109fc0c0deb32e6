/** Compares the results of functions for texts with the pipelines of `transformers`. */
import { expect, test } from "bun:test";
import { nn, type Tensor, tensor } from "../../../src/index.ts";
import { Random } from "../../ops/samples.ts";
import { testFolder } from "../../support/folder.ts";
import { seed } from "../../support/some.ts";
import { folderOf, load, type Pipelines, pipelines } from "./models.ts";

const folder = testFolder("tasks");
const random = new Random(seed);
const CLOSE = 5;
const modelFor = async (task: Exclude<keyof Pipelines, "tokenizer">): Promise<nn.Encoder> =>
  load(await folderOf(folder.file(task), task));
const rounded = <T extends { readonly score: number }>(own: T): T => ({
  ...own,
  score: expect.closeTo(own.score, CLOSE),
});

test.each(["classify", "regress"] as const)("classify has the same results as transformers: %s", async (task) => {
  const model = await modelFor(task);
  const { cases } = pipelines[task];
  const texts = cases.map(({ text, pair }) => (pair === null ? text : ([text, pair] as const)));
  const got = await nn.classify(model, texts, { batch: random.integer(1, 4) });
  expect(got).toEqual(cases.map(({ labels }) => labels.map(rounded)));
});

test("tag has the same results as transformers", async () => {
  const model = await modelFor("tag");
  const { cases } = pipelines.tag;
  const got = await nn.tag(
    model,
    cases.map(({ text }) => text),
    { batch: 3 },
  );
  const wanted = cases.map(({ text, found }) =>
    found.map((own) => rounded({ ...own, text: text.slice(own.start, own.end) })),
  );
  expect(got).toEqual(wanted);
  const [tokens] = await nn.tag(model, [cases[0].text], { aggregate: "none" });
  expect(tokens.every(({ label }) => /^[BI]-/.test(label))).toBe(true);
});

test("tokens with drawn labels are joined to parts, and tokens without a label are left out", async () => {
  const model = await modelFor("tag");
  const names = ["O", "B-A", "I-A", "B-B", "I-B"];
  model.labels = { ...model.labels!, names };
  const { text } = pipelines.tag.cases.toSorted((a, b) => b.text.length - a.text.length)[0];
  for (let round = 0; round < 40; round++) {
    let labels: number[] = [];
    model.forward = (inputs: Tensor): Tensor => {
      labels = Array.from({ length: inputs.shape[1] }, () => random.integer(round % 2, names.length - 1));
      return tensor([labels.map((label) => names.map((_, at) => (at === label ? 9 : 0)))]);
    };
    const [parts] = await nn.tag(model, [text]);
    const [kinds, tokens] = [labels.map((label) => names[label].slice(-1)), labels.map((label) => names[label])];
    const wanted: string[] = [];
    for (
      let at = 1;
      at < labels.length - 1;
      at++ // the row lacks [CLS] and [SEP]
    )
      if (at === 1 || kinds[at] !== kinds[at - 1] || tokens[at].startsWith("B-")) wanted.push(kinds[at]);
    expect(parts.map(({ label }) => label)).toEqual(wanted.filter((kind) => kind !== "O"));
  }
});

test("answer has the same results as transformers", async () => {
  const model = await modelFor("answer");
  for (const { question, context, answers } of pipelines.answer.cases) {
    const got = await nn.answer(model, question, context, { topK: 3, maxAnswerTokens: 4 });
    expect(got).toEqual(answers.map((own) => rounded({ ...own, text: context.slice(own.start, own.end) })));
  }
});

test("fillMask has the same results as transformers", async () => {
  const model = await modelFor("fillMask");
  for (const { text, masks } of pipelines.fillMask.cases) {
    const got = await nn.fillMask(model, text, { topK: 3 });
    expect(got.map((own) => own.map(({ token, score }) => ({ token, score })))).toEqual(
      masks.map((own) => own.map(rounded)),
    );
  }
  await expect(nn.fillMask(model, "nothing to fill")).rejects.toThrow("write it as [MASK]");
});

test("rerank sorts by the probability of the pair", async () => {
  const model = await modelFor("regress");
  const { cases } = pipelines.regress;
  const query = cases[0].text;
  const texts = cases.map(({ text }) => text);
  const pairs = texts.map((text) => [query, text] as const);
  const scores = (await nn.classify(model, pairs)).map(([own]) => own.score);
  const order = scores.map((_, index) => index).sort((a, b) => scores[b] - scores[a]);
  const got = await nn.rerank(model, query, texts, { batch: 2 });
  expect(got).toEqual(order.map((index) => rounded({ index, score: scores[index] })));
  expect(await nn.rerank(model, query, texts, { topK: 2 })).toHaveLength(2);
  const plain = { sentence_transformers: { activation_fn: "torch.nn.modules.linear.Identity" } };
  const other = await load(await folderOf(folder.file("identity"), "regress", plain));
  const [best] = await nn.rerank(other, query, texts);
  expect(1 / (1 + Math.exp(-best.score))).toBeCloseTo(got[0].score, CLOSE);
  const long = `${"the ".repeat(200)}first`;
  expect(await nn.rerank(model, query, [long, `${long} more`])).toHaveLength(2); // truncates long texts
});

test("models for other tasks, without a tokenizer, and texts that are too long are errors", async () => {
  const model = await modelFor("classify");
  const [code, text] = ["otherTask", "first"];
  await expect(nn.tag(model, [text])).rejects.toMatchObject({ code });
  await expect(nn.answer(model, text, text)).rejects.toMatchObject({ code });
  await expect(nn.fillMask(model, text)).rejects.toMatchObject({ code });
  await expect(nn.rerank(model, text, [text])).rejects.toMatchObject({ code: "notOneResult" });
  await expect(nn.classify(model, ["the ".repeat(300)])).rejects.toMatchObject({ code: "sequenceTooLong" });
  const bare = await load(await folderOf(folder.file("bare"), "classify", { isBare: true }));
  await expect(nn.classify(bare, [text])).rejects.toMatchObject({ code });
  model.tokenizer = undefined;
  await expect(nn.classify(model, [text])).rejects.toMatchObject({ code: "noTokenizer" });
});
