// Teaches an ONNX model two new kinds of files: trains the last layer of Google's magika on generated chess games and
// knitting patterns, and shows that it still knows the other kinds.
//
//   bun examples/fine_tune_onnx.ts [steps]
//
// The model is from the package magika on PyPI.
import { join } from "node:path";
import { manualSeed, nllLoss, optim, rand, type Tensor, tensor, tidy } from "../src/index.ts";
import { kindOf, loadKinds, tokensOf } from "./file_kind_model.ts";
import { numbersOf } from "./picture.ts";

const [steps = "40"] = process.argv.slice(2);
manualSeed(3);
const kinds = await loadKinds();
/** The new kinds replace two rare ones. */
const places = { "chess game": kinds.labels.indexOf("ace"), "knitting pattern": kinds.labels.indexOf("hlp") } as const;

const pick = (list: readonly string[]): string => list[Math.floor(rand([1]).item() * list.length)];
const many = (count: number, make: () => string): string => Array.from({ length: count }, make).join("");

const made: Readonly<Record<keyof typeof places, () => string>> = {
  "chess game": () =>
    `[Event "${pick(["Club", "Open", "Final"])}"]\n[Result "${pick(["1-0", "0-1", "1/2-1/2"])}"]\n\n` +
    many(30, () => `${pick(["e4", "d4", "Nf3", "O-O", "Bxc6", "Qh5+", "Rad1"])} ${pick(["e5", "c5", "Nc6", "d6"])} `),
  "knitting pattern": () =>
    `Cast on ${pick(["40", "64", "80", "96"])} stitches.\n` +
    many(25, () => `Row ${pick(["1", "2", "3", "4"])}: *k${pick(["1", "2", "3"])}, p${pick(["1", "2"])}; repeat.\n`),
};

/** Returns files of both kinds, and their places among the classes. */
function batch(size: number): { readonly bytes: Tensor; readonly classes: Tensor<"int64"> } {
  const nameAt = (at: number): keyof typeof made => (at % 2 === 0 ? "chess game" : "knitting pattern");
  const names = Array.from({ length: size }, (_, at) => nameAt(at));
  const tokens = names.flatMap((name) => tokensOf(new TextEncoder().encode(made[name]()), kinds.settings));
  const classes = tensor(
    names.map((name) => BigInt(places[name])),
    { dtype: "int64" },
  );
  return { bytes: tensor(tokens, { shape: [size, tokens.length / size], dtype: "int32" }), classes };
}

const { model } = kinds;
const isHead = (weight: Tensor): boolean => weight.shape.at(-1) === kinds.labels.length;
for (const weight of model.parameters()) weight.requiresGrad = isHead(weight);
const optimizer = new optim.AdamW(model.parameters(), { lr: 2e-3, weightDecay: 0 });

for (let step = 1; step <= Number(steps); step++)
  tidy(() => {
    const { bytes, classes } = batch(8);
    const [probabilities] = Object.values(model.forward({ bytes })) as [Tensor<"float32">];
    const loss = nllLoss(probabilities.add(1e-9).log(), classes);
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    if (step === 1 || step % 10 === 0) console.log(`step ${step}: loss ${loss.item().toFixed(3)}`);
  });

const { bytes, classes } = batch(20);
const [probabilities] = Object.values(await model.run({ bytes })) as [Tensor];
const expected = Array.from(classes.dataSync(), Number);
const right = numbersOf(probabilities.argmax(1)).filter((at, index) => Number(at) === expected[index]).length;
console.log(`new files: ${right} of 20 right`);
const root = join(import.meta.dir, "..");
for (const file of ["README.md", "package.json", "examples/fine_tune_onnx.ts", "LICENSE"]) {
  const { kind, probability } = await kindOf(await Bun.file(join(root, file)).bytes(), kinds);
  console.log(`${file}: ${kind} (${probability.toFixed(3)})`);
}
