const told = new Set<string>();

/** Warns of a cause, the first time that it comes up. */
export function tellOnce(message: string, cause = message): void {
  if (told.has(cause)) return;
  told.add(cause);
  console.warn(`[orchard] ${message}`);
}

/** Each cause is told anew. */
export function forgetTold(): void {
  told.clear();
}
