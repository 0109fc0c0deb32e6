/** Tells a translation model the source and target languages. */
import { ArgumentError } from "../../../core/errors.ts";
import { tupleOf } from "../../../core/tuples.ts";
import type { PretrainedTokenizer } from "../../../text/pretrained_tokenizer.ts";
import type { EncoderDecoder } from "../../models/encoder_decoder/encoder_decoder.ts";
import type { TextTask } from "../../models/encoder_decoder/texts.ts";

/** How texts of one pair of languages are encoded and generated. */
export interface LanguagePlan extends Partial<TextTask> {
  /** The language that replaces the language among the special tokens of a text. */
  readonly sourceToken?: number | undefined;
  /** The first token of each generated text. */
  readonly forcedBeginToken?: number | undefined;
}

const fail = (code: string, message: string) => new ArgumentError("translate", code, message);

/**
 * Returns how a model translates from one language to another. Languages are the model's codes, such as `deu_Latn`, or
 * two letters.
 *
 * @throws {ArgumentError} `unknownLanguage`, `otherLanguages`, `noLanguages`
 */
export function languagePlan(
  model: EncoderDecoder,
  tokenizer: PretrainedTokenizer,
  source: string | undefined,
  target: string | undefined,
): LanguagePlan {
  const { architecture } = model.description;
  if (architecture === "marian") return marianPlan(model, tokenizer, source, target);
  if (source === undefined || target === undefined)
    throw fail("noLanguages", `${architecture} translates between many languages; pass source and target`);
  if (architecture !== "m2m_100" && architecture !== "mbart") return taskPlan(model, source, target);
  const [sourceToken, targetToken] = [source, target].map((language) => tokenOf(tokenizer, language));
  if (!model.texts.languageLast) return { sourceToken, forcedBeginToken: targetToken };
  const { startToken } = model.description;
  if (targetToken === startToken) return { sourceToken };
  const only = tokenizer.textOf(startToken) ?? startToken;
  throw fail("otherLanguages", `expected target to be ${only}, the language that the model generates, got "${target}"`);
}

/** A Marian model for several target languages is told the target by a prefix. */
function marianPlan(
  { texts }: EncoderDecoder,
  tokenizer: PretrainedTokenizer,
  source: string | undefined,
  target: string | undefined,
): LanguagePlan {
  const prefix = `>>${target}<<`;
  const isKnown = target !== undefined && tokenizer.idOf(prefix) !== null;
  for (const [name, given, only] of [
    ["source", source, texts.source],
    ["target", isKnown ? undefined : target, texts.target],
  ] as const)
    if (given !== undefined && given !== only)
      throw fail("otherLanguages", `expected ${name} to be ${only ?? "omitted for this model"}, got "${given}"`);
  return isKnown ? { prefix: `${prefix} ` } : {};
}

/** For T5, the prefix of a task names the languages. */
function taskPlan({ texts, description }: EncoderDecoder, source: string, target: string): LanguagePlan {
  const task = texts.tasks.get(`translation_${source}_to_${target}`);
  if (task) return task;
  const known = [...texts.tasks.keys()].filter((name) => name.startsWith("translation_")).join(", ");
  throw fail(
    "otherLanguages",
    `expected a pair of languages in the config of this ${description.architecture} (${known || "none"}), ` +
      `got "${source}" to "${target}"; use nn.textToText with a prefix`,
  );
}

/** Returns the token of a language: its code, `__de__`, `de_DE`, or FLORES's name for a two-letter code. */
function tokenOf(tokenizer: PretrainedTokenizer, language: string): number {
  const names = [language, `__${language}__`, flores.get(language)];
  for (const name of names) {
    const token = tokenizer.idOf(name);
    if (token !== null && tokenizer.isSpecial(token)) return token;
  }
  const pattern = new RegExp(`^${RegExp.escape(language)}_[A-Z]{2}$`);
  const found = tokenizer.specialTokens().find((token) => pattern.test(tokenizer.textOf(token) ?? ""));
  if (found !== undefined) return found;
  throw fail(
    "unknownLanguage",
    `expected a language of the model, such as ${examplesOf(tokenizer)}, got "${language}"`,
  );
}

const examplesOf = (tokenizer: PretrainedTokenizer): string =>
  tokenizer
    .specialTokens()
    .map((token) => tokenizer.textOf(token) ?? "")
    .filter((text) => /^_*[a-z]{2,3}(_+[A-Za-z]*)?$/.test(text))
    .slice(0, 3)
    .join(", ");

/** FLORES-200's names of languages, which NLLB uses, by two-letter code (ISO 639-1). */
const flores: ReadonlyMap<string, string> = new Map(
  (
    "af:afr_Latn am:amh_Ethi ar:arb_Arab as:asm_Beng az:azj_Latn be:bel_Cyrl bg:bul_Cyrl bn:ben_Beng bo:bod_Tibt " +
    "bs:bos_Latn ca:cat_Latn cs:ces_Latn cy:cym_Latn da:dan_Latn de:deu_Latn el:ell_Grek en:eng_Latn eo:epo_Latn " +
    "es:spa_Latn et:est_Latn eu:eus_Latn fa:pes_Arab fi:fin_Latn fr:fra_Latn ga:gle_Latn gd:gla_Latn gl:glg_Latn " +
    "gu:guj_Gujr ha:hau_Latn he:heb_Hebr hi:hin_Deva hr:hrv_Latn ht:hat_Latn hu:hun_Latn hy:hye_Armn id:ind_Latn " +
    "ig:ibo_Latn is:isl_Latn it:ita_Latn ja:jpn_Jpan jv:jav_Latn ka:kat_Geor kk:kaz_Cyrl km:khm_Khmr kn:kan_Knda " +
    "ko:kor_Hang ky:kir_Cyrl lb:ltz_Latn lo:lao_Laoo lt:lit_Latn lv:lvs_Latn mg:plt_Latn mi:mri_Latn mk:mkd_Cyrl " +
    "ml:mal_Mlym mn:khk_Cyrl mr:mar_Deva ms:zsm_Latn mt:mlt_Latn my:mya_Mymr ne:npi_Deva nl:nld_Latn nn:nno_Latn " +
    "no:nob_Latn ny:nya_Latn pa:pan_Guru pl:pol_Latn ps:pbt_Arab pt:por_Latn ro:ron_Latn ru:rus_Cyrl sd:snd_Arab " +
    "si:sin_Sinh sk:slk_Latn sl:slv_Latn sm:smo_Latn sn:sna_Latn so:som_Latn sq:als_Latn sr:srp_Cyrl st:sot_Latn " +
    "su:sun_Latn sv:swe_Latn sw:swh_Latn ta:tam_Taml te:tel_Telu tg:tgk_Cyrl th:tha_Thai tl:tgl_Latn tr:tur_Latn " +
    "uk:ukr_Cyrl ur:urd_Arab uz:uzn_Latn vi:vie_Latn xh:xho_Latn yi:ydd_Hebr yo:yor_Latn zh:zho_Hans zu:zul_Latn"
  )
    .split(" ")
    .map((pair) => tupleOf(pair.split(":"), 2)),
);
