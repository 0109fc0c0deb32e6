const warned = new Set<string>();

/** Prints a warning the first time that its cause occurs. */
export function warnOnce(message: string, cause = message): void {
  if (warned.has(cause)) return;
  warned.add(cause);
  console.warn(`[orchard] ${message}`);
}

/** Forgets all causes, so that each is reported again. */
export function forgetWarnings(): void {
  warned.clear();
}
