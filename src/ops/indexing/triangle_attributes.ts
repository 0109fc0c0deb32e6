/** Which elements of a matrix stay. */
export interface TriangleAttributes {
  /** Those where column ≤ row + diagonal; else those where column ≥ row + diagonal. */
  readonly lower: boolean;
  readonly diagonal: number;
}
