/**
 * Compares every encoder with `transformers`: hidden states and results of every head, for drawn configs. After a
 * change of any key, the results must equal those of `transformers`, or the config must be rejected.
 */
import { describe, expect, test } from "bun:test";
import { OrchardError } from "../../../../src/core/errors.ts";
import type { Tensor } from "../../../../src/index.ts";
import type { EncoderName } from "../../../../src/nn/models/loading/encoder/architectures.ts";
import { encoderFields } from "../../../../src/nn/models/loading/encoder/config_fields.ts";
import { describeEncoderConfig } from "../../../../src/nn/models/loading/encoder/describe.ts";
import { Random } from "../../../ops/samples.ts";
import { testFolder } from "../../../support/folder.ts";
import { seed } from "../../../support/some.ts";
import { answers, type Case, errorOf, families, loadEncoder, names, outputOf, writeModel } from "./oracle.ts";

/** Sums in another order differ by far less. */
const CLOSE = 1e-5;
const folder = testFolder("encoders");
const random = new Random(seed);

async function outcomeOf(path: string, own: Case): Promise<Tensor | Error> {
  try {
    return outputOf(await loadEncoder(path), own);
  } catch (error) {
    return error as Error;
  }
}

/** Values that are rejected, although `transformers` supports them: see docs/encoders.md. */
function isLimit(name: EncoderName, key: string, value: unknown): boolean {
  const text = JSON.stringify(value);
  if (["is_decoder", "add_cross_attention", "is_encoder_decoder"].includes(key)) return true;
  if (key === "position_embedding_type" || key === "conv_kernel_size") return true;
  if (text === '"tanh"' && key !== "classifier_activation" && key !== "pooler_hidden_act") return true;
  // rotations that depend on the text's length, that rotate half of a head, or that are unsupported
  if (key === "rope_parameters") return /dynamic|longrope|proportional|mrope_section|partial/.test(text);
  // heads of a size that is not a whole number
  if (key === "num_attention_heads" && value === undefined) return true;
  return !(key in families[name].fields) && !(key in encoderFields[name]);
}

function problemOf(name: EncoderName, { change, missing, task, output }: Case, got: Tensor | Error): string[] {
  const keys = missing === undefined ? Object.keys(change) : [missing];
  const where = `${task} ${missing === undefined ? JSON.stringify(change) : `without ${missing}`}`;
  if (!(got instanceof Error)) {
    if (output === null) return [`${where}: transformers refuses it`];
    const error = errorOf(got, answers[output === "same" ? `${name}.${task}` : output]);
    return error < CLOSE ? [] : [`${where}: off by ${error}`];
  }
  if (!(got instanceof OrchardError)) return [`${where}: ${got.stack}`];
  if (output !== null && !keys.some((key) => isLimit(name, key, change[key]))) return [`${where}: ${got.message}`];
  return keys.some((key) => got.message.includes(key)) ? [] : [`${where}: it does not name the key: ${got.message}`];
}

describe.each(names)("configs of encoders: %s", (name) => {
  const { cases, fields } = families[name];

  test("every config has the same results as transformers, or an error that names the key", async () => {
    const path = folder.file(name);
    const wrong: string[] = [];
    for (const own of cases) {
      await writeModel(path, name, own);
      wrong.push(...problemOf(name, own, await outcomeOf(path, own)));
    }
    expect(wrong).toEqual([]);
  });

  test("the defaults equal those of the config class", () => {
    const own = encoderFields[name];
    const differing = Object.entries(fields).filter(
      ([key, { default: value }]) => Object.hasOwn(own, key) && own[key] !== value,
    );
    expect(differing).toEqual([]);
  });

  test("missing fields have the config class's defaults", () => {
    const explicit = Object.entries(encoderFields[name]).filter(([, value]) => value !== null);
    const wanted = describeEncoderConfig("test", name, Object.fromEntries(explicit));
    for (let turn = 0; turn < 10; turn++) {
      const some = explicit.filter(() => random.integer(0, 1) === 1);
      expect(describeEncoderConfig("test", name, Object.fromEntries(some))).toEqual(wanted);
    }
  });

  test("the error for unknown keys names them", () => {
    for (let turn = 0; turn < 10; turn++) {
      const key = Array.from({ length: 8 }, () => String.fromCharCode(random.integer(97, 122))).join("");
      const value = [true, 0.5, "x", [1], { a: 1 }][turn % 5];
      expect(() => describeEncoderConfig("test", name, { [key]: value })).toThrow(`${key} is not a setting of`);
    }
  });
});
