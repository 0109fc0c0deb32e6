/** Reads files of texts for encoders: pairs of texts that belong together, or texts with labels. */
import { describeValue } from "../../core/describe.ts";
import { isJsonObject, parseJson } from "../../io/json.ts";
import { malformed, readLines } from "../tuning/chats.ts";

/** The tasks that encoders are trained for. */
export const encoderTasks = ["embed", "classify"] as const;

export type EncoderTask = (typeof encoderTasks)[number];

/** Texts that belong together, and texts that do not belong to the anchor. */
export interface PairRecord {
  readonly anchor: string;
  readonly positive: string;
  readonly negatives: readonly string[];
}

/** A text, or a pair of texts, and its class. */
export interface LabeledRecord {
  readonly text: string;
  readonly pair: string | undefined;
  readonly label: string;
}

/** Reads lines `{"anchor", "positive"}`, with `negative` or a list `negatives`. @throws {DataError} with the line */
export const readPairs = (paths: readonly string[]): PairRecord[] =>
  readLines(paths, (line, where) => {
    const fields = fieldsOf(line, where, ["anchor", "positive", "negative", "negatives"]);
    const { negative, negatives = negative === undefined ? [] : [negative] } = fields;
    if (negative !== undefined && fields["negatives"] !== undefined)
      throw malformed(where, "expected negative or negatives, got both");
    if (!Array.isArray(negatives))
      throw malformed(where, `expected negatives to be a list of texts, got ${describeValue(negatives)}`);
    return {
      anchor: textIn(fields["anchor"], "anchor", where),
      positive: textIn(fields["positive"], "positive", where),
      negatives: negatives.map((text, at) => textIn(text, `negatives[${at}]`, where)),
    };
  });

/** Reads lines `{"text", "label"}`, which may have a second text, `pair`. @throws {DataError} with the line */
export const readLabeled = (paths: readonly string[]): LabeledRecord[] =>
  readLines(paths, (line, where) => {
    const { text, pair, label } = fieldsOf(line, where, ["text", "pair", "label"]);
    if (!(typeof label === "string" && label !== "") && !Number.isSafeInteger(label))
      throw malformed(where, `expected label to be a string or a whole number, got ${describeValue(label)}`);
    return {
      text: textIn(text, "text", where),
      pair: pair === undefined ? undefined : textIn(pair, "pair", where),
      label: String(label),
    };
  });

function fieldsOf(line: string, where: string, known: readonly string[]): Readonly<Record<string, unknown>> {
  const json = parseJson(line, (_, message) => malformed(where, `expected JSON: ${message}`));
  if (!isJsonObject(json)) throw malformed(where, `expected a JSON object, got ${describeValue(json)}`);
  const other = Object.keys(json).find((key) => !known.includes(key));
  if (other !== undefined) throw malformed(where, `expected the fields ${known.join(", ")}, got "${other}"`);
  return json;
}

function textIn(value: unknown, name: string, where: string): string {
  if (typeof value === "string" && value.trim() !== "") return value;
  throw malformed(where, `expected ${name} to be a non-empty text, got ${describeValue(value)}`);
}

/** Returns the labels: in numeric order if all are whole numbers, else in alphabetical order. */
export function labelsOf(records: readonly LabeledRecord[]): string[] {
  const labels = [...new Set(records.map(({ label }) => label))];
  const isNumeric = labels.every((label) => /^-?\d+$/.test(label));
  return isNumeric ? labels.sort((a, b) => Number(a) - Number(b)) : labels.sort();
}
