/** Reads docs/apple.md: the assumptions, ordered by risk. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";

/** The consequences of a wrong assumption, the worst first; the sections of the page begin with these words. */
export const risks = ["high", "medium", "low", "speed"] as const;
export type Risk = (typeof risks)[number];

export interface Assumption {
  readonly identifier: string;
  readonly risk: Risk;
  readonly text: string;
  /** The consequence if the assumption does not hold. */
  readonly consequence: string;
  /** The page's description of the check; `by hand: …` if no command checks the assumption. */
  readonly checkedBy: string;
}

export const byHand = "by hand: ";

export const readPage = (): string => readFileSync(join(packageRoot, "docs", "apple.md"), "utf8");

/** Returns the rows of all sections named after a risk, in order. */
export function assumptionsOf(page: string): Assumption[] {
  return page.split(/^## /m).flatMap((section) => {
    const word = /^(\w+): /.exec(section)?.[1]?.toLowerCase();
    const risk = risks.find((each) => each === word);
    if (!risk) return [];
    return [...section.matchAll(/^\| `([^`]+)` \| (.*) \|$/gm)].map(([, identifier, row]): Assumption => {
      const [text, consequence, , checkedBy, ...more] = row.split(" | ");
      if (!checkedBy || more.length > 0) throw new Error(`docs/apple.md: expected five columns in ${identifier}`);
      return { identifier: identifier, risk, text: text, consequence: consequence, checkedBy };
    });
  });
}
