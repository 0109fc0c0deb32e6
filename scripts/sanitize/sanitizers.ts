/** The sanitizers under which calls are replayed, and the compiler that has them. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run, tail } from "../../src/cli/run.ts";
import { type CppCompiler, findCompilers } from "../cpu/compiler.ts";
import { Failure } from "../failure.ts";

export interface Sanitizer {
  /** Of its folders and in output. */
  readonly name: string;
  readonly title: string;
  /** For compilers and the link. */
  readonly flags: readonly string[];
  /** Its first report ends the process. */
  readonly environment: Readonly<Record<string, string>>;
  /** Debian's package of its run-time library, as GCC has it. */
  readonly package: string;
}

/** Debug information of lines alone, and no optimization that takes frames or checks away. A warning is no error. */
const common = ["-O1", "-g1", "-fno-omit-frame-pointer", "-w"];

export const sanitizers: readonly Sanitizer[] = [
  {
    name: "address",
    title: "AddressSanitizer and UndefinedBehaviorSanitizer",
    flags: [...common, "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"],
    // Looking for leaks needs rights that containers lack.
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
 * What a replay on an instruction set is started with. The frames that AddressSanitizer keeps to find uses after a
 * return are aligned to 32 bytes by GCC 12 (its bug 110027): a vector of 64 bytes in one faults, which is no fault of
 * the code. Sets with such vectors use the stack itself; the others look for those uses.
 */
export const environmentOn = ({ environment }: Sanitizer, isa: string): Readonly<Record<string, string>> =>
  /^(?:avx512|amx)/.test(isa) && environment["ASAN_OPTIONS"] !== undefined
    ? { ...environment, ASAN_OPTIONS: `${environment["ASAN_OPTIONS"]}:detect_stack_use_after_return=0` }
    : environment;

/** A compiler with a sanitizer that works here, and what a program that is built so is started with. */
export interface Instrumented {
  readonly compiler: CppCompiler;
  readonly launcher: readonly string[];
}

/**
 * The first compiler whose programs run with the sanitizer: the machine's own, else the one that set-up brought.
 *
 * @throws {Failure} where none does, with what each one said.
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

/** How a program with the sanitizer is started, or why none can be. */
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
 * ThreadSanitizer of GCC 12 and clang 17 needs fewer random bits in addresses than new kernels use (`vm.mmap_rnd_bits`
 * above 28): without any it runs.
 */
const launchers = [[], ...(process.platform === "linux" ? [["setarch", "--addr-no-randomize"]] : [])];
