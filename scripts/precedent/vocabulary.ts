/** Keywords, and functions with known result types. */
import { common, plain, shapeOf, type Type, vectorOf } from "./types.ts";

export const keywords: ReadonlySet<string> = new Set(
  `alignas alignof as_type asm auto break case catch class const const_cast constexpr constant continue coherent
   decltype default delete device do dynamic_cast else enum explicit extern false final for fragment friend goto if
   inline kernel mutable namespace new noexcept nullptr operator override private protected public ray_data register
   reinterpret_cast requires concept return sizeof static static_assert static_cast struct switch template this thread
   thread_local threadgroup threadgroup_imageblock object_data throw true try typedef typeid typename typeof union using
   vertex virtual volatile while consteval constinit co_await co_return char8_t wchar_t double restrict intersection
   visible mesh object`
    .trim()
    .split(/\s+/),
);

export const spaces: ReadonlySet<string> = new Set([
  "device",
  "constant",
  "thread",
  "threadgroup",
  "threadgroup_imageblock",
  "ray_data",
  "object_data",
]);

/** Specifiers before or after a declaration's type. */
export const specifiers: ReadonlySet<string> = new Set([
  "static",
  "inline",
  "constexpr",
  "const",
  "volatile",
  "extern",
  "mutable",
  "kernel",
  "vertex",
  "fragment",
  "explicit",
  "friend",
  "virtual",
  "register",
  "typename",
  "coherent",
  "visible",
  "intersection",
  ...spaces,
]);

/** Casts: called like functions, with a type in angle brackets. */
export const casts: ReadonlySet<string> = new Set([
  "as_type",
  "static_cast",
  "reinterpret_cast",
  "const_cast",
  "dynamic_cast",
]);

const boolean =
  /^(is[a-z]+|signbit|any|all|simd_(any|all|is_first|vote\w*)|quad_(any|all)|is_function_constant_defined)$/;
const ofElement = /^(dot|length|length_squared|distance|distance_squared)$/;
const unsigned = /^(popcount|clz|ctz)$/;
const likeFirst = new RegExp(
  "^((precise|fast)::)?(a?(cos|sin|tan)(h|pi)?|atan2|ceil|copysign|divide|exp(2|10)?|fabs|fdim|floor|fmod|fract|" +
    "ldexp|log(2|10)?|modf|frexp|nextafter|powr?|rint|round|r?sqrt|trunc|sign|saturate|sincos|normalize|cross|" +
    "reverse_bits|simd_\\w+|quad_\\w+|select|extract_bits|insert_bits|rotate)$",
);
const ofAll =
  /^((precise|fast)::)?(fma|mad|f?(min|max|median)3?|clamp|mix|abs|absdiff|step|smoothstep|hadd|rhadd|mulhi)$/;

/** Returns the result type of a Metal function for these arguments, in simple cases. */
export function resultOf(name: string, types: readonly (Type | undefined)[]): Type | undefined {
  const first = types[0];
  const shape = first && first.depth === 0 ? shapeOf(first.base) : undefined;
  if (boolean.test(name)) return plain(name.startsWith("is") && shape ? vectorOf("bool", shape.count) : "bool");
  if (ofElement.test(name)) return shape && plain(shape.element);
  if (unsigned.test(name) || likeFirst.test(name)) return first?.depth === 0 ? first : undefined;
  if (ofAll.test(name)) return types.every((type) => type?.base === first?.base) ? first : types.reduce(common);
  if (/^atomic_(load|exchange|fetch_\w+)_explicit$/.test(name)) return atomicValue(first);
  return undefined;
}

/** `atomic_uint` and `atomic<uint>` contain a `uint`. */
function atomicValue(type: Type | undefined): Type | undefined {
  const found = /^atomic(?:_(\w+)|<(\w+)>)$/.exec(type?.base ?? "");
  return found ? plain(found[1] ?? found[2]) : undefined;
}
