/**
 * Replaces steps of a `tokenizer.json` that `@huggingface/tokenizers` and Hugging Face's `tokenizers` execute
 * differently by steps that both execute in the same way. JavaScript's `\s` includes U+FEFF and lacks U+0085, and its
 * `\w` is ASCII-only; the package's `Split` corrects this, but other steps do not. Its `BertNormalizer` splits
 * ideographs beyond the basic plane into two halves. `tokenizers` lowercases each character separately.
 */
import type { TokenizerJson } from "./tokenizer_file.ts";

interface Step {
  readonly type: string;
  readonly [name: string]: unknown;
}

const split = (Regex: string, behavior: "Isolated" | "Removed"): Step => ({
  type: "Split",
  pattern: { Regex },
  behavior,
  invert: false,
});
const replace = (Regex: string, content: string): Step => ({ type: "Replace", pattern: { Regex }, content });

/** GPT-2's pattern, which `ByteLevel` splits by. */
const WORDS = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;
/** `\w` in Rust's regular expressions, which follows Unicode's definition. */
const OF_WORDS = String.raw`\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200C\u200D`;
/** BERT's punctuation: Unicode's, and each ASCII character that is not a letter, digit or space. */
const PUNCTUATION = String.raw`[\p{P}\x21-\x2F\x3A-\x40\x5B-\x60\x7B-\x7E]`;
/** BERT's ideographs, around which it inserts spaces. */
const IDEOGRAPHS =
  "[\u{3400}-\u{4DBF}\u{4E00}-\u{9FFF}\u{F900}-\u{FAFF}\u{20000}-\u{2A6DF}\u{2A700}-\u{2B73F}" +
  "\u{2B740}-\u{2B81F}\u{2B920}-\u{2CEAF}\u{2F800}-\u{2FA1F}]";

/** JavaScript lowercases Σ to ς at the end of a word. */
const SIGMA = replace("Σ", "σ");

/** For each type of step, the function that returns the steps to use instead. */
const replacements: Readonly<Record<string, (step: Step) => readonly Step[]>> = {
  ByteLevel(step) {
    if (step["use_regex"] === false) return [step];
    const prefix = step["add_prefix_space"] ? [replace(String.raw`\A(?! )`, " ")] : [];
    return [...prefix, split(WORDS, "Isolated"), { ...step, add_prefix_space: false, use_regex: false }];
  },
  Whitespace: () => [{ ...split(`[${OF_WORDS}]+|[^${OF_WORDS}\\s]+`, "Removed"), invert: true }],
  WhitespaceSplit: () => [split(String.raw`\s+`, "Removed")],
  BertPreTokenizer: () => [split(String.raw`\s+`, "Removed"), split(PUNCTUATION, "Isolated")],
  BertNormalizer(step) {
    const { clean_text, handle_chinese_chars, lowercase } = step;
    const rest = { handle_chinese_chars: false, strip_accents: false, lowercase: false };
    return [
      ...(clean_text ? [{ type: "BertNormalizer", clean_text, ...rest }] : []),
      ...(handle_chinese_chars ? [replace(`(?=${IDEOGRAPHS})|(?<=${IDEOGRAPHS})`, " ")] : []),
      ...(lowercase ? [SIGMA] : []),
      { ...step, clean_text: false, handle_chinese_chars: false },
    ];
  },
  Lowercase: (step) => [SIGMA, step],
};

/** Returns the steps of a section, with sequences flattened. */
function stepsOf(step: Step, parts: "normalizers" | "pretokenizers"): readonly Step[] {
  const inner = step[parts];
  if (step.type === "Sequence" && Array.isArray(inner)) return inner.flatMap((each: Step) => stepsOf(each, parts));
  return Object.hasOwn(replacements, step.type) ? replacements[step.type](step) : [step];
}

const inSequence = (step: unknown, parts: "normalizers" | "pretokenizers"): unknown =>
  step === null || step === undefined ? step : { type: "Sequence", [parts]: stepsOf(step as Step, parts) };

/** Returns an equivalent tokenizer whose steps the package executes like `tokenizers`. @param json a checked file */
export const withExactSteps = (json: TokenizerJson): TokenizerJson => ({
  ...json,
  normalizer: inSequence(json["normalizer"], "normalizers"),
  pre_tokenizer: inSequence(json["pre_tokenizer"], "pretokenizers"),
});
