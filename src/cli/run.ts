import { Failure } from "./failure.ts";

export interface RunOptions {
  readonly cwd?: string;
  /** Variables to add to this process's environment. */
  readonly environment?: Record<string, string>;
  /** Called with each line of output as it arrives. */
  readonly onLine?: (line: string) => void;
}

export interface RunResult {
  readonly status: number;
  /** Standard output and standard error, interleaved. */
  readonly output: string;
  readonly seconds: number;
}

/** Runs a program to its end and collects its output. */
export async function run(command: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const start = performance.now();
  const child = spawn(command, options);
  let output = "";
  const collect = async (stream: ReadableStream<Uint8Array>) => {
    let remainder = "";
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      const text = decoder.decode(chunk, { stream: true });
      output += text;
      const lines = (remainder + text).split("\n");
      remainder = lines.pop() ?? "";
      for (const line of lines) options.onLine?.(line);
    }
    if (remainder) options.onLine?.(remainder);
  };
  await Promise.all([collect(child.stdout), collect(child.stderr)]);
  return { status: await child.exited, output, seconds: (performance.now() - start) / 1000 };
}

function spawn(command: readonly string[], { cwd, environment }: RunOptions) {
  try {
    return Bun.spawn([...command], {
      ...(cwd ? { cwd } : {}),
      env: { ...process.env, ...environment },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
  } catch (cause) {
    throw new Failure(`${command[0]} can't be started: ${cause instanceof Error ? cause.message : cause}`);
  }
}

/** Runs a program that must succeed. `what` names the step in the failure's message. */
export async function runOrFail(
  what: string,
  command: readonly string[],
  options: RunOptions = {},
): Promise<RunResult> {
  const result = await run(command, options);
  if (result.status !== 0)
    throw new Failure(`${what} failed (${command[0]} ended with ${result.status}):\n${tail(result.output)}`);
  return result;
}

/** Returns the last lines of a text, where programs report why they stopped. */
export function tail(text: string, lines = 30): string {
  return text.trimEnd().split("\n").slice(-lines).join("\n");
}
