/** The head of an encoder: which one its config names, its sizes, and the names of its results. */
import type { DenseDescription, EncoderDescription, EncoderTask, HeadDescription } from "../../encoder/description.ts";
import type { EncoderLabels, LabelScores } from "../../encoder/labels.ts";
import type { Settings } from "../settings.ts";
import { activationKey, encoderActivation } from "./activations.ts";
import { type EncoderName, encoderRow } from "./architectures.ts";

/** The ends of class names in `architectures`, with their tasks. */
const tasks: readonly (readonly [end: string, task: EncoderTask | undefined])[] = [
  ["ForSequenceClassification", "classify"],
  ["ForTokenClassification", "tag"],
  ["ForQuestionAnswering", "answer"],
  ["ForMaskedLM", "fillMask"],
  ["Model", undefined],
];

/** Returns the task of the class that `architectures` names. @throws {ArgumentError} `unsupportedHead` */
function taskOf(name: EncoderName, config: Settings): EncoderTask | undefined {
  const list = config.get("architectures");
  if (list === undefined) return undefined;
  if (!Array.isArray(list) || list.some((item) => typeof item !== "string"))
    throw config.wrong("architectures", "a list of names", list);
  const className: string | undefined = list[0];
  if (className === undefined) return undefined;
  // BERT's and ALBERT's pretraining has the head of masked tokens, and another for pairs of sentences.
  if (className.endsWith("ForPreTraining") && (name === "bert" || name === "albert")) return "fillMask";
  if (isDiscriminator(name, config)) return "tag";
  const found = tasks.find(([end]) => className.endsWith(end));
  if (found) return found[1];
  const known = tasks.map(([end]) => end).join(", ");
  throw config.refused("unsupportedHead", `expected architectures to end with one of ${known}, got "${className}"`);
}

/** Whether a config names ELECTRA's discriminator, which has one score for each token: whether it was replaced. */
const isDiscriminator = (name: EncoderName, config: Settings): boolean =>
  name === "electra" && `${config.get("architectures")}`.endsWith("ForPreTraining");

/** Returns the description of the head; undefined without a head. */
export function headOf(
  name: EncoderName,
  config: Settings,
  { width, embeddings, vocabularySize }: EncoderDescription,
): HeadDescription | undefined {
  const task = taskOf(name, config);
  if (task === undefined) return undefined;
  const isModern = name === "modernbert";
  const modern = (): DenseDescription => ({
    width,
    bias: config.flag("classifier_bias"),
    norm: true,
    activation: encoderActivation(config, "classifier_activation"),
  });
  if (task === "fillMask") {
    const masked = encoderRow(name).masked;
    const activation = masked?.activation ?? encoderActivation(config, activationKey(name));
    const isNarrow = masked?.narrow || name === "deberta" || name === "deberta-v2";
    const dense = { width: isNarrow ? embeddings.width : width, activation, bias: true, norm: true };
    const bias = isModern ? config.flag("decoder_bias") : true;
    const tied = config.flag("tie_word_embeddings");
    return { task, dense: isModern ? modern() : dense, outputs: vocabularySize, bias, tied };
  }
  if (isDiscriminator(name, config)) {
    const dense = { width, activation: encoderActivation(config, activationKey(name)), bias: true, norm: false };
    return { task, dense, outputs: 1, bias: true, tied: false };
  }
  const outputs = { outputs: namesOf(config).length, bias: true, tied: false };
  if (task !== "classify") return { task, ...outputs, ...(isModern && { dense: modern() }) };
  if (!isModern) return { task, pooling: "first", ...outputs, dense: classifierLayer(name, config, width) };
  return { task, pooling: modernPooling(config), ...outputs, dense: modern() };
}

/** Returns the head of a language model for classes of texts or tokens; undefined for other classes. */
export function decoderHeadOf(config: Settings): HeadDescription | undefined {
  const list = config.get("architectures");
  const className = Array.isArray(list) ? `${list[0]}` : "";
  const [, kind] = /For(Sequence|Token)Classification$/.exec(className) ?? [];
  if (kind === undefined) return undefined;
  const outputs = namesOf(config).length;
  return kind === "Token"
    ? { task: "tag", outputs, bias: true, tied: false }
    : { task: "classify", pooling: "last", outputs, bias: false, tied: false };
}

function classifierLayer(name: EncoderName, config: Settings, width: number): DenseDescription {
  const row = encoderRow(name);
  const activation = row.classifier?.activation;
  const fixed = activation === "pooler" || activation === "classifier" ? undefined : activation;
  const isPooler = activation === "pooler";
  return {
    width,
    bias: true,
    norm: false,
    activation: isPooler ? encoderActivation(config, "pooler_hidden_act") : (fixed ?? "tanh"),
  };
}

function modernPooling(config: Settings): "first" | "mean" {
  const pooling = config.textIfAny("classifier_pooling");
  if (pooling === "cls") return "first";
  if (pooling === "mean") return "mean";
  throw config.wrong("classifier_pooling", "cls or mean", pooling);
}

/** @internal Returns the names of labels: `id2label`, or as many as `num_labels` says, which defaults to `fallback`. */
export function namesOf(config: Settings, fallback = 2): string[] {
  const given = config.inner("id2label");
  const count = given ? given.names.length : (config.wholeIfAny("num_labels") ?? fallback);
  return Array.from({ length: count }, (_, index) => given?.textIfAny(`${index}`) ?? `LABEL_${index}`);
}

/** The labels of ELECTRA's discriminator: `O` for tokens that were not replaced. */
const DISCRIMINATOR_NAMES = ["O", "replaced"];

/** The activations of cross-encoders, by their classes in PyTorch. */
const relevances: Readonly<Record<string, EncoderLabels["relevance"]>> = {
  "torch.nn.modules.activation.Sigmoid": "sigmoid",
  "torch.nn.modules.linear.Identity": "identity",
};

/** Returns the names of the results of a head, and how scores become probabilities. */
export function labelsOf(
  config: Settings,
  { task, outputs, dense }: HeadDescription,
  fallback?: number,
): EncoderLabels | undefined {
  if (task === "fillMask" || task === "answer") return undefined;
  const sentence = config.inner("sentence_transformers");
  const activation = sentence?.textIfAny("activation_fn") ?? config.textIfAny("sbert_ce_default_activation_function");
  const key = sentence?.get("activation_fn") === undefined ? "sbert_ce_default_activation_function" : "activation_fn";
  const relevance = activation === undefined ? "sigmoid" : relevances[activation];
  if (relevance === undefined)
    throw config.refused(
      "unknownActivation",
      `expected ${key} to be one of ${Object.keys(relevances).join(", ")}, got "${activation}"`,
    );
  const names = task === "tag" && dense?.norm === false ? DISCRIMINATOR_NAMES : namesOf(config, fallback);
  return { names, scores: task === "tag" ? "softmax" : scoresOf(config, outputs), relevance };
}

/** @internal Returns how scores become probabilities, as in the classification pipelines of `transformers`. */
export function scoresOf(config: Settings, outputs: number): LabelScores {
  const problem = config.textIfAny("problem_type");
  const known: Readonly<Record<string, LabelScores>> = {
    regression: "identity",
    single_label_classification: outputs === 1 ? "sigmoid" : "softmax",
    multi_label_classification: "sigmoid",
  };
  if (problem === undefined) return outputs === 1 ? "sigmoid" : "softmax";
  if (Object.hasOwn(known, problem)) return known[problem];
  throw config.wrong("problem_type", `one of ${Object.keys(known).join(", ")}`, problem);
}
