/** Kinds of parameters of layers: sizes, probabilities and initializations. */
import { ArgumentError, DTypeError } from "../../core/errors.ts";
import { aNumber, instanceOf, listOf } from "../../core/kinds.ts";
import { count, notNegative } from "../../core/options.ts";
import { type Kind, named, unknownOption } from "../../core/parameters.ts";
import type { RopeScaling } from "../../ops/position/rope.ts";
import { Generator } from "../../random/generator.ts";
import { type FloatDType, isDType, isFloat } from "../../tensor/dtype.ts";
import type { Initialization } from "./initialization.ts";

/** A whole number of at least 1. */
export const size: Kind<number> = {
  ...aNumber({ ...count, expected: "a whole number of at least 1" }),
  error: [ArgumentError, "invalidSize"],
};

/** A position in a sequence, or a number of tokens. */
export const position: Kind<number> = aNumber({
  holds: (value) => Number.isSafeInteger(value) && value >= 0,
  expected: "a whole number of at least 0",
});

/** Far more than any model has. This limit keeps a mistaken number from exhausting memory. */
const MOST_LAYERS = 65_536;

/** A number of layers. */
export const layerCount: Kind<number> = {
  ...aNumber({
    holds: (value) => count.holds(value) && value <= MOST_LAYERS,
    expected: `a whole number of at least 1 and at most ${MOST_LAYERS}`,
  }),
  error: [ArgumentError, "invalidSize"],
};

/** The attention window of each layer, in tokens. */
export const windowList: Kind<number[]> = listOf(
  aNumber({ holds: (value) => value === Infinity || count.holds(value), expected: "a window" }),
  "a list of whole numbers of at least 1, or Infinity",
);

/** A probability below 1. */
export const probability: Kind<number> = {
  ...aNumber({ holds: (value) => value >= 0 && value < 1, expected: "a probability in [0, 1)" }),
  error: [ArgumentError, "invalidProbability"],
};

/** A number added under a square root. */
export const epsilon: Kind<number> = aNumber(notNegative);

/** A dtype of parameters. */
export const floatDType: Kind<FloatDType> = {
  expected: "a float dtype",
  parse: (value) => (isDType(value) && isFloat(value) ? value : undefined),
  error: [DTypeError, "notAFloat"],
};

export const aGenerator: Kind<Generator> = instanceOf(Generator, "a Generator");

const initializers = ["weight", "residual", "bias", "embedding"] as const satisfies (keyof Initialization)[];

/** An object with an initializer for each kind of parameter. */
export const anInitialization: Kind<Initialization> = {
  expected: `an object with the functions ${initializers.join(", ")}`,
  parse(value) {
    if (typeof value !== "object" || value === null) return undefined;
    const initialization = value as Initialization;
    return initializers.every((name) => typeof initialization[name] === "function") ? initialization : undefined;
  },
};

/** Options common to all layers. */
export const layerParameters = {
  dtype: named(floatDType),
  generator: named(aGenerator),
  initialization: named(anInitialization),
} as const;

/** The scaling of rotary position embeddings; `rope` checks its numbers. */
export const ropeScaling: Kind<RopeScaling> = {
  expected: "an object with a type",
  parse: (value) => (typeof value === "object" && value !== null ? { ...(value as RopeScaling) } : undefined),
};

/** An object of options. It is copied; its values are checked where they are used. */
export const optionsNamed = <O extends object>(...names: readonly (keyof O & string)[]): Kind<O> => ({
  expected: `an object of options (${names.join(", ")})`,
  parse(value, operation, name) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    for (const field of Object.keys(value))
      if (!names.includes(field as keyof O & string)) throw unknownOption(operation, `${name}.${field}`, names);
    return { ...(value as O) };
  },
});
