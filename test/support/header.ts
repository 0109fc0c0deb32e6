import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A C function of `orchard.h`: its result and its parameters' types, as written. */
export interface CFunction {
  name: string;
  returns: string;
  parameters: string[];
}

/** A C struct: its fields in order, with array lengths resolved. */
export interface CStruct {
  name: string;
  fields: { name: string; type: string; count: number }[];
}

const path = join(import.meta.dir, "..", "..", "swift", "Sources", "COrchard", "include", "orchard.h");

/** Reads `orchard.h`, which is plain C: regular expressions find functions and structs. */
export function readHeader(text = readFileSync(path, "utf8")) {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/\/\/[^\n]*/g, "");
  return { text, functions: functionsOf(code), structs: structsOf(code), constants: constantsOf(code) };
}

function functionsOf(code: string): CFunction[] {
  return [
    ...code.matchAll(/^\s*(?:ORCHARD_CPU_API\s+)?(int32_t|void \*|void)\s*\b(orchard_\w+)\s*\(([^)]*)\)\s*;/gm),
  ].map((match) => ({
    name: match[2] as string,
    returns: (match[1] as string).trim(),
    parameters: (match[3] as string)
      .split(",")
      .map((parameter) => parameter.trim())
      .filter((parameter) => parameter !== "void" && parameter !== "")
      .map((parameter) =>
        parameter
          .replace(/\s*\b\w+$/, "")
          .replace(/\s+\*/g, " *")
          .trim(),
      ),
  }));
}

function structsOf(code: string): CStruct[] {
  const constants = constantsOf(code);
  return [...code.matchAll(/typedef struct (orchard_\w+) \{([^}]*)\}/g)].map((match) => ({
    name: match[1] as string,
    fields: (match[2] as string)
      .split(";")
      .map((line) => line.trim())
      .filter(Boolean)
      .flatMap((line) => fieldsOf(line, constants)),
  }));
}

function fieldsOf(line: string, constants: Map<string, number>) {
  const [, type, rest] = /^(\w+)\s+(.*)$/s.exec(line) as RegExpExecArray;
  return (rest as string).split(",").map((declarator) => {
    const [, name, length] = /^\s*(\w+)\s*(?:\[(\w+)\])?\s*$/.exec(declarator) as RegExpExecArray;
    const count = length === undefined ? 1 : (constants.get(length) ?? Number(length));
    return { name: name as string, type: type as string, count };
  });
}

function constantsOf(code: string): Map<string, number> {
  return new Map(
    [...code.matchAll(/\b(ORCHARD_\w+)\s*=\s*(\d+)/g)].map((match) => [match[1] as string, Number(match[2])]),
  );
}

/** `live_bytes` → `liveBytes`. */
export function camelCase(name: string): string {
  return name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}
