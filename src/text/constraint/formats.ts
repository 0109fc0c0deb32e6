/** Regular expressions for JSON schema's `format`. Each allows a subset of its standard. */
import { ArgumentError } from "../../core/errors.ts";
import { base64Of } from "./base64.ts";
import { type Pattern, sequence } from "./pattern.ts";
import { readPattern } from "./read_pattern.ts";

const leap = "(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
const days =
  "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))";
const date = `(?:\\d{4}-${days}|${leap}-02-29)`;
const offset = "(?:[Zz]|[+\\-](?:[01]\\d|2[0-3]):[0-5]\\d)";
const time = `(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,9})?${offset}`;
/** ISO 8601 durations with at least one part. */
const clock = "T(?:\\d{1,9}H(?:\\d{1,9}M)?(?:\\d{1,9}S)?|\\d{1,9}M(?:\\d{1,9}S)?|\\d{1,9}S)";
const calendar = "(?:\\d{1,9}Y(?:\\d{1,9}M)?(?:\\d{1,9}D)?|\\d{1,9}M(?:\\d{1,9}D)?|\\d{1,9}D)";
const duration = `P(?:${calendar}(?:${clock})?|${clock}|\\d{1,9}W)`;

/** A part of a name between dots. Without a length limit, the automaton stays small. */
const part = "[A-Za-z0-9](?:[A-Za-z0-9\\-]*[A-Za-z0-9])?";
/** RFC 1123 allows parts of up to 63 characters, and 253 in total. */
const counted = "[A-Za-z0-9](?:[A-Za-z0-9\\-]{0,22}[A-Za-z0-9])?";
const hostname = `(?:${counted}\\.){0,9}${counted}`;
const atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\-]+";
const email = `${atom}(?:\\.${atom})*@${part}(?:\\.${part})+`;

const byte = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const ipv4 = `(?:${byte}\\.){3}${byte}`;
const group = "[0-9A-Fa-f]{1,4}";
/** Eight groups, or fewer around "::", which replaces at least one (RFC 4291). */
const shortened = Array.from({ length: 8 }, (_, before) => {
  const start = before === 0 ? "" : `${group}(?::${group}){${before - 1}}`;
  return before === 7 ? `${start}::` : `${start}::(?:${group}(?::${group}){0,${6 - before}})?`;
});
const ipv6 = `(?:(?:${group}:){7}${group}|${shortened.join("|")}|::(?:[Ff]{4}:)?${ipv4})`;

/** RFC 3986, without addresses in brackets. */
const escaped = "%[0-9A-Fa-f]{2}";
const pathCharacter = `(?:[A-Za-z0-9\\-._~!$&'()*+,;=:@]|${escaped})`;
const segmentWithoutColon = `(?:[A-Za-z0-9\\-._~!$&'()*+,;=@]|${escaped})+`;
/** A name whose last part is numeric would be parsed as an address. */
const named = `(?:${part}\\.)*[A-Za-z](?:[A-Za-z0-9\\-]*[A-Za-z0-9])?`;
const authority = `(?:(?:[A-Za-z0-9\\-._~!$&'()*+,;=:]|${escaped})*@)?(?:${ipv4}|${named})(?::\\d{1,4})?`;
const path = `(?:/${pathCharacter}*)*`;
const end = `(?:\\?(?:${pathCharacter}|[/?])*)?(?:#(?:${pathCharacter}|[/?])*)?`;
const rooted = `(?://${authority}${path}|/(?:${pathCharacter}+${path})?)`;
const uri = `[A-Za-z][A-Za-z0-9+\\-.]*:(?:${rooted}|${pathCharacter}+${path})${end}`;
const uriReference = `(?:${uri}|(?:${rooted}|${segmentWithoutColon}${path})?${end})`;
const token = "(?:[^~/]|~[01])*";

/** JSON Web Tokens in compact form (RFC 7519), with the signature algorithms of RFC 7518 and RFC 8037. */
const algorithm = "(?:[HREP]S(?:256|384|512)|EdDSA)";
/** Excludes `>`, `?` and `~`, which may encode to "-" and "_": zod rejects headers with these digits. */
const member = '"(?:typ":"JWT|(?:kid|jku|x5u|x5t|x5t#S256|cty)":"[ !#-=@-\\[\\]-}]*)"';
const header = `\\{(?:${member},)*"alg":"${algorithm}"(?:,${member})*\\}`;
const segment = "(?:[\\w\\-]{4})*[\\w\\-]{2,4}";

const sources: Readonly<Record<string, string>> = {
  date,
  time,
  "date-time": `${date}[Tt]${time}`,
  duration,
  email,
  "idn-email": email,
  hostname,
  "idn-hostname": hostname,
  ipv4,
  ipv6,
  uri,
  iri: uri,
  "uri-reference": uriReference,
  "iri-reference": uriReference,
  "uri-template": uriReference,
  uuid: "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}",
  "json-pointer": `(?:/${token})*`,
  "relative-json-pointer": `(?:0|[1-9]\\d{0,8})(?:#|(?:/${token})*)`,
};

const patterns: Readonly<Record<string, () => Pattern>> = {
  ...Object.fromEntries(Object.entries(sources).map(([name, source]) => [name, () => readPattern(source, "whole")])),
  jwt: () => sequence([base64Of(readPattern(header, "whole")), readPattern(`(?:\\.${segment}){2}`, "whole")]),
};

/** The supported formats. */
export const formats: ReadonlySet<string> = new Set(Object.keys(patterns));

/** Formats with a checksum, which an automaton of a usable size cannot check. */
export const checked: ReadonlySet<string> = new Set(["credit_card", "iban"]);

const known = new Map<string, Pattern>();

/** Returns the pattern of a format. @throws {ArgumentError} `unsupported` */
export function formatPattern(format: string): Pattern {
  const read = patterns[format];
  if (read === undefined)
    throw new ArgumentError(
      "compileConstraint",
      "unsupported",
      `expected format to be one of ${[...formats].join(", ")}`,
    );
  const pattern = known.get(format) ?? read();
  known.set(format, pattern);
  return pattern;
}

/** zod's expression for a part of a name between dots. */
const zodPart = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
/**
 * For each of zod's expressions that need too many states, because they limit both the parts and the whole: a subset
 * that needs fewer.
 */
const subsets: ReadonlyMap<string, () => Pattern> = new Map([
  [
    `^(?=.{1,253}\\.?$)${zodPart}(?:\\.[a-zA-Z0-9](?:[-0-9a-zA-Z]{0,61}[0-9a-zA-Z])?)*\\.?$`,
    () => formatPattern("hostname"),
  ],
  [`^(?=.{1,253}$)(${zodPart}\\.)+[a-zA-Z]{2,63}$`, () => readPattern(`(?:${counted}\\.){1,9}[A-Za-z]{2,24}`, "whole")],
]);

/** Returns the pattern of the usual texts that match an expression which can't be compiled whole. */
export const subsetPattern = (source: string): Pattern | undefined => subsets.get(source)?.();
