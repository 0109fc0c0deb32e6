/** Programs that create tensors until a limit rejects one. */
import { expect } from "bun:test";
import { packageRoot } from "../../src/core/paths.ts";
import { tested } from "../ops/run.ts";
import { bunWords } from "../support/program.ts";

export const MB = 2 ** 20;
export const filler = [...bunWords, "test/support/memory-filler.ts"];
export const options = (environment: Record<string, string>) => ({
  cwd: packageRoot,
  env: { ...process.env, ORCHARD_MEMORY_LIMIT: "", ...environment },
});

export interface Filled {
  readonly name: string;
  readonly code: string;
  readonly message: string;
  readonly made: number;
  readonly live: number;
  readonly after: readonly number[];
}

export function filled(command: readonly string[], environment: Record<string, string>): Filled {
  const { stdout, stderr, exitCode, signalCode } = Bun.spawnSync([...command], options(environment));
  return parsed({ stdout: stdout.toString(), stderr: stderr.toString(), exitCode, signal: signalCode });
}

export function parsed(ended: { stdout: string; stderr: string; exitCode: number | null; signal?: unknown }): Filled {
  const { stdout, stderr, exitCode, signal } = ended;
  if (exitCode !== 0) throw new Error(`exit ${exitCode} ${signal}: ${stderr}${stdout}`);
  expect(stderr).not.toContain("falls back");
  return JSON.parse(stdout);
}

/**
 * Checks that tensors are rejected at the limit, not below seven eighths of it, and that the backend works afterwards.
 */
export function expectLimit(own: Filled, limit: number, source: RegExp): void {
  expect(own).toMatchObject({ name: "OutOfMemoryError", code: "memoryLimit" });
  const live = /(\d+) bytes are refused: (\d+) bytes are live on the host and (\d+) on metal/.exec(own.message) ?? [];
  const [asked, host, metal] = live.slice(1);
  const [, allowed, by] = /, and tensors may take (\d+) \((.*)\)$/.exec(own.message) ?? [];
  expect([Number(allowed), by]).toEqual([limit, expect.stringMatching(source)]);
  expect(own.message).toMatch(/^\[(full|empty)\] the result can't be allocated/);
  expect(Number(asked) + Number(host) + Number(metal)).toBeGreaterThan(limit);
  expect(own.made).toBeLessThanOrEqual(limit);
  expect(own.made).toBeGreaterThan(limit * 0.85);
  expect(new Set(own.after)).toEqual(new Set([2 ** 18]));
}

/** Each backend alone, and all backends in turn. */
export const combinations = [...tested, tested.join(",")];
