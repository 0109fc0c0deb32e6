/** The result of one or more checks of an assumption. */
export interface Outcome {
  readonly state: "holds" | "fails" | "unknown";
  readonly evidence: string;
}

/** An assumption holds if each of its checks succeeds. */
export function together(outcomes: readonly Outcome[]): Outcome {
  const state = (["fails", "unknown"] as const).find((each) => outcomes.some((outcome) => outcome.state === each));
  return { state: state ?? "holds", evidence: outcomes.map(({ evidence }) => evidence).join("; ") };
}

/** The verdicts in a report, by device. The software device cannot confirm anything about Apple's devices. */
export const verdicts = {
  apple: { holds: "confirmed", fails: "refuted", unknown: "not checked" },
  software: { holds: "holds here", fails: "fails here", unknown: "not checked" },
} as const satisfies Readonly<Record<string, Readonly<Record<Outcome["state"], string>>>>;
