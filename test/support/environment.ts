/** Environment variables for a part of a test file. */

/**
 * Sets variables, or unsets them if the value is undefined, until the result is disposed of. Test files share one
 * process, so each has to restore its changes.
 *
 * @example using _ = withVariables({ ORCHARD_TOKEN_CACHE_LIMIT: "50000" });
 */
export function withVariables(variables: Readonly<Record<string, string | undefined>>): Disposable {
  const before = Object.keys(variables).map((name) => [name, process.env[name]] as const);
  setVariables(Object.entries(variables));
  return { [Symbol.dispose]: () => setVariables(before) };
}

function setVariables(variables: readonly (readonly [name: string, value: string | undefined])[]): void {
  for (const [name, value] of variables)
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
}

/** Restores all variables, and returns the names of those that differed. */
export function restoreVariables(all: Readonly<Record<string, string | undefined>>): string[] {
  const names = new Set([...Object.keys(all), ...Object.keys(process.env)]);
  const differing = [...names].filter((name) => process.env[name] !== all[name]).sort();
  setVariables(differing.map((name) => [name, all[name]]));
  return differing;
}
