/** Schemas written by zod: zod accepts every text that such a schema permits. */
import { expect, test } from "bun:test";
import { z } from "zod";
import { repeats } from "../../support/repeats.ts";
import { randomFrom } from "./held_to.ts";
import { SchemaForm } from "./schema_forms.ts";

const node: z.ZodType = z.object({ name: z.string().max(2), children: z.array(z.lazy(() => node)).max(1) });

const schemas: Readonly<Record<string, z.ZodType>> = {
  email: z.email(),
  url: z.url(),
  uuid: z.uuid(),
  guid: z.guid(),
  ulid: z.ulid(),
  nanoid: z.nanoid(),
  cuid: z.cuid().max(12),
  e164: z.e164(),
  base64: z.base64().max(8),
  ipv4: z.ipv4(),
  ipv6: z.ipv6(),
  cidr: z.cidrv4(),
  "date-time": z.iso.datetime(),
  offset: z.iso.datetime({ offset: true }),
  date: z.iso.date(),
  time: z.iso.time(),
  duration: z.iso.duration(),
  int: z.int(),
  int32: z.int32(),
  float32: z.float32(),
  float64: z.float64(),
  number: z.number(),
  positive: z.number().positive(),
  range: z.number().gt(0.5).lt(3),
  percent: z.number().min(0).max(1),
  steps: z.number().multipleOf(0.5).min(-10).max(10),
  even: z.int().multipleOf(2),
  big: z.int().min(1e6),
  edges: z.string().startsWith("a").endsWith("b").min(3).max(20),
  part: z.string().includes("xy").max(9),
  upper: z.string().uppercase().max(5),

  expression: z
    .string()
    .regex(/^[a-z]+$/)
    .max(5),
  two: z.string().regex(/a/).regex(/b/).max(6),
  record: z.record(z.string().max(3), z.boolean()),
  keys: z.record(z.enum(["a", "b"]), z.int32()),
  partial: z.partialRecord(z.enum(["a", "b"]), z.boolean()),

  tuple: z.tuple([z.boolean(), z.int32()]),
  rest: z.tuple([z.boolean()], z.null()),
  few: z.array(z.int32()).min(1).max(3),
  union: z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("a"), x: z.int32() }),
    z.object({ kind: z.literal("b"), y: z.boolean().optional() }),
  ]),
  exclusive: z.xor([z.boolean(), z.int32()]),
  both: z.intersection(z.object({ a: z.int32() }), z.object({ b: z.boolean() })),
  loose: z.looseObject({ a: z.int32() }),
  catchall: z.object({ a: z.int32() }).catchall(z.boolean()),

  literals: z.literal([1, "a", null, true]),
  nullable: z.iso.date().nullable(),
  optional: z.object({ a: z.int32().optional() }),
  template: z.templateLiteral(["v", z.int().min(0).max(99), "-", z.enum(["a", "b"])]),
  tree: node,
};

/** Each draft for which zod writes schemas. */
const targets = ["draft-2020-12", "draft-7"] as const;

test.each(Object.keys(schemas))("texts are valid by zod: %s", async (name) => {
  const schema = schemas[name];
  const random = randomFrom(7);
  let found = 0;
  for (const target of targets) {
    using form = await SchemaForm.of(z.toJSONSchema(schema, { target }));
    for (let at = 0; at < repeats({ usual: 4, all: 60 }); at++) {
      const said = await form.drawn(random, 600);
      if (said === undefined) continue;
      found++;
      expect([said, schema.safeParse(JSON.parse(said)).error?.message]).toEqual([said, undefined]);
    }
  }
  expect(found).toBeGreaterThan(0);
});
