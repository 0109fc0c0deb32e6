import { join } from "node:path";
import { presentPython } from "../../scripts/fixtures/environment.ts";

/** A program in a separate process, which answers each line of input with a line of output. */
export class LineProcess {
  readonly #process;
  readonly #lines: AsyncIterator<string>;

  constructor(command: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.#process = Bun.spawn([...command], {
      ...({ stdin: "pipe", stdout: "pipe", stderr: "inherit" } as const),
      env: { ...process.env, ...env },
    });
    this.#lines = linesOf(this.#process.stdout);
  }

  /** Returns the next line of the program. */
  async hear(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error("the other process ended before it answered; its output is above");
    return value;
  }

  async ask(line: string): Promise<string> {
    this.#process.stdin.write(`${line}\n`);
    await this.#process.stdin.flush();
    return this.hear();
  }

  async close(): Promise<void> {
    await this.#process.stdin.end();
    await this.#process.exited;
  }
}

export interface PyTorchOptions {
  readonly requirements?: string | undefined;
  readonly module?: string;
  /** The Python to use. Default: that of `bun run fixtures`, else `python3`. */
  readonly python?: string | undefined;
  /** Arguments of the program. */
  readonly args?: readonly string[];
  /** Additional environment variables. */
  readonly env?: Readonly<Record<string, string>>;
}

/** PyTorch or another library: a Python program of this folder. */
export class PyTorch extends LineProcess {
  /**
   * Starts the program. Returns undefined if neither `bun run fixtures` nor `python3` provides PyTorch. For another
   * library, pass the pins that install it and its module name.
   */
  static start(
    program: string,
    threads: number,
    { requirements, module = "torch", python: given, args = [], env = {} }: PyTorchOptions = {},
  ): PyTorch | undefined {
    const python = given ?? presentPython(requirements) ?? pythonWith(module);
    if (python === undefined) return undefined;
    const command = [python, "-W", "ignore", join(import.meta.dir, program), ...args];
    return new PyTorch(command, { OMP_NUM_THREADS: `${threads}`, PYTHONDONTWRITEBYTECODE: "1", ...env });
  }
}

function pythonWith(module: string): string | undefined {
  const python = Bun.which("python3");
  if (python === null) return undefined;
  return Bun.spawnSync([python, "-c", `import ${module}`], { stderr: "ignore" }).exitCode === 0 ? python : undefined;
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
