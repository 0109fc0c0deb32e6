/** Runs a program that may never end, such as a mutant. */

export interface LimitedRun {
  readonly status: number;
  /** Standard output and standard error, in order of arrival. */
  readonly output: string;
  /** Whether the program exceeded the time limit. Then it was killed with all its child processes. */
  readonly isOver: boolean;
}

export interface LimitedOptions {
  readonly cwd: string;
  readonly seconds: number;
  readonly environment?: Readonly<Record<string, string>>;
}

/** If memory runs out, Linux kills the mutant and no other program. */
const expendable =
  process.platform === "linux" ? ["sh", "-c", 'echo 1000 2>/dev/null >/proc/self/oom_score_adj; exec "$@"', "sh"] : [];

/** Runs a program in a separate process group. */
export async function runLimited(
  command: readonly string[],
  { cwd, seconds, environment = {} }: LimitedOptions,
): Promise<LimitedRun> {
  const child = Bun.spawn([...expendable, ...command], {
    cwd,
    env: { ...process.env, ...environment },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
  let isOver = false;
  const end = () => {
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // all processes have ended
    }
  };
  const timer = setTimeout(() => {
    isOver = true;
    end();
  }, seconds * 1000);
  process.prependListener("exit", end);
  try {
    let output = "";
    const collect = async (stream: ReadableStream<Uint8Array>) => {
      const decoder = new TextDecoder();
      for await (const chunk of stream) output += decoder.decode(chunk, { stream: true });
    };
    await Promise.all([collect(child.stdout), collect(child.stderr), child.exited]);
    return { status: await child.exited, output, isOver };
  } finally {
    clearTimeout(timer);
    process.off("exit", end);
    end();
  }
}
