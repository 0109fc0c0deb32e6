/** Lists the lines that can be mutated, and draws their order from a seed. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { contentKey } from "../content_cache.ts";
import { Failure } from "../failure.ts";
import { cppChanges } from "./cpp.ts";
import type { Change, Mutation } from "./mutation.ts";
import { typescriptChanges } from "./typescript.ts";

/** A language whose files can be mutated. */
export interface Language {
  readonly name: string;
  readonly files: RegExp;
  readonly changes: (source: string, file: string) => Change[];
}

/** Pages run in a browser, and files that include the C interface have separate tests. */
export const languages = [
  { name: "TypeScript", files: /^src\/(?!.*\/page\/)(?!.*\.d\.ts$).*\.ts$/, changes: typescriptChanges },
  { name: "C++", files: /^native\/cpu\/(?!include\/).*\.(?:cpp|h)$/, changes: cppChanges },
  { name: "kernels", files: /^kernels\/.*\.(?:metal|h)$/, changes: cppChanges },
] as const satisfies readonly Language[];

export type LanguageName = (typeof languages)[number]["name"];

export const languageOf = (file: string): Language | undefined => languages.find(({ files }) => files.test(file));

/** The code to mutate: everything, a folder, a file, or a line of a file. */
export interface Place {
  readonly path: string;
  readonly line: number | undefined;
}

/** Parses `src/optim`, `src/optim/sgd.ts` and `src/optim/sgd.ts:40`. */
export function readPlace(word: string): Place {
  const [, path = "", line] = /^(?:\.\/)?(.*?)\/?(?::(\d+))?$/.exec(word) ?? [];
  return { path, line: line === undefined ? undefined : Number(line) };
}

const isWithin = (file: string, { path }: Place): boolean =>
  path === "" || file === path || file.startsWith(`${path}/`);

/**
 * Returns the lines with mutations, in drawn order. A line's position depends only on the seed and the line, so a
 * change of one file does not affect the draws in others. A line that the caller names has all its mutations, others
 * have one.
 *
 * @param files paths from the root
 * @throws {Failure} if no file or line can be mutated
 */
export function* drawMutations(
  root: string,
  files: readonly string[],
  place: Place,
  seed: number,
): Generator<Mutation> {
  const lines = files.filter((file) => isWithin(file, place)).flatMap((file) => linesOf(root, file));
  const named = lines.filter(({ line }) => place.line === undefined || line === place.line);
  if (named.length === 0)
    throw new Failure(
      `mutate: expected a folder or a file of src, native/cpu or kernels, got ${describePlace(place)}, where nothing ` +
        "can be mutated.",
    );
  if (place.line !== undefined) return yield* named.flatMap(({ mutations }) => mutations);
  const drawn = named.map((line) => ({ ...line, key: contentKey([String(seed), line.file, line.text, line.order]) }));
  for (const { mutations, key } of drawn.sort((left, right) => (left.key < right.key ? -1 : 1)))
    yield oneOf(mutations, key);
}

/** Each kind is equally likely, however many mutations of it a line has; otherwise most would be of constants. */
function oneOf(mutations: readonly Mutation[], key: string): Mutation {
  const pick = <Item>(items: readonly Item[], from: number) =>
    items[Number.parseInt(key.slice(from, from + 8), 16) % items.length]!;
  return pick(pick([...Map.groupBy(mutations, ({ kind }) => kind).values()], 8), 16);
}

const describePlace = ({ path, line }: Place): string => (line === undefined ? path : `${path}:${line}`);

interface MutableLine {
  readonly file: string;
  readonly line: number;
  readonly text: string;
  /** Returns how many lines of the same text precede it in its file. */
  readonly order: string;
  readonly mutations: readonly Mutation[];
}

function linesOf(root: string, file: string): MutableLine[] {
  const source = readFileSync(join(root, file), "utf8");
  const texts = source.split("\n");
  const starts = [0, ...[...source.matchAll(/\n/g)].map(({ index }) => index + 1)];
  const lineAt = (offset: number) => starts.findLastIndex((start) => start <= offset) + 1;
  const changes = languageOf(file)!.changes(source, file);
  const mutations = changes.map((change) => ({ ...change, file, line: lineAt(change.start) }));
  const seen = new Map<string, number>();
  return [...Map.groupBy(mutations, ({ line }) => line)]
    .sort(([left], [right]) => left - right)
    .map(([line, onLine]) => {
      const text = texts[line - 1].trim();
      const order = seen.get(text) ?? 0;
      seen.set(text, order + 1);
      return { file, line, text, order: String(order), mutations: onLine };
    });
}
