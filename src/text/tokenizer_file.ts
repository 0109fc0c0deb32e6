/** The fields of `tokenizer.json` and `tokenizer_config.json` that are read here; the package reads the rest. */

export interface DecoderConfig {
  readonly type: string;
  readonly cleanup?: boolean;
  readonly decoders?: readonly DecoderConfig[];
  readonly pattern?: { readonly String?: string };
  readonly prefix?: string;
  readonly prepend_scheme?: string;
  readonly replacement?: string;
  readonly start?: number;
}

export interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly special?: boolean;
  readonly [flag: string]: unknown;
}

/** The contents of a `tokenizer.json`. */
export interface TokenizerJson {
  readonly model: { readonly type?: string; readonly vocab: unknown; readonly [field: string]: unknown };
  readonly added_tokens?: readonly AddedToken[];
  readonly decoder?: DecoderConfig | null;
  readonly [section: string]: unknown;
}

type Named = string | { readonly content?: string } | null;

/** The fields of a `tokenizer_config.json` that are read. */
export interface TokenizerConfig {
  readonly bos_token?: Named;
  readonly eos_token?: Named;
  readonly sep_token?: Named;
  readonly mask_token?: Named;
  readonly pad_token?: Named;
  readonly chat_template?: unknown;
  readonly [field: string]: unknown;
}

/** Returns the text of a special token in a config. */
export const contentOf = (token: Named | undefined): string | undefined =>
  typeof token === "string" ? token : (token?.content ?? undefined);
