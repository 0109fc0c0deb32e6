/** The constructs of other projects, and the number of projects that use each. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The two languages, each with a separate table. */
export type Language = "msl" | "swift";
export const languages: readonly Language[] = ["msl", "swift"];

export const tableFile = (language: Language): string => join(import.meta.dir, `${language}.tsv`);

/** The number of projects that use a construct. */
export type Counts = ReadonlyMap<string, number>;

/** A project and its version. */
export interface Origin {
  readonly project: string;
  readonly version: string;
}

const head = "# How many of these projects have a construct: `bun run precedent --corpus` writes it.";

export function tableText(origins: readonly Origin[], counts: Counts): string {
  const projects = origins.map(({ project, version }) => `# ${project} ${version}`);
  const rows = [...counts].map(([construct, count]) => `${construct}\t${count}`);
  return `${[head, ...projects.sort(), ...rows.sort()].join("\n")}\n`;
}

/** Looks up whether constructs have a precedent. */
export class Table {
  readonly #exact: ReadonlySet<string>;
  /** Cases of Metal's enumerations, which Swift names without their type. */
  readonly #cases = new Set<string>();
  /** The argument types of each function, by number of arguments. */
  readonly #signatures = new Map<string, string[][]>();

  constructor(constructs: Iterable<string>) {
    this.#exact = new Set(constructs);
    for (const construct of this.#exact) {
      const name = /^member MTL\w+\.(\w+)$/.exec(construct)?.[1];
      if (name) this.#cases.add(name);
      const signature = signatureOf(construct);
      if (!signature) continue;
      const known = this.#signatures.get(signature.name);
      if (known) known.push(signature.types);
      else this.#signatures.set(signature.name, [signature.types]);
    }
  }

  static read(language: Language): Table {
    const lines = readFileSync(tableFile(language), "utf8").split("\n");
    return new Table(lines.filter((line) => line && !line.startsWith("# ")).map((line) => line.split("\t")[0]));
  }

  /**
   * An unknown type, or a template parameter, matches any type; a parameter of another project's template matches at
   * least float.
   */
  has(construct: string): boolean {
    if (this.#exact.has(construct)) return true;
    // If `metal::f` has a precedent, so has `f`, but not vice versa, since keywords are not members.
    if (construct.startsWith("member ")) return this.#cases.has(construct.slice(7));
    if (/^(function|method) /.test(construct)) return this.#hasCall(construct);
    if (construct.startsWith("name ")) return this.#exact.has(construct.replace("name ", "name metal::"));
    if (construct.startsWith("template ")) return isOpen(construct) && this.#hasTemplate(construct);
    const signature = signatureOf(construct);
    if (!signature) return false;
    return (this.#signatures.get(signature.name) ?? []).some((types) =>
      types.every((type, index) => isLike(signature.types[index], type)),
    );
  }

  #hasTemplate(construct: string): boolean {
    const start = construct.slice(0, construct.indexOf("<") + 1);
    return [...this.#exact].some((each) => each.startsWith(start) && isLike(construct, each));
  }

  /** In Swift, a call of a method on `self` looks like a function, and a closure may follow the parentheses. */
  #hasCall(construct: string): boolean {
    const [, kind, name, labels] = /^(function|method) (\w+)\((.*)\)$/.exec(construct)!;
    const kinds = kind === "function" ? ["function", "method"] : ["method"];
    const trailing = labels.replace(/_:$/, "");
    return (
      kinds.some((kind) => [labels, trailing].some((form) => this.#exact.has(`${kind} ${name}(${form})`))) ||
      (trailing === "" && this.#exact.has(`member ${name}`))
    );
  }
}

/** `call f(float, _)`: the name with the number of arguments, and their types. */
function signatureOf(construct: string): { readonly name: string; readonly types: string[] } | undefined {
  const found = /^(call [^(]+|convert (?:as_type<(?<target>[^(]+)>|[^(]+))\((?<types>.*)\)$/.exec(construct);
  if (!found) return undefined;
  const { target, types: listed } = found.groups!;
  const types = listed === "" ? [] : listed.split(/, (?![^<]*>)/);
  const name = target === undefined ? found[1] : "as_type";
  return { name: `${name}/${types.length}`, types: target === undefined ? types : [target, ...types] };
}

const isOpen = (type: string): boolean => /\bT\b|\bT[234]\b|(?<!\w)_(?!\w)/.test(type);

const patterns = new Map<string, RegExp>();

function isLike(open: string, type: string): boolean {
  if (open === type || open === "_" || open === type.replace(/\bT([234]?)\b/g, "float$1")) return true;
  if (!isOpen(open)) return false;
  let pattern = patterns.get(open);
  if (!pattern) {
    const escaped = open.replace(/[*+()[\]]/g, "\\$&").replace(/\bT([234]?)\b|(?<!\w)_(?!\w)/g, "\\w+$1");
    pattern = new RegExp(`^${escaped}$`);
    patterns.set(open, pattern);
  }
  return pattern.test(type);
}
