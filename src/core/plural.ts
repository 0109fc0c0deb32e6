/** Formats a count with its noun. @example counted(1, "file"); // "1 file" @example counted(2, "entry", "entries"); */
export const counted = (count: number, singular: string, plural = `${singular}s`): string =>
  `${count} ${count === 1 ? singular : plural}`;
