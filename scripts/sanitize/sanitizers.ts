/** The sanitizers under which calls are replayed, and compilers that support them. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run, tail } from "../../src/cli/run.ts";
import { type CppCompiler, findCompilers } from "../cpu/compiler.ts";
import { Failure } from "../failure.ts";

export interface Sanitizer {
  /** The name in its folders and in output. */
  readonly name: string;
  readonly title: string;
  /** Flags for compilers and the link. */
  readonly flags: readonly string[];
  /** The first report ends the process. */
  readonly environment: Readonly<Record<string, string>>;
  /** Debian's package of its run-time library for GCC. */
  readonly package: string;
}

/** Line numbers as debug information, and no optimization that removes frames or checks. Warnings are not errors. */
const common = ["-O1", "-g1", "-fno-omit-frame-pointer", "-w"];

export const sanitizers: readonly Sanitizer[] = [
  {
    name: "address",
    title: "AddressSanitizer and UndefinedBehaviorSanitizer",
    flags: [...common, "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"],
    // Leak detection needs rights that containers lack.
    environment: {
      ASAN_OPTIONS: "detect_leaks=0:detect_stack_use_after_return=1:strict_init_order=1:allocator_may_return_null=1",
      UBSAN_OPTIONS: "print_stacktrace=1",
    },
    package: "libasan8 and libubsan1",
  },
  {
    name: "thread",
    title: "ThreadSanitizer",
    flags: [...common, "-fsanitize=thread"],
    environment: { TSAN_OPTIONS: "halt_on_error=1:second_deadlock_stack=1" },
    package: "libtsan2",
  },
];

/**
 * Returns the environment of a replay on an instruction set. GCC 12 aligns the frames that AddressSanitizer keeps to
 * find uses after a return to only 32 bytes (its bug 110027), so accessing a vector of 64 bytes in such a frame
 * crashes. Instruction sets with such vectors use the real stack; only the others look for uses after a return.
 */
export const environmentOn = ({ environment }: Sanitizer, isa: string): Readonly<Record<string, string>> =>
  /^(?:avx512|amx)/.test(isa) && environment["ASAN_OPTIONS"] !== undefined
    ? { ...environment, ASAN_OPTIONS: `${environment["ASAN_OPTIONS"]}:detect_stack_use_after_return=0` }
    : environment;

/** A compiler with a sanitizer that works here, and the environment of its programs. */
export interface Instrumented {
  readonly compiler: CppCompiler;
  readonly launcher: readonly string[];
}

/**
 * Returns the first compiler whose programs run with the sanitizer: the machine's, else the one that set-up installed.
 * @throws {Failure} with each compiler's message if there is none
 */
export async function findInstrumented(sanitizer: Sanitizer): Promise<Instrumented> {
  const compilers = await findCompilers();
  const problems: string[] = [];
  const folder = await mkdtemp(join(tmpdir(), "orchard-sanitizer-"));
  try {
    for (const compiler of compilers) {
      const found = await tryCompiler(compiler, sanitizer, folder);
      if (typeof found !== "string") return { compiler, launcher: found };
      problems.push(`${compiler.command[0]} (${compiler.version}): ${found}`);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  throw new Failure(
    `expected a C++ compiler with ${sanitizer.title} that works here. Install GCC's (Debian: g++ with ` +
      `${sanitizer.package}; Fedora: libasan, libubsan and libtsan), or run \`bun run setup\` without ` +
      `ORCHARD_SKIP_METAL, which brings clang with all of them.\n${problems.join("\n")}`,
  );
}

/** Returns how to start a program with the sanitizer, or why that fails. */
async function tryCompiler(
  compiler: CppCompiler,
  sanitizer: Sanitizer,
  folder: string,
): Promise<readonly string[] | string> {
  const [source, program] = [join(folder, "trial.cpp"), join(folder, "trial")];
  await Bun.write(source, "#include <vector>\nint main(int count, char **) { return std::vector<int>(count)[0]; }\n");
  const flags = [...sanitizer.flags, ...compiler.linkFlags, "-pthread"];
  const built = await run([...compiler.command, source, ...flags, "-o", program]);
  if (built.status !== 0) return tail(built.output, 5);
  const problems: string[] = [];
  for (const launcher of launchers) {
    const { status, output } = await run([...launcher, program], { environment: sanitizer.environment });
    if (status === 0) return launcher;
    problems.push(`${[...launcher, "a program"].join(" ")}: ${tail(output, 5)}`);
  }
  return problems.join("\n");
}

/**
 * ThreadSanitizer of GCC 12 and clang 17 does not support the number of random address bits of new kernels
 * (`vm.mmap_rnd_bits` above 28): it runs without randomization.
 */
const launchers = [[], ...(process.platform === "linux" ? [["setarch", "--addr-no-randomize"]] : [])];
