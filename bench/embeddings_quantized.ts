// The error of quantized weights on a small benchmark, with a model of sentence-transformers:
// `bun bench/embeddings_quantized.ts FOLDER`. examples/sentences.ts downloads all-MiniLM-L6-v2 to
// build/all-MiniLM-L6-v2.
//
// 36 sentences have six topics. For each format, the table has the largest and the mean difference of the cosines of
// all pairs from those in float32, and the share of sentences whose nearest other sentence has the same topic.
import { matmul, nn, setBackend } from "../src/index.ts";
import { table } from "./support/measure.ts";

const topics: readonly (readonly string[])[] = [
  [
    "A walk every morning strengthens the heart.",
    "Eat vegetables and drink water.",
    "Wash your hands often.",

    "Eight hours of sleep repair the body.",
    "Vaccines prevent diseases.",
    "The doctor measured my blood pressure.",
  ],
  [
    "The stock market fell on Monday.",
    "Interest rates remain high.",
    "The company reported record profits.",
    "Loans are expensive this year.",
    "The bank lowered its fees.",
    "Investors sold their shares.",
  ],
  [
    "Our train to the coast leaves at nine.",
    "The museum is closed on Tuesdays.",
    "Book the hotel early.",
    "The flight to Rome was delayed.",
    "We rented a car at the airport.",
    "The old town is full of tourists.",
  ],
  [
    "A compiler translates source code.",
    "The program crashed on a null pointer.",
    "Unit tests find mistakes.",
    "This function returns a string.",
    "The loop never ends.",
    "She fixed a bug in the parser.",
  ],
  [
    "The orchestra rehearsed the symphony.",
    "She plays the violin.",
    "The pianist gave a concert.",
    "He composed a song for guitar.",
    "The choir sang in the church.",
    "The drummer keeps the rhythm.",
  ],
  [
    "Rain is expected tonight.",
    "A volcano erupted on the island.",
    "Strong winds hit the coast in winter.",
    "Snow covered the mountains.",
    "The river flooded the valley.",
    "An earthquake shook the region.",
  ],
];
const sentences = topics.flat();
const topicOf = (index: number): number => Math.floor(index / topics[0].length);

async function cosinesOf(folder: string, quantize?: "q8_0" | "q4_0"): Promise<number[][]> {
  const { model } = await nn.loadModel<nn.Encoder>(folder, { quantize });
  using vectors = await nn.embed(model, sentences);
  const values = Array.from(matmul(vectors, vectors.T).dataSync(), Number);
  return sentences.map((_, row) => values.slice(row * sentences.length, (row + 1) * sentences.length));
}

/** Returns the share of sentences whose nearest other sentence has the same topic. */
function agreement(cosines: readonly (readonly number[])[]): number {
  const nearest = cosines.map((row, own) => {
    const others = row.map((cosine, at) => (at === own ? -1 : cosine));
    return others.indexOf(Math.max(...others));
  });
  return nearest.filter((at, own) => topicOf(at) === topicOf(own)).length / sentences.length;
}

const folder = process.argv[2];
if (folder === undefined) throw new Error("bench/embeddings_quantized: expected the folder of a model");
setBackend("cpu");
const exact = await cosinesOf(folder);
const rows = [["float32", "", "", agreement(exact).toFixed(2)]];
for (const format of ["q8_0", "q4_0"] as const) {
  const cosines = await cosinesOf(folder, format);
  const errors = cosines.flatMap((row, at) => row.map((cosine, other) => Math.abs(cosine - exact[at][other])));
  const mean = errors.reduce((sum, error) => sum + error, 0) / errors.length;
  rows.push([format, Math.max(...errors).toFixed(4), mean.toFixed(4), agreement(cosines).toFixed(2)]);
}
console.log(table(["weights", "largest difference", "mean difference", "nearest of the same topic"], rows));
