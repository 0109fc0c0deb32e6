/**
 * Preloaded by tests in emulation: programs that they start with the Bun that runs are emulated too. Linux would have
 * the machine's own processor run them.
 */

/** A JSON list: the command that stands for Bun. */
export const variable = "ARM64_BUN";

/** The command with the words of `bun` in place of the path `executable`. */
export const emulating = (command: readonly string[], executable: string, bun: readonly string[]): string[] =>
  command.flatMap((word) => (word === executable ? bun : [word]));

const given = process.env[variable];
if (given !== undefined) {
  const bun: readonly string[] = JSON.parse(given);
  const { spawn, spawnSync } = Bun;
  const translated = (command: unknown): unknown => {
    if (Array.isArray(command)) return emulating(command, process.execPath, bun);
    const { cmd, ...options } = command as { cmd: string[] };
    return { ...options, cmd: emulating(cmd, process.execPath, bun) };
  };
  Object.assign(Bun, {
    spawn: (command: never, ...options: never[]) => spawn(translated(command) as never, ...options),
    spawnSync: (command: never, ...options: never[]) => spawnSync(translated(command) as never, ...options),
  });
}
