/**
 * The elementwise operations: an operation's code is its place. `kernels/elementwise/codes.h` and `native/cpu/elementwise/operations.h`
 * have the same lists; a test compares them.
 */
const words = <Text extends string>(text: Text) => text.split(" ") as unknown as readonly Words<Text>[];

type Words<Text extends string> = Text extends `${infer First} ${infer Rest}` ? First | Words<Rest> : Text;

export const unaryNames = words(
  "neg abs sign square relu floor ceil round reciprocal sqrt rsqrt exp exp2 expm1 log log2 log10 log1p tanh sigmoid erf sin cos tan gelu geluTanh silu bitwiseNot logicalNot isnan isinf isfinite",
);
export type UnaryName = (typeof unaryNames)[number];

export const binaryNames = words(
  "add sub mul div floorDivide truncDivide remainder fmod pow maximum minimum atan2 swiglu geluGradient geluTanhGradient siluGradient bitwiseAnd bitwiseOr bitwiseXor eq ne lt le gt ge logicalAnd logicalOr logicalXor",
);
export type BinaryName = (typeof binaryNames)[number];

export const ternaryNames = words("where clamp lerp softplus");
export type TernaryName = (typeof ternaryNames)[number];

/** A table of primitives, or of anything else, by name. */
export const byName = <Name extends string, Value>(
  names: readonly Name[],
  make: (name: Name) => Value,
): Readonly<Record<Name, Value>> => Object.fromEntries(names.map((name) => [name, make(name)])) as Record<Name, Value>;
