/**
 * zod's string formats: texts under a format's schema satisfy zod, and the error for a format that can't be enforced
 * names it.
 */
import { expect, test } from "bun:test";
import { z } from "zod";
import { repeats } from "../../support/repeats.ts";
import { randomFrom } from "./held_to.ts";
import { SchemaForm } from "./schema_forms.ts";

type Random = () => number;
const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
const flag = (random: Random): boolean => random() < 0.5;

const { regexes } = z;
const emails = [regexes.email, regexes.html5Email, regexes.browserEmail, regexes.rfc5322Email, regexes.unicodeEmail];
const expressions = [regexes.domain, regexes.lowercase, regexes.sha1_base64, /^(?=.*b)[a-d]{2,5}$/, /^x{2,}y?$/];
const precisions = [null, -1, 0, 1, 3, 6];

/** Formats with drawn arguments; all other formats have no arguments. */
const drawn: Readonly<Record<string, (random: Random) => z.ZodType>> = {
  email: (random) => z.email({ pattern: pick(random, emails) }),
  uuid: (random) => z.uuid({ version: pick(random, ["v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8"]) }),
  mac: (random) => z.mac({ delimiter: pick(random, [":", "-", ".", ""]) }),
  nanoid: (random) => z.nanoid({ length: 1 + Math.floor(random() * 40) }),
  hash: (random) =>
    z.hash(pick(random, ["md5", "sha1", "sha256", "sha384", "sha512"]), {
      enc: pick(random, ["hex", "base64", "base64url"]),
    }),
  stringFormat: (random) => z.stringFormat("drawn", pick(random, expressions)),
  "iso.datetime": (random) =>
    z.iso.datetime({ precision: pick(random, precisions), offset: flag(random), local: flag(random) }),
  "iso.time": (random) => z.iso.time({ precision: pick(random, precisions) }),
};

/** Finds every function that makes a string format, so that those of a later version are tested too. */
function found(): Map<string, (random: Random) => z.ZodType> {
  const all = [...Object.entries(z), ...Object.entries(z.iso).map(([name, own]) => [`iso.${name}`, own] as const)];
  const made = new Map<string, (random: Random) => z.ZodType>();
  for (const [name, own] of all) {
    if (typeof own !== "function" || !/^(iso\.)?[a-z]/.test(name)) continue;
    let format: unknown;
    try {
      format = (own as () => unknown)();
    } catch {} // the format requires arguments
    if (format instanceof Promise) format.catch(() => undefined);
    if (format instanceof z.core.$ZodStringFormat) made.set(name, own as () => z.ZodType);
  }
  for (const [name, own] of Object.entries(drawn)) made.set(name, own);
  return made;
}
const functions = found();

/** Formats with a checksum that no expression can state. */
const checksums: ReadonlySet<string> = new Set(["credit_card", "iban"]);

/** Texts that differ from a given one in one character. */
function* near(own: string, random: Random): Generator<string> {
  const points = [...own];
  for (let count = 0; count < 8; count++) {
    const place = Math.floor(random() * (points.length + 1));
    yield points.toSpliced(place, 1).join("");
    yield points.toSpliced(place, flag(random) ? 1 : 0, pick(random, [..."aZ09-_.:/@+= é", "😀"])).join("");
  }
}

test("zod has the formats that the table has arguments for", () => {
  expect([...functions.keys()]).toEqual(expect.arrayContaining(["hostname", "jwt", "iso.duration", "ksuid", "emoji"]));
  expect(functions.size).toBeGreaterThan(30);
});

test("zod writes the same schema for http URLs as for others, so they are not distinguished", () => {
  expect(z.toJSONSchema(z.httpUrl())).toEqual(z.toJSONSchema(z.url()));
});
functions.delete("httpUrl");

test.each([...functions.keys()])("texts of the zod format are valid: %s", async (name) => {
  const random = randomFrom(11);
  let count = 0;
  for (let at = 0; at < repeats({ usual: name in drawn ? 8 : 1, all: 30 }); at++) {
    const format = functions.get(name)!(random);
    const schema = z.toJSONSchema(format);
    if (checksums.has(schema.format!)) {
      const message = expect.stringMatching(`schema.format: ${schema.format} `);
      await expect(SchemaForm.of(schema)).rejects.toThrow(expect.objectContaining({ code: "invalidSchema", message }));
      count++;
      continue;
    }
    using form = await SchemaForm.of(schema);
    for (let draw = 0; draw < repeats({ usual: 5, all: 30 }); draw++) {
      const said = await form.drawn(random, 900);
      if (said === undefined) continue;
      count++;
      const own = JSON.parse(said) as string;
      expect([own, format.safeParse(own).error?.message]).toEqual([own, undefined]);
      for (const other of near(own, random))
        if (await form.accepts(JSON.stringify(other)))
          expect([other, format.safeParse(other).error?.message]).toEqual([other, undefined]);
    }
  }
  expect(count).toBeGreaterThan(0);
});

test("the error for a format that a function checks names it", async () => {
  const schema = z.toJSONSchema(z.stringFormat("even-length", (own: string) => own.length % 2 === 0));
  await expect(SchemaForm.of(schema)).rejects.toThrow(/schema\.format: .*got even-length/);
});

test("bounds that every host name satisfies are accepted", async () => {
  using form = await SchemaForm.of(z.toJSONSchema(z.hostname().min(1).max(253)));
  expect(await form.accepts('"www.example.org"')).toBe(true);
  expect(await form.accepts('""')).toBe(false);
});
