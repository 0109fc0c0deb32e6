/** Copies the working tree for mutants, so that the user's files are never touched. */
import {
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { runOrFail } from "../../src/cli/run.ts";
import { platform } from "../../src/core/paths.ts";
import { type LimitedRun, runLimited } from "./limited.ts";
import { applied, type Mutation } from "./mutation.ts";

/** Returns the files of a working tree, tracked and new, as paths from the root. */
export async function filesOf(root: string): Promise<string[]> {
  const words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const { output } = await runOrFail("Asking git for files", words, { cwd: root });
  return [...new Set(output.split("\0").filter(Boolean))].filter((file) => existsSync(join(root, file))).sort();
}

/** Build products that tests need. */
const built = [join("build", platform), ...["cpu", "generated"].map((name) => join("native", ".build", name))];
/** Folders that tests need and no mutant changes. */
const shared = ["node_modules", join("swift", ".build", "products")];

/** A clone of a working tree with its current files, build products and dependencies. */
export class Copy implements Disposable {
  readonly root: string;

  private constructor(root: string) {
    this.root = root;
  }

  /** @throws {Failure} if the tree is not a git repository */
  static async of(tree: string): Promise<Copy> {
    const copy = new Copy(mkdtempSync(join(tmpdir(), "orchard-mutate-")));
    try {
      await copy.#fill(tree);
    } catch (error) {
      copy[Symbol.dispose]();
      throw error;
    }
    return copy;
  }

  async #fill(tree: string): Promise<void> {
    const { root } = this;
    await runOrFail("Cloning", ["git", "clone", "--quiet", "--shared", "--no-checkout", tree, root]);
    await runOrFail("Reading the index", ["git", "reset", "--quiet"], { cwd: root });
    for (const path of [...(await filesOf(tree)), ...built]) copyPath(join(tree, path), join(root, path));
    for (const path of shared.filter((each) => existsSync(join(tree, each)))) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      symlinkSync(join(tree, path), join(root, path));
    }
  }

  /** Applies a mutant until the result is disposed. */
  planted(mutation: Mutation): Disposable {
    const path = join(this.root, mutation.file);
    const source = readFileSync(path, "utf8");
    writeFileSync(path, applied(source, mutation));
    return { [Symbol.dispose]: () => writeFileSync(path, source) };
  }

  /** Restores paths to their content in another copy. */
  restore(paths: readonly string[], from: Copy): void {
    for (const path of paths) {
      rmSync(join(this.root, path), { recursive: true, force: true });
      copyPath(join(from.root, path), join(this.root, path));
    }
  }

  /** Runs a program in the copy's root folder with a time limit in seconds. */
  run(command: readonly string[], seconds: number, environment: Record<string, string> = {}): Promise<LimitedRun> {
    return runLimited(command, { cwd: this.root, seconds, environment });
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** If the file system supports it, a copy shares the blocks of the original. */
function copyPath(from: string, to: string): void {
  if (!existsSync(from)) return;
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to, { recursive: true, mode: constants.COPYFILE_FICLONE, verbatimSymlinks: true });
}
