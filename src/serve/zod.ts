/** The parts of zod that the server uses, so that the package bundles nothing else of zod. */
import {
  array,
  boolean,
  custom,
  discriminatedUnion,
  enum as enumeration,
  int,
  literal,
  never,
  number,
  object,
  record,
  strictObject,
  string,
  union,
  unknown,
} from "zod";

export const z = {
  ...{ array, boolean, custom, discriminatedUnion, enum: enumeration, int, literal, never, number, object, record },
  ...{ strictObject, string, union, unknown },
};
