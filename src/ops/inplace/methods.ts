/** All in-place methods that are not also functions, by name. */
import { inPlace } from "./in_place.ts";
import { randomRows } from "./random.ts";
import { inPlaceRows } from "./rows.ts";

/** Functions with the parameters that the methods take after the tensor. */
export type InPlaceRows = typeof inPlaceRows & typeof randomRows;

/** The methods; each returns the tensor that it changed. */
export const inPlaceMethods: Readonly<Record<string, (...values: never) => unknown>> = {
  ...Object.fromEntries(Object.entries(inPlaceRows).map(([name, compute]) => [name, inPlace(name, compute)])),
  ...randomRows,
};
