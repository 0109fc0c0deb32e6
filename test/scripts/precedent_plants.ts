/**
 * Plants in our sources: each replaces a legal construct by one that is illegal or without precedent, and states how
 * the check must report it. Random choices are numbers from 0 up to 1.
 */
import type { SourceFile } from "../../scripts/precedent/preprocessor.ts";

/** Draws a number in [0, 1). */
export type Draw = () => number;

export interface Planted {
  readonly file: SourceFile;
  readonly line: number;
  /** Text that the construct's name must contain. */
  readonly construct: string;
}

type Plant = (files: readonly SourceFile[], draw: Draw) => Planted;

const pick = <Item>(items: readonly Item[], draw: Draw): Item => items[Math.floor(draw() * items.length)]!;

/** A name that no project uses. */
const word = (draw: Draw): string => Array.from({ length: 6 }, () => pick([..."bcdfghjklmnpqrstvwz"], draw)).join("");

/** A name with one letter too many. */
function misspelt(name: string, draw: Draw): string {
  const at = 1 + Math.floor(draw() * (name.length - 1));
  return `${name.slice(0, at)}${pick([..."bhjkqwz"], draw)}${name.slice(at)}`;
}

interface Place {
  readonly file: SourceFile;
  readonly start: number;
  readonly found: RegExpMatchArray;
}

/** A place of the pattern outside of comments, in one of the files. */
function placeOf(files: readonly SourceFile[], pattern: RegExp, draw: Draw): Place {
  const places = files.flatMap((file) =>
    [...withoutComments(file.text).matchAll(pattern)].map((found) => ({ file, start: found.index, found })),
  );
  return pick(places, draw);
}

const withoutComments = (text: string): string =>
  text.replace(/\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, " "));

/** Inserts a text at the place. */
function put({ file: { path, text }, start, found }: Place, replacement: string, construct: string): Planted {
  const end = start + found[0].length;
  const offset = found[0].length - found[0].trimStart().length;
  const line = text.slice(0, start + offset).split("\n").length;
  return { file: { path, text: text.slice(0, start) + replacement + text.slice(end) }, line, construct };
}

/** Replaces each match of the pattern by the result of `write`. */
const replaced =
  (
    pattern: RegExp,
    write: (found: RegExpMatchArray, draw: Draw) => readonly [text: string, construct: string],
  ): Plant =>
  (files, draw) => {
    const place = placeOf(files, pattern, draw);
    return put(place, ...write(place.found, draw));
  };

/** Inserts a statement after the opening brace of a function. */
const statement = (write: (draw: Draw) => readonly [text: string, construct: string]): Plant =>
  replaced(/(?<=\)) \{(?=\n {4}\w)/g, (_, draw) => {
    const [text, construct] = write(draw);
    return [` { ${text}`, construct];
  });

/** Puts a line before a kernel's template. */
const line = (write: (draw: Draw) => readonly [text: string, construct: string]): Plant =>
  replaced(/(?<=^)(?=template <)/gm, (_, draw) => {
    const [text, construct] = write(draw);
    return [`${text}\n`, construct];
  });

const positions = "thread_position_in_grid|threadgroup_position_in_grid|thread_position_in_threadgroup";
const wrongPositions = ["ulong", "int", "long", "float", "half", "char", "bool", "uint4", "ulong2", "int3", "float2"];
const wrongSizes = ["float4 int2", "uint uint2", "half2 ulong", "uchar4 half", "float ushort", "long float3"];

/** Integers of at most 32 bits count as one type. */
const kind = (type: string): string => type.replace(/^u?int/, "integer");

const keywords = [
  ["goto planted;", "goto"],
  ["thread_local int planted;", "thread_local"],
  ["co_await planted;", "co_await"],
  ["(void)typeid(int);", "typeid"],
  ['asm("");', "asm"],
  ["try {}", "try"],
] as const;

export const kernelPlants: Readonly<Record<string, Plant>> = {
  "as_type as a member of a namespace": replaced(/\bas_type(?=<)/g, () => ["metal::as_type", "name metal::as_type"]),
  "a position of a wrong type": replaced(
    new RegExp(`\\bu?int[23]?(?= \\w+ \\[\\[(${positions})\\]\\])`, "g"),
    (found, draw) => {
      const type = pick(wrongPositions, draw);
      return [type, `attribute ${type} [[${found[1]}]]`];
    },
  ),
  "a position of a wrong type under another name": line((draw) => {
    const type = pick(wrongPositions, draw);
    const alias = pick([`using Planted = ${type};`, `typedef ${type} Planted;`], draw);
    const attribute = pick(positions.split("|"), draw);
    const text = `${alias} kernel void planted(Planted i [[${attribute}]]);`;
    return [text, `attribute ${type} [[${attribute}]]`];
  }),
  "a suffix of a number": replaced(/(?<=\d\.\d+)f\b/g, (_, draw) => {
    const suffix = pick(["q", "bf", "z", "d", "F16", "hf", "w"], draw);
    return [suffix, `${suffix}`];
  }),
  "a number with another base": replaced(/(?<=[a-z] = )[1-9](?=;)/g, (found, draw) => {
    const text = pick([`0${found[0]}`, `0x1p${found[0]}f`, `0x${found[0]}ull`, `0b1${"'"}01z`], draw);
    return [text, "literal "];
  }),
  "a pragma": line((draw) => {
    const name = word(draw);
    return [`#pragma clang loop ${name}(enable)`, `pragma clang loop ${name}(enable)`];
  }),
  "a pragma in a macro": statement((draw) => {
    const name = word(draw);
    return [`_Pragma("clang loop ${name}(full)") for (;;) {}`, `pragma clang loop ${name}(full)`];
  }),
  "an invented function": replaced(
    /\b(simd_sum|simd_max|fma|fabs|clamp|isfinite|rint|simd_shuffle_xor|threadgroup_barrier)(?=\()/g,
    (found, draw) => {
      const name = misspelt(found[0], draw);
      return [name, name];
    },
  ),
  "an invented precise function": replaced(/\bprecise::(\w+)(?=\()/g, (found, draw) => {
    const name = `precise::${misspelt(found[1], draw)}`;
    return [name, name];
  }),
  "arguments that a function does not take": statement((draw) => {
    const call = pick(["simd_sum(1ul)", "popcount(1.0f)", "clz(2.0h)", "fma(1, 2, 3)", "simd_ballot(3.0f)"], draw);
    return [`(void)${call};`, `call ${call.split("(", 1)[0]}(`];
  }),
  // Names that no header of ours declares: rint is a function of common/functions.h.
  "a number of arguments": statement((draw) => {
    const name = pick(["simd_sum", "fabs", "simd_max", "isnan"], draw);
    return [`(void)${name}(1.0f, 2.0f, 3.0f);`, `call ${name}(float, float, float)`];
  }),
  "an invented flag": replaced(/\bmem_flags::(mem_\w+)/g, (found, draw) => {
    const name = `mem_flags::${misspelt(found[1], draw)}`;
    return [name, name];
  }),
  "an invented attribute": replaced(/(?<=\[\[)thread\w+(?=\]\])/g, (found, draw) => {
    const name = misspelt(found[0], draw);
    return [name, `[[${name}]]`];
  }),
  "a form of an address space": line((draw) => {
    const space = pick(["device", "constant", "threadgroup"], draw);
    const marks = pick(
      [
        ["**", "* *"],
        ["&&", "&&"],
        ["* const * const ", "* const * const"],
      ] as const,
      draw,
    );
    return [`inline void planted(${space} int ${marks[0]}x);`, `space parameter ${space} T ${marks[1]}`];
  }),
  "types of two sizes": statement((draw) => {
    const [to, from] = pick(wrongSizes, draw).split(" ");
    return [`${from} planted = 0; (void)as_type<${to}>(planted);`, `convert as_type<${to}>(${from})`];
  }),
  "vectors of two types": statement((draw) => {
    const [to, from] = pick(
      ["float4 half4", "half4 float4", "float3 float4", "int2 float2", "uint4 float4"],
      draw,
    ).split(" ");
    return [`${from} from; ${to} planted = from;`, `convert ${kind(to)} = ${kind(from)}`];
  }),
  "an order of memory": statement((draw) => {
    const order = `memory_order_${pick(["acquire", "release", "acq_rel", "seq_cst", "consume"], draw)}`;
    return [
      `device atomic_uint *planted = 0; (void)atomic_load_explicit(planted, ${order});`,
      `call atomic_load_explicit(device atomic_uint *, ${order})`,
    ];
  }),
  "a keyword": statement((draw) => {
    const [text, name] = pick(keywords, draw);
    return [text, `keyword ${name}`];
  }),
  "a test of the preprocessor": line((draw) => {
    const name = `__${word(draw).toUpperCase()}__`;
    return [`#if ${name}\n#endif`, `test #if ${name}`];
  }),
  "a header": line((draw) => {
    const name = `metal_${word(draw)}`;
    return [`#include <${name}>`, `include <${name}>`];
  }),
  "a parameter of a template": line((draw) => {
    const type = pick(["half", "float2", "uchar", "ulong", "simdgroup_float8x8"], draw);
    return [`template <${type} planted> struct Planted;`, `form template <${type}>`];
  }),
  "a matrix of another type": statement((draw) => {
    const type = pick(["int", "uint", "char", "long", "bool"], draw);
    return [`simdgroup_matrix<${type}, 4, 4> planted;`, `template simdgroup_matrix<${type}, 4, 4>`];
  }),
  "a member of a vector": statement((draw) => {
    const name = pick(["xyq", "zzzz", "stpq", "s0"], draw).concat(pick(["b", "v"], draw));
    return [`float4 planted; (void)planted.${name};`, `member ${name}`];
  }),
};

/** Metal's names that the Swift sources use: members, and labels after the names of methods. */
const members =
  "label|rawValue|functionNames|threadExecutionWidth|computeFunction|maxThreadsPerThreadgroup|maxBufferLength";
const member = new RegExp(String.raw`(?<=[a-z)\]?!]\.)(${members})\b(?! *[({:])`, "g");
const methods = String.raw`dispatch\w+|makeFunction|makeComputeCommandEncoder|makeBinaryArchive`;
const labels = "threadsPerThreadgroup|constantValues|dispatchType|descriptor";
const label = new RegExp(String.raw`(?<=\.(?:${methods})\([^()\n]*)\b(${labels})(?=: )`, "g");

export const swiftPlants: Readonly<Record<string, Plant>> = {
  "an unknown property": replaced(member, (found, draw) => {
    const name = misspelt(found[0], draw);
    return [name, `member ${name}`];
  }),
  "an unknown case": replaced(
    /(?<=[[( ]\.)(storageModeShared|storageModePrivate|concurrent|bindingInfo|failOnBinaryArchiveMiss|readOnly)\b/g,
    (found, draw) => {
      const name = misspelt(found[0], draw);
      return [name, `member ${name}`];
    },
  ),
  "a case of an enumeration by its name": replaced(/(?<=\n)(?= {8}let )/g, (_, draw) => {
    const [type, name] = pick(
      [
        ["MTLStorageMode", "shared"],
        ["MTLDispatchType", "serial"],
        ["MTLDataType", "float4"],
      ],
      draw,
    );
    const wrong = `${type}.${misspelt(name, draw)}`;
    return [`        _ = ${wrong}\n`, `member ${wrong}`];
  }),
  "an unknown method": replaced(
    /(?<=\.)(setBuffer|makeFunction|dispatchThreads|endEncoding|makeLibrary|setBytes)(?=\()/g,
    (found, draw) => {
      const name = misspelt(found[0], draw);
      return [name, `method ${name}(`];
    },
  ),
  "a label of a method": replaced(label, (found, draw) => {
    const name = misspelt(found[0], draw);
    return [name, `${name}:`];
  }),
  "an unknown type": replaced(/\bMTL[A-Z]\w+(?=[>?,) ])/g, (found, draw) => {
    const name = misspelt(found[0], draw);
    return [name, `type ${name}`];
  }),
  "a system that nobody asks for": replaced(/(?<=#available\(macOS )\d+/g, (_, draw) => {
    const version = String(40 + Math.floor(draw() * 50));
    return [version, `#available(macOS ${version}`];
  }),
  "an attribute": replaced(/@(unchecked|escaping|autoclosure)\b/g, (found, draw) => {
    const name = misspelt(found[0], draw);
    return [name, name];
  }),
};
