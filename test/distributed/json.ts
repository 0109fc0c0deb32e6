/** Replaces numbers that JSON lacks by strings: `NaN`, `-0`, `12n`. */
export const toJson = (_: string, value: unknown): unknown => {
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "number" && (!Number.isFinite(value) || Object.is(value, -0)))
    return `#${Object.is(value, -0) ? "-0" : value}`;
  return value;
};

/** Restores the numbers that {@link toJson} replaced. */
export const fromJson = (_: string, value: unknown): unknown => {
  if (typeof value !== "string") return value;
  if (/^-?\d+n$/.test(value)) return BigInt(value.slice(0, -1));
  return value.startsWith("#") ? Number(value.slice(1)) : value;
};
