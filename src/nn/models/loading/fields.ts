/**
 * The fields of Hugging Face's config classes that are read, with the defaults of `transformers` 5.23.0.
 * test/fixtures/decoders/configs.json and rows.json list them.
 */
import type { ArchitectureName } from "./architectures.ts";
import { expertsFields } from "./fields/experts.ts";
import { gemmaFields } from "./fields/gemma.ts";
import { gptFields } from "./fields/gpt.ts";
import { llamaFields } from "./fields/llama.ts";
import { recurrentFields } from "./fields/recurrent.ts";
import type { Fields } from "./fields/shared.ts";

const rows = {
  ...gptFields,
  ...gemmaFields,
  ...recurrentFields,
  ...expertsFields,
  ...llamaFields,
};

/** Rejects rows of names that are no architecture's. */
type Known<T> = { readonly [N in keyof T]: N extends ArchitectureName ? Fields : never };

/** The fields by the `model_type` of a config. */
export const fieldsOf: Readonly<Record<ArchitectureName, Fields>> = rows satisfies Known<typeof rows>;
