import type { Variant } from "./variant.ts";

/** Returns the programs of a compiled function as text, and why calls were recorded or ran plainly. */
export function explain(variants: readonly Variant[], reasons: ReadonlyMap<string, number>): string {
  const programs = variants.flatMap((variant, at) => [`program ${at + 1}: ${describe(variant)}`, ...callsOf(variant)]);
  const counts = [...reasons].map(([why, count]) => `${count} ${count === 1 ? "call" : "calls"} ${why}`);
  return [...programs, ...counts].join("\n");
}

function describe({ program, replays, why }: Variant): string {
  if (!program) return `not recorded twice yet${why === "" ? "" : ` (${why})`}`;
  const { calls, fusions, arenaBytes, bytesMoved } = program;
  const fused = fusions.reduce((sum, { calls: chain }) => sum + chain.length, 0);
  return (
    `${calls.length} calls, ${fused} of them fused into ${fusions.length}; ${bytesMoved.plain} bytes of operands, ` +
    `${bytesMoved.fused} with fusion; arena ${arenaBytes} bytes; ${replays} replays`
  );
}

function callsOf({ program }: Variant): string[] {
  if (!program) return [];
  const chains = new Map(program.fusions.map((fusion) => [fusion.calls[0], fusion.calls]));
  const lines: string[] = [];
  for (let at = 0; at < program.calls.length; at++) {
    const chain = chains.get(at) ?? [at];
    lines.push(`  ${chain.map((index) => program.calls[index]!.name).join(" + ")}`);
    at = chain.at(-1)!;
  }
  return lines;
}
