/** Oracles that tell, for each position of a result, where its value comes from. */
import type { Block } from "./samples.ts";
import type { Expected } from "./table.ts";

export type Coordinates = readonly number[];

/** Row-major indices of a shape's positions. */
export const numberOf = (shape: readonly number[], place: Coordinates): number =>
  place.reduce((number, coordinate, axis) => number * shape[axis] + coordinate, 0);

export const valueAt = ({ shape, values }: Block, place: Coordinates): number => values[numberOf(shape, place)];

/** Every position of a shape, row-major. */
export function placesOf(shape: readonly number[]): number[][] {
  return shape.reduce<number[][]>(
    (places, size) => places.flatMap((place) => Array.from({ length: size }, (_, index) => [...place, index])),
    [[]],
  );
}

/** A result with this shape, from the value at each position. */
export const resultOf = (shape: readonly number[], value: (place: Coordinates) => number): Expected => ({
  shape,
  values: placesOf(shape).map(value),
});

export const replaced = (place: Coordinates, axis: number, index: number): number[] => place.with(axis, index);
