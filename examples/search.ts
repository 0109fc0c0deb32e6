/**
 * Semantic search: finds the sentences nearest to a question. `bun examples/search.ts FOLDER QUESTION`. The better the
 * model's embeddings, the better the answers.
 */
import { matmul, nn, text } from "../src/index.ts";

const sentences = [
  "The kettle is boiling in the kitchen.",
  "Tensors are arrays of numbers with a shape.",
  "The train to the coast leaves at nine.",
  "A gradient says how a loss changes with each weight.",
];
const [path = "model", question = "How do I learn weights?"] = process.argv.slice(2);
const [tokenizer, { model }] = [text.loadTokenizer(path), await nn.loadModel(path)];
const vectors = await nn.embed(
  model,
  [...sentences, question].map((sentence) => tokenizer.encode(sentence)),
);
const cosines = matmul(vectors, vectors.T).dataSync();
const found = sentences.map((sentence, at) => ({ sentence, cosine: Number(cosines[sentences.length * 5 + at]) }));
for (const { sentence, cosine } of found.toSorted((a, b) => b.cosine - a.cosine))
  console.log(cosine.toFixed(3), sentence);
