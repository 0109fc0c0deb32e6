/** Loads a pretrained encoder with a head for the classes of a task, to train it. */
import { ArgumentError } from "../../../../core/errors.ts";
import { recordIn } from "../../../../core/values.ts";
import { llamaInitialization } from "../../../layers/initialization.ts";
import { Linear } from "../../../layers/linear.ts";
import type { Encoder } from "../../encoder/encoder.ts";
import { readConfig } from "../../hugging_face/config.ts";
import { type LoadedModel, loadOpened } from "../load_model.ts";
import type { Opened } from "../opened.ts";
import { type EncoderName, encoderNameOf, isEncoder } from "./architectures.ts";
import { openEncoder } from "./open.ts";
import { encoderTypeOf } from "./published.ts";

/** The beginning of class names in `architectures`, by `model_type`. */
const classNames: Readonly<Record<EncoderName, string>> = {
  bert: "Bert",
  jina_bert: "JinaBert",
  roberta: "Roberta",
  "xlm-roberta": "XLMRoberta",
  camembert: "Camembert",
  "data2vec-text": "Data2VecText",
  "roberta-prelayernorm": "RobertaPreLayerNorm",
  "xlm-roberta-xl": "XLMRobertaXL",
  "megatron-bert": "MegatronBert",
  ernie: "Ernie",
  distilbert: "DistilBert",
  mpnet: "MPNet",
  albert: "Albert",
  electra: "Electra",
  modernbert: "ModernBert",
  nomic_bert: "NomicBert",
  gte: "Gte",
  jina_embeddings_v3: "JinaEmbeddingsV3",
  deberta: "Deberta",
  "deberta-v2": "DebertaV2",
};

/**
 * Loads an encoder in float32 with a head for classes of texts. Layers of the head that the folder has with the same
 * labels are read; the others have random weights.
 *
 * @param labels the names of the classes
 * @returns the model, and the config of a folder with its weights
 *
 * @throws {ArgumentError} `unknownArchitecture` for models other than encoders, and the errors of `loadModel`.
 */
export async function loadClassifier(path: string, labels: readonly string[]): Promise<LoadedModel<Encoder>> {
  const given = recordIn(readConfig("loadModel", path));
  const { model_type, num_labels: _, ...others } = given;
  const type = encoderTypeOf(model_type);
  if (!isEncoder(type))
    throw new ArgumentError(
      "loadModel",
      "unknownArchitecture",
      `expected the folder of an encoder, an architecture of docs/encoders.md, got ${JSON.stringify(type ?? null)}`,
    );
  const known = labelsOf(given);
  const isSame = labels.length === known.length && labels.every((label) => known.includes(label));
  const names = isSame ? known : labels;
  const config = {
    ...others,
    model_type: type,
    architectures: [`${classNames[encoderNameOf(type, given)]}ForSequenceClassification`],
    id2label: Object.fromEntries(names.entries()),
    problem_type: "single_label_classification",
    label2id: Object.fromEntries(names.map((name, index) => [name, index])),
  };
  using opened = openEncoder(path, type, config, "", false);
  const isFresh = (name: string) => name === "head.output" && !isSame;
  const fresh = opened.places.filter(({ path, names }) => isFresh(path) || (isOfHead(path) && !isIn(opened, names)));
  const kept = opened.places.filter((place) => !fresh.includes(place));
  const storing = { dtype: "float32", quantize: undefined, precision: "exact" } as const;
  const loaded = await loadOpened(path, { ...opened, places: kept }, storing);
  const model = loaded.model as Encoder;
  for (const { path } of fresh) initialize(model, path);
  return { ...loaded, model };
}

const isOfHead = (path: string): boolean => path.startsWith("head.");

const isIn = ({ source }: Opened, names: readonly string[]): boolean =>
  names.some((name) => source.has(`${name}.weight`));

/** The names in `id2label`; empty if it is missing. */
function labelsOf({ id2label }: Readonly<Record<string, unknown>>): readonly string[] {
  if (typeof id2label !== "object" || id2label === null) return [];
  const entries = new Map(Object.entries(id2label));
  return Array.from({ length: entries.size }, (_, index) => String(entries.get(`${index}`)));
}

/** Replaces a layer of the head by one with random weights, of standard deviation 0.02, as in BERT. */
function initialize(model: Encoder, path: string): void {
  const name = path.slice("head.".length);
  const layer = Reflect.get(model.head!, name);
  if (!(layer instanceof Linear)) return; // norms keep their initial weights
  const { inputs, outputs, bias } = layer;
  const initialization = llamaInitialization(0.02);
  Reflect.set(model.head!, name, new Linear(inputs, outputs, { bias: bias !== null, initialization }));
}
