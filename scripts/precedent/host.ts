/**
 * Finds the uses of Metal's interface in Objective-C and C++ programs, under Swift's names. It is one framework, and
 * its names are translated by rules.
 */
import type { SourceFile } from "./preprocessor.ts";

const lowerFirst = (name: string): string => name.charAt(0).toLowerCase() + name.slice(1);
const upperFirst = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);

/**
 * @param types Metal's types; a longer name that begins with one is a case of it
 * @param methods the methods to look for, such as `makeBuffer(length:options:)`
 */
export function readHost(
  { text }: SourceFile,
  types: ReadonlySet<string>,
  members: ReadonlySet<string>,
  methods: readonly string[],
): Set<string> {
  const found = new Set<string>();
  const words = new Set([...text.matchAll(/\bMTL(?:::)?\w+/g)].map(([name]) => name.replace("::", "")));
  if (words.size === 0) return found;
  for (const word of words) for (const construct of wordConstructs(word, types)) found.add(construct);
  for (const [, name, setter] of text.matchAll(/(?:\.|->|\w\s+|\]\s*)(?:set([A-Z]\w*)|([a-z]\w+))\b/g)) {
    const member = name ? lowerFirst(name) : setter;
    if (members.has(member)) found.add(`member ${member}`);
  }
  for (const method of methods) if (callsOf(method).some((call) => text.includes(call))) found.add(`method ${method}`);
  return found;
}

function wordConstructs(word: string, types: ReadonlySet<string>): string[] {
  if (types.has(word)) return [`type ${word}`];
  for (let length = word.length - 1; length > 4; length--) {
    const type = word.slice(0, length);
    if (!types.has(type)) continue;
    const rest = word.slice(length);
    const name = /^\d/.test(rest) && type === "MTLLanguageVersion" ? `version${rest}` : lowerFirst(rest);
    return [`type ${type}`, `type ${word}`, `member ${type}.${name}`, `member ${name}`];
  }
  return [];
}

/** Returns the calls of a method in Objective-C and in C++: `newBufferWithLength:`, `->newBuffer(`. */
function callsOf(method: string): string[] {
  const [name, labels] = method.slice(0, -1).split("(") as [string, string];
  const [first] = labels.split(":");
  const names = name.startsWith("make") ? [`new${name.slice(4)}`, lowerFirst(name.slice(4))] : [name];
  return names.flatMap((other) => {
    const selector = !first ? `${other}]` : first === "_" ? `${other}:` : `${other}With${upperFirst(first)}:`;
    return [` ${selector}`, `->${other}(`];
  });
}
