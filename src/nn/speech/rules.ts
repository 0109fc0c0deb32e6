/** Which tokens may follow in a transcript: Whisper's suppressed tokens and timestamp rules. */
import type { WhisperSettings } from "../models/whisper/settings.ts";

/** Excludes tokens by setting their logits to −∞. */
export type Rule = (logits: Float32Array, tokens: readonly number[]) => void;

/**
 * Returns the rules of a transcript.
 *
 * @param timestamps whether segments begin and end with timestamp tokens
 */
export function rulesOf(settings: WhisperSettings, timestamps: boolean): Rule {
  const { suppressed, beginSuppressed } = settings;
  return (logits, tokens) => {
    if (tokens.length === 0) exclude(logits, beginSuppressed);
    exclude(logits, suppressed);
    if (timestamps) applyTimestamps(logits, tokens, settings);
  };
}

const exclude = (logits: Float32Array, tokens: readonly number[]): void => {
  for (const token of tokens) if (token < logits.length) logits[token] = -Infinity;
};

/**
 * Timestamps come in pairs, except before the end, and do not decrease. A segment begins and ends at different times.
 * If all timestamps together are likelier than the likeliest other token, the next token is a timestamp.
 *
 * Source: `ApplyTimestampRules` in OpenAI's whisper/decoding.py.
 */
function applyTimestamps(logits: Float32Array, tokens: readonly number[], settings: WhisperSettings): void {
  const { noTimestampsToken, endToken, latestStart } = settings;
  const first = noTimestampsToken + 1;
  const isTime = (token: number | undefined) => token !== undefined && token >= first;
  logits[noTimestampsToken] = -Infinity;
  const endsWithTime = isTime(tokens.at(-1));
  const isPair = tokens.length < 2 || isTime(tokens.at(-2));
  if (endsWithTime && isPair) logits.fill(-Infinity, first);
  if (endsWithTime && !isPair) logits.fill(-Infinity, 0, endToken);
  const last = tokens.findLast(isTime);
  if (last !== undefined) logits.fill(-Infinity, first, endsWithTime && !isPair ? last : last + 1);
  if (tokens.length === 0) {
    logits.fill(-Infinity, 0, first);
    if (latestStart !== undefined) logits.fill(-Infinity, first + latestStart + 1);
  }
  if (sumOfTimes(logits, first) > maximumOf(logits, 0, first)) logits.fill(-Infinity, 0, first);
}

/** log Σ exp of the logits of timestamps. */
const sumOfTimes = (logits: Float32Array, first: number): number => logSumExp(logits, first, logits.length);

function maximumOf(values: Float32Array, start: number, end: number): number {
  let most = -Infinity;
  for (let at = start; at < end; at++) if (values[at] > most) most = values[at];
  return most;
}

/** @internal Returns log Σ exp(values) over a range. */
export function logSumExp(values: Float32Array, start = 0, end: number = values.length): number {
  const most = maximumOf(values, start, end);
  if (most === -Infinity) return -Infinity;
  let sum = 0;
  for (let at = start; at < end; at++) sum += Math.exp(values[at] - most);
  return most + Math.log(sum);
}
