/**
 * Preloaded by tests in emulation: also emulates programs that they start with the running Bun. Linux would run them on
 * the machine's processor.
 */

/** A JSON list: the command that replaces Bun. */
export const variable = "ARM64_BUN";

/** Returns the command with the emulated `bun` in place of the path `executable`. */
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
