const warned = new Set<string>();

/** Warns of a cause, the first time that it comes up. */
export function warnOnce(message: string, cause = message): void {
  if (warned.has(cause)) return;
  warned.add(cause);
  console.warn(`[orchard] ${message}`);
}

/** Forgets which causes were warned of: each is reported anew. */
export function forgetWarnings(): void {
  warned.clear();
}
