import type { Variant } from "./variant.ts";

/** Returns the programs of a compiled function as text, and why calls were recorded or ran plainly. */
export function explain(variants: readonly Variant[], reasons: ReadonlyMap<string, number>): string {
  const programs = variants.flatMap((variant, at) => [`program ${at + 1}: ${describe(variant)}`, ...callsOf(variant)]);
  const counts = [...reasons].map(([why, count]) => `${count} ${count === 1 ? "call" : "calls"} ${why}`);
  return [...programs, ...counts].join("\n");
}

function describe({ program, replays, why }: Variant): string {
  if (!program) return `not recorded twice yet${why === "" ? "" : ` (${why})`}`;
  const { calls, performed, arenaBytes, bytesMoved } = program;
  const fusions = performed.filter(({ length }) => length > 1);
  const fused = fusions.reduce((sum, { length }) => sum + length, 0);
  const unused = calls.length - performed.flat().length;
  return (
    `${calls.length} calls, ${fused} of them fused into ${fusions.length}${unused > 0 ? `, ${unused} unused` : ""}; ` +
    `${bytesMoved.plain} bytes of operands, ${bytesMoved.fused} with fusion; arena ${arenaBytes} bytes; ` +
    `${replays} replays`
  );
}

const callsOf = ({ program }: Variant): string[] =>
  program?.performed.map((of) => `  ${of.map((index) => program.calls[index].name).join(" + ")}`) ?? [];
