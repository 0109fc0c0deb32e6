/** Normal forms of constructs. */
import type { Declaration } from "./declarations.ts";
import { canonical, describeType, isBuiltInType, kindOf, type Type } from "./types.ts";
import { spaces } from "./vocabulary.ts";

/** Lanes, distances and sizes are integers of any size. */
export const argumentForm =
  (name: string) =>
  (type: Type | undefined, index: number): string =>
    index > 0 && /^(simd|quad|simdgroup)_/.test(name) && kindOf(type).startsWith("integer")
      ? "integer"
      : describeType(type);

/** Types that differ only in what they point to, or in their address space, count as equal. */
export function generalForm({ form }: Declaration): string {
  const words = form.split(" ").filter((word) => !/^(inline|static|typename|extern)$/.test(word));
  const hasSpace = words.some((word) => spaces.has(word));
  if (!hasSpace && !/[&*[]/.test(form)) return words.join(" ");
  return words.map((word) => (isBuiltInType(word) && word !== "void" ? "T" : word)).join(" ");
}

/** For arguments, constness and type aliases make no difference. */
export const valueForm = ({ form, type }: Declaration): string =>
  form
    .split(" ")
    .filter((word) => word !== "const")
    .map((word) => (word === "T" && type && isBuiltInType(type.base) ? type.base : canonical(word)))
    .join(" ");

/** `pragma clang loop unroll_count(N)` */
export const pragmaForm = (text: string): string =>
  `pragma ${text
    .trim()
    .replace(/\s+/g, " ")
    .replace(/\b\d+\b/g, "N")}`;
