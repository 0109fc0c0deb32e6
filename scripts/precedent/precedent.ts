/**
 * `bun run precedent`: checks that everything that kernels and the Swift dylib use of Apple's interfaces also occurs in
 * code that is known to run on Apple's hardware, or has a stated reason. With `--corpus` it reads such code and writes
 * the tables.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { type Counts, noTests } from "../counts.ts";
import { Failure } from "../failure.ts";
import { readCorpus } from "./corpus.ts";
import { ourSources, ourUses, type Sources, type Uses } from "./ours.ts";
import { languages, Table, tableFile, tableText } from "./table.ts";

/** Correct constructs without a precedent, with reasons. */
export const arguedFile = "scripts/precedent/argued.tsv";
const mostArgued = 20;

export interface Argued {
  readonly construct: string;
  readonly reason: string;
}

export function readArgued(text: string): Argued[] {
  const lines = text.split("\n").filter((line) => line && !line.startsWith("# "));
  return lines.map((line) => ({ construct: line.split("\t")[0], reason: line.split("\t")[1] ?? "" }));
}

/** Returns the constructs of these sources that no other project has, with their places. */
export function withoutPrecedent(sources: Sources): Uses {
  const uses = ourUses(sources);
  return new Map(
    languages.flatMap((language) => {
      const table = Table.read(language);
      return [...uses[language]].filter(([construct]) => !table.has(construct));
    }),
  );
}

/** Returns a sentence for each construct that has neither a precedent nor a reason, and for each unneeded reason. */
export function precedentProblems(found: Uses, argued: readonly Argued[]): string[] {
  const reasons = new Map(argued.map(({ construct, reason }) => [construct, reason]));
  const open = [...found].filter(([construct]) => !reasons.get(construct));
  const problems = open.flatMap(([construct, places]) =>
    [...places].map((place) => `${place}: no other project has: ${construct}`),
  );
  for (const { construct } of argued)
    if (!found.has(construct)) problems.push(`${arguedFile}: is no longer needed: ${construct}`);
  if (argued.length > mostArgued)
    problems.push(`${arguedFile}: expected at most ${mostArgued} constructs, got ${argued.length}`);
  return problems.sort();
}

/** A part of the suite: each problem is a failure. */
export async function checkPrecedent(): Promise<Counts> {
  const argued = readArgued(readFileSync(join(packageRoot, arguedFile), "utf8"));
  const failures = precedentProblems(withoutPrecedent(await ourSources()), argued);
  for (const failure of failures) console.log(failure);
  if (failures.length > 0) console.log("The section Precedents of CONTRIBUTING.md says how to fix this.");
  return { ...noTests, passed: failures.length === 0 ? 1 : 0, failed: failures.length, failures };
}

export async function precedentCommand(words: readonly string[]): Promise<void> {
  if (words.length === 0) {
    const { failed } = await checkPrecedent();
    if (failed > 0) throw new Failure(`precedent: got ${failed} problems, expected none`);
    return console.log("Every construct is in the kernels or packages of another project, or has a reason.");
  }
  const [option, ...folders] = words;
  if (option !== "--corpus" || folders.length === 0)
    throw new Failure(`precedent: expected --corpus and folders of projects, got ${words.join(" ")}`);
  const corpora = readCorpus(folders, ourUses(await ourSources()));
  for (const language of languages) {
    const { origins, counts } = corpora[language];
    await Bun.write(tableFile(language), tableText(origins, counts));
  }
}
